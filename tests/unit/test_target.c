#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/target.h"

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

static const struct target_policy production = { .allow_hosts = "" };
static const struct target_policy development = {
	.development = true,
	.allow_hosts = "",
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address
address_of(const char *text)
{
	union address address;

	memset(&address, 0, sizeof(address));
	if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1) {
		address.v4.sin_family = AF_INET;
		return address;
	}
	address.v6.sin6_family = AF_INET6;
	if (inet_pton(AF_INET6, text, &address.v6.sin6_addr) != 1)
		fail_msg("%s is no address", text);
	return address;
}

/* 0 and the target, or -1 and the reason. */
static int
parse(struct target *out, const char *url, const struct target_policy *policy,
    struct err *err)
{
	return target_parse(out, url, strlen(url), policy, err);
}

static const struct {
	const char *url, *canonical; /* NULL: the same */
} accepted[] = {
	{ "https://example.com/", NULL },
	{ "https://example.com", "https://example.com/" },
	{ "HTTPS://Example.COM/Hook", "https://example.com/Hook" },
	{ "https://example.com:443/a", "https://example.com/a" },
	{ "https://example.com?x=1", "https://example.com/?x=1" },
	{ "https://example.com/?a[]=1&b=%F0%9F%90%98", NULL },
	{ "https://example.com/a/../b/./c//d", NULL },
	{ "https://example.com/a%0D%0Ab", NULL },
	{ "https://example.com/@u:p/http://127.0.0.1/", NULL },
	{ "https://example.com/!$&'()*+,;=-._~", NULL },
	{ "https://xn--bcher-kva.example/", NULL },
	{ "https://www.xn--fiqs8s.xn--fiqs8s/", NULL },
	{ "https://127.0.0.1.example.org/", NULL },
	{ "https://0x7f.example/", NULL },
	{ "https://a--b.example/", NULL },
	{ "https://93.184.216.34/", NULL },
	{ "https://[2606:4700:0:0:0:0:0:ABCD]:443",
	    "https://[2606:4700::abcd]/" },
};

static void
test_what_is_accepted_has_one_form(void **state)
{
	struct target target;
	struct err err;

	(void)state;
	for (size_t i = 0; i < LENGTH(accepted); i++) {
		const char *want = accepted[i].canonical != NULL
		                       ? accepted[i].canonical
		                       : accepted[i].url;

		if (parse(&target, accepted[i].url, &production, &err) != 0)
			fail_msg("%s: %s", accepted[i].url, err.text);
		assert_string_equal(target.url, want);
		/* And that form is stable. */
		assert_int_equal(0, parse(&target, want, &production, &err));
		assert_string_equal(target.url, want);
	}
}

static void
test_the_parts_of_a_target_are_told(void **state)
{
	struct target target;
	struct err err;

	(void)state;
	assert_int_equal(
	    0, parse(&target, "https://Example.com/x", &production, &err));
	assert_string_equal(target.site.host, "example.com");
	assert_int_equal(target.site.port, 443);
	assert_true(target.site.is_https);
	assert_false(target.site.is_literal);
	assert_false(target.site.is_loopback);

	assert_int_equal(
	    0, parse(&target, "http://[::1]:8080/x", &development, &err));
	assert_string_equal(target.site.host, "[::1]");
	assert_int_equal(target.site.port, 8080);
	assert_false(target.site.is_https);
	assert_true(target.site.is_literal);
	assert_true(target.site.is_loopback);
}

