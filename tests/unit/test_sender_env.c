#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/http/send.h"
#include "../../src/http/send_options.h"
#include "sender_world.h"

/* A home of its own, for the files that other clients read there. */
struct home {
	char path[32];
	char *before;
};

static void
put_file(const struct home *home, const char *name, const char *text)
{
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", home->path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(0, fclose(file));
	assert_int_equal(0, chmod(path, 0600));
}

static void
drop_file(const struct home *home, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/%s", home->path, name);
	assert_int_equal(0, unlink(path));
}

static struct home
move_home(void)
{
	struct home home = { .path = "/tmp/home-XXXXXX" };
	const char *before = getenv("HOME");

	home.before = before == NULL ? NULL : strdup(before);
	assert_non_null(mkdtemp(home.path));
	assert_int_equal(0, setenv("HOME", home.path, 1));
	return home;
}

static void
move_back(struct home *home)
{
	assert_int_equal(0, rmdir(home->path));
	if (home->before == NULL)
		(void)unsetenv("HOME");
	else
		(void)setenv("HOME", home->before, 1);
	free(home->before);
}

static const char *const proxies[] = {
	"http_proxy",
	"HTTP_PROXY",
	"https_proxy",
	"HTTPS_PROXY",
	"all_proxy",
	"ALL_PROXY",
};

enum { PROXIES = sizeof(proxies) / sizeof(proxies[0]) };

/* A test that fails leaves nothing to the next. */
static int
tear_down_clean(void **state)
{
	for (int i = 0; i < PROXIES; i++)
		(void)unsetenv(proxies[i]);
	(void)unsetenv("no_proxy");
	(void)unsetenv("NO_PROXY");
	return tear_down(state);
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down_clean)

static void
test_no_proxy_comes_from_the_environment(void **state)
{
	struct world *w = *state;
	struct send_args tls = usual(w);
	struct web decoy;
	char proxy[64], url[64];

	assert_int_equal(0, web_open(&decoy, w->loop));
	web_says(&decoy, web_text, OK);
	(void)snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", decoy.port);
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", w->web.port);
	tls.url = url;
	for (int i = 0; i < PROXIES; i++) {
		(void)setenv(proxies[i], proxy, 1);
		assert_int_equal(answer_with(w, web_text, OK).status, 200);
		assert_ptr_equal(strstr(w->web.last, "POST /hook HTTP/1.1\r\n"),
		    w->web.last);
		/* It speaks no TLS, but that is to be seen there. */
		w->web.greeting = "no TLS here\r\n";
		assert_int_equal(send_it(w, &tls).end, SEND_TLS_FAILED);
		w->web.greeting = NULL;
		assert_int_equal(decoy.connections, 0);
		(void)unsetenv(proxies[i]);
	}
	web_close(&decoy);
}

/* The list of exceptions is theirs to read who have a proxy. */
static void
test_no_exception_from_a_proxy_comes_from_the_environment(void **state)
{
	static const char *const values[] = { "", "*", "127.0.0.1" };
	struct world *w = *state;

	for (int i = 0; i < 3; i++) {
		(void)setenv("no_proxy", values[i], 1);
		(void)setenv("NO_PROXY", values[i], 1);
		assert_int_equal(answer_with(w, web_text, OK).status, 200);
	}
}

static void
test_no_password_comes_from_a_netrc(void **state)
{
	struct world *w = *state;
	struct home home = move_home();

	put_file(&home, ".netrc",
	    "machine 127.0.0.1 login me password secret\n"
	    "default login me password secret\n");
	assert_int_equal(
	    answer_with(w, web_text,
		"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\n"
		"Content-Length: 0\r\n\r\n")
		.status,
	    401);
	assert_null(strstr(w->web.last, "Authorization"));
	assert_int_equal(w->web.requests, 1);
	drop_file(&home, ".netrc");
	move_back(&home);
}

static void
test_no_option_comes_from_a_curlrc(void **state)
{
	struct world *w = *state;
	struct home home = move_home();

	put_file(&home, ".curlrc",
	    "proxy = http://127.0.0.1:1\nuser = me:secret\n"
	    "header = \"X-Rc: yes\"\n");
	assert_int_equal(answer_with(w, web_text, OK).status, 200);
	assert_null(strstr(w->web.last, "X-Rc"));
	assert_null(strstr(w->web.last, "Authorization"));
	drop_file(&home, ".curlrc");
	move_back(&home);
}

static void
test_nothing_is_remembered_of_an_answer(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    answer_with(w, web_text,
			"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; path=/\r\n"
			"Content-Length: 0\r\n\r\n")
			.status,
		    200);
	assert_null(strstr(w->web.last, "Cookie"));
	assert_null(strstr(w->web.last, "Referer"));
	assert_int_equal(w->web.requests, 2);
}

