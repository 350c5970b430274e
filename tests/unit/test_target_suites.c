#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/target.h"
#include "suite.h"

static const struct target_policy production = { .allow_hosts = "" };
static const struct target_policy development = {
	.development = true,
	.allow_hosts = "",
};

/* \xNN is an octet, two backslashes are one. */
static size_t
unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++) {
		char digits[3] = "";

		if (from[0] == '\\' && from[1] == 'x') {
			memcpy(digits, from + 2, 2);
			*to++ = (char)strtoul(digits, NULL, 16);
			from += 3;
			continue;
		}
		if (from[0] == '\\')
			from++;
		*to++ = *from;
	}
	return (size_t)(to - text);
}

static void
test_the_suite_of_urls(void **state)
{
	char *text = need_suite("url/url_policy.csv"), *at = text;
	int rows = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		(void)next_field(&at);
	for (; *at != '\0'; rows++) {
		char *url = next_field(&at), *mode = next_field(&at);
		char *verdict = next_field(&at), *why = next_field(&at);
		size_t len = unescape(url);
		struct target target;
		struct err err;
		int got = target_parse(&target, url, len,
		    strcmp(mode, "development") == 0 ? &development
						     : &production,
		    &err);

		if ((got == 0) != (strcmp(verdict, "accept") == 0))
			fail_msg(
			    "%s %s, should %s: %s", mode, url, verdict, why);
	}
	free(text);
	assert_true(rows > 600);
}

/* One object of the URL Standard's suites: what we need of it. */
struct sample {
	char input[4096], host[1024]; /* `hostname` or `output` */
	size_t input_len;
	int fails; /* "failure": true, or "output": null */
};

static void
put_utf8(struct buf *out, unsigned c)
{
	if (c < 0x80)
		buf_printf(out, "%c", (int)c);
	else if (c < 0x800)
		buf_printf(
		    out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
	else /* halves of pairs each for itself: refused either way */
		buf_printf(out, "%c%c%c", (int)(0xe0 | c >> 12),
		    (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
}

/* The JSON string at `at`, behind its quote; returns what is behind it. */
static const char *
read_string(const char *at, struct buf *out)
{
	static const char plain[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	char digits[5] = "";

	for (; *at != '"' && *at != '\0'; at++) {
		if (*at != '\\') {
			buf_add(out, at, 1);
			continue;
		}
		if (*++at == 'u') {
			memcpy(digits, at + 1, 4);
			put_utf8(out, (unsigned)strtoul(digits, NULL, 16));
			at += 4;
			continue;
		}
		for (const char *p = plain; *p != '\0'; p += 2)
			if (*p == *at)
				buf_add(out, p + 1, 1);
	}
	return at + 1;
}

static const char *
read_member(const char *at, const char *key, struct sample *sample)
{
	struct buf value = { 0 };

	while (*at == ':' || *at == ' ')
		at++;
	if (*at == '"')
		at = read_string(at + 1, &value);
	else if ((strcmp(key, "failure") == 0 && *at == 't') ||
		 (strcmp(key, "output") == 0 && *at == 'n'))
		sample->fails = 1;
	assert_true(value.len < sizeof(sample->host));
	if (strcmp(key, "input") == 0) {
		memcpy(sample->input, buf_text(&value), value.len);
		sample->input_len = value.len;
	}
	if (strcmp(key, "hostname") == 0 || strcmp(key, "output") == 0)
		(void)snprintf(
		    sample->host, sizeof(sample->host), "%s", buf_text(&value));
	buf_fini(&value);
	return at;
}

/* The next object, or NULL; objects are flat. */
static const char *
next_sample(const char *at, struct sample *sample)
{
	struct buf key = { 0 };

	*sample = (struct sample){ .fails = 0 };
	for (; *at != '{' && *at != '\0'; at++)
		if (*at == '"') { /* a comment between objects */
			at = read_string(at + 1, &key) - 1;
			buf_clear(&key);
		}
	if (*at == '\0') {
		buf_fini(&key);
		return NULL;
	}
	while (*at != '}') {
		at += strcspn(at, "\"}");
		if (*at == '}')
			break;
		buf_clear(&key);
		at = read_string(at + 1, &key);
		at = read_member(at, buf_text(&key), sample);
	}
	buf_fini(&key);
	return at;
}

/* What the Standard refuses we refuse; what we accept has its host. */
static void
check_sample(const struct sample *sample, const char *url, size_t len)
{
	struct target target;
	struct err err;

	if (target_parse(&target, url, len, &production, &err) != 0)
		return;
	if (sample->fails)
		fail_msg("accepted: %.*s", (int)len, url);
	if (strcmp(target.site.host, sample->host) != 0)
		fail_msg("%.*s: host %s, not %s", (int)len, url,
		    target.site.host, sample->host);
}

static void
test_the_url_standards_suite(void **state)
{
	char *text = need_suite("url/urltestdata.json");
	const char *at = text;
	struct sample sample;
	struct buf url = { 0 };
	int samples = 0;

	(void)state;
	while ((at = next_sample(at, &sample)) != NULL) {
		samples++;
		check_sample(&sample, sample.input, sample.input_len);
		/* Most of it is http: the same with s says more to us. */
		if (strncasecmp(sample.input, "http:", 5) != 0)
			continue;
		buf_clear(&url);
		buf_puts(&url, "https");
		buf_add(&url, sample.input + 4, sample.input_len - 4);
		check_sample(&sample, url.data, url.len);
	}
	buf_fini(&url);
	free(text);
	assert_true(samples > 700);
}

static void
test_the_url_standards_suite_of_hosts(void **state)
{
	char *text = need_suite("url/toascii.json");
	const char *at = text;
	struct sample sample;
	int samples = 0;

	(void)state;
	while ((at = next_sample(at, &sample)) != NULL) {
		char url[sizeof(sample.input) + 16];
		int len = snprintf(url, sizeof(url), "https://%.*s/",
		    (int)sample.input_len, sample.input);

		samples++;
		check_sample(&sample, url, (size_t)len);
	}
	free(text);
	assert_true(samples > 50);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_suite_of_urls),
		cmocka_unit_test(test_the_url_standards_suite),
		cmocka_unit_test(test_the_url_standards_suite_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