static const struct {
	const char *url, *reason; /* a part of it */
} refused[] = {
	{ "", "https://" },
	{ "example.com/", "https://" },
	{ "//example.com/", "https://" },
	{ "https:/example.com/", "https://" },
	{ "https:example.com/", "https://" },
	{ "ftp://example.com/", "https://" },
	{ "file:///etc/passwd", "https://" },
	{ "gopher://127.0.0.1:6379/_x", "https://" },
	{ "javascript:alert(1)", "https://" },
	{ "http://example.com/", "http is refused" },
	{ "http://127.0.0.1/", "http is refused" },
	{ "https:///example.com/", "host is missing" },
	{ "https://", "host is missing" },
	{ "https://:443/", "host is missing" },
	{ "https://?x", "host is missing" },
	{ "https://user@example.com/", "credentials" },
	{ "https://user:pass@example.com/", "credentials" },
	{ "https://@example.com/", "credentials" },
	{ "https://127.0.0.1\\@example.com/", "0x5c" },
	{ "https://example.com\\@127.0.0.1/", "0x5c" },
	{ "https://example.com/#x", "fragment" },
	{ "https://127.0.0.1#@example.com/", "fragment" },
	{ " https://example.com/", "0x20" },
	{ "https://example.com/ ", "0x20" },
	{ "https://exam\tple.com/", "0x09" },
	{ "https://example.com/\r\nX: y", "0x0d" },
	{ "https://example.com/\x7f", "0x7f" },
	{ "https://example.com/\xe2\x82\xac", "0xe2" },
	{ "https://b\xc3\xbc"
	  "cher.example/",
	    "0xc3" },
	{ "https://\xef\xbc\x91\xef\xbc\x92.0.0.1/", "0xef" },
	{ "https://example.com/<b>", "0x3c" },
	{ "https://example.com/[b]", "bracket" },
	{ "https://example.com/%", "hexadecimal" },
	{ "https://example.com/%1", "hexadecimal" },
	{ "https://example.com/?%zz", "hexadecimal" },
	{ "https://example.com:80/", "port 80" },
	{ "https://example.com:8443/", "port 8443" },
	{ "https://example.com:0/", "port must be" },
	{ "https://example.com:/", "port must be" },
	{ "https://example.com:0443/", "port must be" },
	{ "https://example.com:65536/", "port must be" },
	{ "https://example.com:4294967739/", "port must be" },
	{ "https://example.com:443:443/", "port must be" },
	{ "https://example.com:+443/", "port must be" },
	{ "https://localhost/", "localhost" },
	{ "https://LOCALHOST./", "dot" },
	{ "https://foo.localhost/", "localhost" },
	{ "https://localhost.localdomain/", "localdomain" },
	{ "https://db/", "one label" },
	{ "https://printer.local/", "local network" },
	{ "https://metadata.google.internal/", "internal" },
	{ "https://kubernetes.default.svc/", "cluster" },
	{ "https://router.home.arpa/", "home network" },
	{ "https://x.onion/", "onion" },
	{ "https://x.invalid/", "never resolve" },
	{ "https://example.com./", "dot" },
	{ "https://example..com/", "empty label" },
	{ "https://.example.com/", "empty label" },
	{ "https://-x.example.com/", "hyphen" },
	{ "https://x-.example.com/", "hyphen" },
	{ "https://foo_bar.example.com/", "punycode" },
	{ "https://exa%6dple.com/", "no letter" },
	{ "https://%31%32%37.0.0.1/", "IPv4" },
	{ "https://xn--.example/", "hyphen" },
	{ "https://xn--a.example/", "punycode" },
	{ "https://xn--zn7c.com/", "punycode" },
	{ "https://xn--abc-.example/", "hyphen" },
	{ "https://xn--99999999.example/", "punycode" },
	{ "https://ab--cd.example/", "punycode" },
	{ "https://127.0.0.1x/", "digit" },
	{ "https://127.0.0.1/", "loopback" },
	{ "https://10.0.0.1/", "10.0.0.0/8" },
	{ "https://169.254.169.254/", "metadata" },
	{ "https://100.64.0.1/", "100.64.0.0/10" },
	{ "https://0.0.0.0/", "0.0.0.0/8" },
	{ "https://127.1/", "odd spelling" },
	{ "https://0/", "odd spelling" },
	{ "https://2130706433/", "odd spelling" },
	{ "https://0x7f000001/", "odd spelling" },
	{ "https://0x7f.1/", "odd spelling" },
	{ "https://0X7F.0.0.1/", "odd spelling" },
	{ "https://017700000001/", "odd spelling" },
	{ "https://012.0.0.1/", "odd spelling" },
	{ "https://127.0.0.1./", "odd spelling" },
	{ "https://8.8.2056/", "odd spelling" },
	{ "https://256.0.0.1/", "odd spelling" },
	{ "https://1.2.3.4.5/", "odd spelling" },
	{ "https://example.123/", "odd spelling" },
	{ "https://[::1]/", "loopback" },
	{ "https://[::]/", "unspecified" },
	{ "https://[::ffff:7f00:1]/", "mapped" },
	{ "https://[::ffff:127.0.0.1]/", "no plain IPv6" },
	{ "https://[64:ff9b::7f00:1]/", "NAT64" },
	{ "https://[2002:7f00:1::]/", "6to4" },
	{ "https://[2001:0:7f00:1::]/", "Teredo" },
	{ "https://[2606:4700::5efe:7f00:1]/", "ISATAP" },
	{ "https://[fd00:ec2::254]/", "metadata" },
	{ "https://[fe80::1%25lo]/", "no plain IPv6" },
	{ "https://[fe80::1]/", "link-local" },
	{ "https://[::1/", "bracket" },
	{ "https://[]/", "no plain IPv6" },
	{ "https://[1::2::3]/", "no plain IPv6" },
	{ "https://[v1.fe80::a]/", "no plain IPv6" },
	{ "https://[::1]x/", "between ]" },
	{ "https://::1/", "host is missing" },
};