static void
test_redirects_are_an_outcome(void **state)
{
	static const int codes[] = { 300, 301, 302, 303, 305, 307, 308 };
	static const char *const places[] = { "/again", "http://127.0.0.1:%u/",
		"http://169.254.169.254/latest/meta-data/",
		"https://127.0.0.1:%u/", "file:///etc/passwd",
		"gopher://127.0.0.1:%u/_x", "//127.0.0.1:%u/", "" };
	struct world *w = *state;
	struct web decoy;

	assert_int_equal(0, web_open(&decoy, w->loop));
	web_says(&decoy, web_text, OK);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		for (size_t j = 0; j < sizeof(places) / sizeof(places[0]);
		     j++) {
			struct send_result result;
			char place[64], text[256];
			int before = w->web.requests;

			(void)snprintf(place, sizeof(place), "%s", places[j]);
			if (strstr(places[j], "%u") != NULL)
				(void)snprintf(place, sizeof(place), "%.*s%u%s",
				    (int)(strstr(places[j], "%u") - places[j]),
				    places[j], decoy.port,
				    strstr(places[j], "%u") + 2);
			(void)snprintf(text, sizeof(text),
			    "HTTP/1.1 %d There\r\nLocation: %s\r\n"
			    "Content-Length: 0\r\n\r\n",
			    codes[i], place);
			result = answer_with(w, web_text, text);
			if (result.end != SEND_ANSWERED ||
			    result.status != codes[i] ||
			    w->web.requests != before + 1)
				fail_msg("%d to %s: %s %d \"%s\"", codes[i],
				    place, send_end_name(result.end),
				    result.status, result.reason);
		}
	assert_int_equal(decoy.connections, 0);
	web_close(&decoy);
}

static const char *const schemes[] = { "file:///etc/passwd", "ftp://127.0.0.1/",
	"gopher://127.0.0.1/", "dict://127.0.0.1/", "telnet://127.0.0.1/",
	"ldap://127.0.0.1/", "smb://127.0.0.1/x/y", "scp://127.0.0.1/",
	"imap://127.0.0.1/", "smtp://127.0.0.1/", "rtsp://127.0.0.1/",
	"mqtt://127.0.0.1/", "tftp://127.0.0.1/" };

/* The URL policy refuses them first; were one to slip through, the client does
 * not know them. */
static void
test_the_client_speaks_http_alone(void **state)
{
	struct send send = { .easy = curl_easy_init() };
	struct err err;

	(void)state;
	assert_int_equal(0, send_options_set(&send, send_options, &err));
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		(void)curl_easy_setopt(send.easy, CURLOPT_URL, schemes[i]);
		if (curl_easy_perform(send.easy) != CURLE_UNSUPPORTED_PROTOCOL)
			fail_msg("%s is spoken", schemes[i]);
	}
	curl_easy_cleanup(send.easy);
}

static size_t
count_options(void)
{
	size_t n = 0;

	while (send_options[n].name != NULL)
		n++;
	return n;
}

/* As if this libcurl were too old, or built without it, for each of them. */
static void
test_an_option_that_cannot_be_set_is_named(void **state)
{
	size_t n = count_options();
	struct send_option *copy = malloc((n + 1) * sizeof(*copy));
	struct send send = { .easy = curl_easy_init() };
	char says[128];
	struct err err;

	(void)state;
	assert_true(n > 30);
	assert_non_null(copy);
	for (size_t i = 0; i < n; i++) {
		memcpy(copy, send_options, (n + 1) * sizeof(*copy));
		copy[i].id = (CURLoption)9999;
		assert_int_equal(-1, send_options_set(&send, copy, &err));
		assert_int_equal(err.code, ERR_BROKEN);
		(void)snprintf(says, sizeof(says),
		    "libcurl does not take %s:", copy[i].name);
		if (strstr(err.text, says) == NULL)
			fail_msg("%s: \"%s\"", copy[i].name, err.text);
	}
	curl_easy_cleanup(send.easy);
	free(copy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_proxy_comes_from_the_environment),
		TEST(test_no_exception_from_a_proxy_comes_from_the_environment),
		TEST(test_no_password_comes_from_a_netrc),
		TEST(test_no_option_comes_from_a_curlrc),
		TEST(test_nothing_is_remembered_of_an_answer),
		TEST(test_redirects_are_an_outcome),
		TEST(test_the_client_speaks_http_alone),
		TEST(test_an_option_that_cannot_be_set_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