static void
test_each_rule_refuses_with_its_reason(void **state)
{
	struct target target;
	struct err err;

	(void)state;
	for (size_t i = 0; i < LENGTH(refused); i++) {
		if (parse(&target, refused[i].url, &production, &err) == 0)
			fail_msg("accepted: %s", refused[i].url);
		assert_int_equal(err.code, ERR_REFUSED);
		if (strstr(err.text, refused[i].reason) == NULL)
			fail_msg("%s: %s", refused[i].url, err.text);
	}
}

static void
test_a_nul_does_not_end_a_url(void **state)
{
	static const char url[] = "https://example.com/\0x";
	struct target target;
	struct err err;

	(void)state;
	assert_int_equal(
	    -1, target_parse(&target, url, sizeof(url) - 1, &production, &err));
}

static void
test_lengths_are_bounded(void **state)
{
	char url[TARGET_URL_MAX + 2] = "https://example.com/";
	struct target target;
	struct err err;

	(void)state;
	memset(url + 20, 'p', sizeof(url) - 20);
	assert_int_equal(
	    0, target_parse(&target, url, TARGET_URL_MAX, &production, &err));
	assert_int_equal(strlen(target.url), TARGET_URL_MAX);
	assert_int_equal(-1,
	    target_parse(&target, url, TARGET_URL_MAX + 1, &production, &err));

	/* 63 octets a label, 253 a name. */
	memset(url + 8, 'a', 253);
	for (int i = 0; i < 3; i++)
		url[8 + 63 + 64 * i] = '.';
	assert_int_equal(
	    0, target_parse(&target, url, 8 + 253, &production, &err));
	assert_int_equal(
	    -1, target_parse(&target, url, 8 + 254, &production, &err));
	url[8 + 63] = 'a';
	assert_int_equal(
	    -1, target_parse(&target, url, 8 + 253, &production, &err));
}

static void
test_development_opens_loopback_and_nothing_else(void **state)
{
	static const char *const open[] = { "http://127.0.0.1:28473/hook",
		"http://127.255.255.254/", "https://127.0.0.1:1/",
		"http://[::1]:65535/", "http://localhost:8080/",
		"https://localhost/", "https://example.com/" };
	static const char *const shut[] = { "http://10.0.0.1/",
		"http://example.com/", "https://example.com:8443/",
		"http://93.184.216.34/", "http://0.0.0.0:80/",
		"http://foo.localhost/", "http://169.254.169.254/",
		"https://10.0.0.1/", "http://127.1/", "http://localhost./" };
	struct target target;
	struct err err;

	(void)state;
	for (size_t i = 0; i < LENGTH(open); i++)
		if (parse(&target, open[i], &development, &err) != 0)
			fail_msg("%s: %s", open[i], err.text);
	for (size_t i = 0; i < LENGTH(shut); i++)
		if (parse(&target, shut[i], &development, &err) == 0)
			fail_msg("accepted: %s", shut[i]);
}

/* Why an address is refused to a URL; NULL if it is not. */
static const char *
connects(const char *url, const struct target_policy *policy,
    const char *address_text)
{
	union address address = address_of(address_text);
	struct target target;
	struct err err;

	if (parse(&target, url, policy, &err) != 0)
		fail_msg("%s: %s", url, err.text);
	return target_refuses(&target.site, policy, &address.any);
}

static void
test_development_opens_loopback_to_no_other_name(void **state)
{
	(void)state;
	assert_null(connects("http://localhost/", &development, "127.0.0.1"));
	assert_null(connects("http://localhost/", &development, "::1"));
	/* A hosts file that says otherwise sends http to strangers. */
	assert_non_null(
	    connects("http://localhost/", &development, "93.184.216.34"));
	assert_non_null(
	    connects("https://example.com/", &development, "127.0.0.1"));
	assert_null(
	    connects("https://example.com/", &development, "93.184.216.34"));
}

static void
test_an_allowed_host_may_be_internal_and_is_matched_exactly(void **state)
{
	static const struct target_policy policy = {
		.allow_hosts = "hooks.internal, db,10.1.2.3 ,[fd00::7]",
	};
	static const char *const open[] = { "https://hooks.internal/",
		"https://HOOKS.internal/", "https://db/", "https://10.1.2.3/",
		"https://[fd00::7]/" };
	static const char *const shut[] = { "https://a.hooks.internal/",
		"https://hooks.internal.local/", "https://d/", "https://db2/",
		"https://10.1.2.4/", "https://10.1.2.3:8443/", "http://db/",
		"https://internal/" };
	struct target target;
	struct err err;

	(void)state;
	for (size_t i = 0; i < LENGTH(open); i++)
		if (parse(&target, open[i], &policy, &err) != 0)
			fail_msg("%s: %s", open[i], err.text);
	for (size_t i = 0; i < LENGTH(shut); i++)
		if (parse(&target, shut[i], &policy, &err) == 0)
			fail_msg("accepted: %s", shut[i]);

	assert_null(connects("https://db/", &policy, "10.0.0.1"));
	assert_null(connects("https://db/", &policy, "127.0.0.1"));
	assert_null(connects("https://db/", &policy, "fd00::1"));
	assert_non_null(connects("https://db/", &policy, "169.254.169.254"));
	assert_non_null(connects("https://db/", &policy, "100.100.100.200"));
	assert_non_null(connects("https://db/", &policy, "fd00:ec2::254"));
	assert_non_null(connects("https://db/", &policy, "0.0.0.0"));
	assert_non_null(connects("https://db/", &policy, "::ffff:10.0.0.1"));
	assert_non_null(connects("https://example.com/", &policy, "10.0.0.1"));
}

static void
test_other_ports_are_open_where_they_are_allowed(void **state)
{
	static const struct target_policy policy = {
		.any_port = true,
		.allow_hosts = "",
	};
	struct target target;
	struct err err;

	(void)state;
	assert_int_equal(
	    0, parse(&target, "https://example.com:8443/", &policy, &err));
	assert_string_equal(target.url, "https://example.com:8443/");
	assert_int_equal(
	    -1, parse(&target, "http://example.com:8080/", &policy, &err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_accepted_has_one_form),
		cmocka_unit_test(test_the_parts_of_a_target_are_told),
		cmocka_unit_test(test_each_rule_refuses_with_its_reason),
		cmocka_unit_test(test_a_nul_does_not_end_a_url),
		cmocka_unit_test(test_lengths_are_bounded),
		cmocka_unit_test(
		    test_development_opens_loopback_and_nothing_else),
		cmocka_unit_test(
		    test_development_opens_loopback_to_no_other_name),
		cmocka_unit_test(
		    test_an_allowed_host_may_be_internal_and_is_matched_exactly),
		cmocka_unit_test(
		    test_other_ports_are_open_where_they_are_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
