#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <curl/curl.h>

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

#define LABEL63                                                                \
	"abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0"
#define NAME254                                                                \
	LABEL63                                                                \
	"." LABEL63 "." LABEL63 "."                                            \
	"abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrst.example"

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
	{ "hTTpS://EXAMPLE.com:443/A?B", "https://example.com/A?B" },
	{ "https://example.com:443", "https://example.com/" },
	{ "https://example.com:443?x", "https://example.com/?x" },
	{ "https://example.com/?", NULL },
	{ "https://example.com//", NULL },
	{ "https://example.com/%7Eme/%7eyou", NULL },
	{ "https://example.com/?to=https://10.0.0.1/&x=[::1]", NULL },
	{ "https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/" },
	{ "https://xn--strae-oqa.example/", NULL },
	{ "https://1.example/", NULL },
	{ "https://127-0-0-1.example/", NULL },
	{ "https://10.example.com/", NULL },
	{ "https://localhost.example.com/", NULL },
	{ "https://a.b.c.d.e.f.g.example/", NULL },
	{ "https://" LABEL63 ".example/", NULL },
	/* What lies next to a special range. */
	{ "https://1.0.0.0/", NULL },
	{ "https://9.255.255.255/", NULL },
	{ "https://11.0.0.0/", NULL },
	{ "https://100.63.255.254/", NULL },
	{ "https://100.128.0.1/", NULL },
	{ "https://126.255.255.255/", NULL },
	{ "https://128.0.0.1/", NULL },
	{ "https://172.15.255.255/", NULL },
	{ "https://172.32.0.0/", NULL },
	{ "https://198.17.255.255/", NULL },
	{ "https://198.20.0.0/", NULL },
	{ "https://223.255.255.255/", NULL },
	{ "https://[2001:4860:4860:0000:0000:0000:0000:8888]/",
	    "https://[2001:4860:4860::8888]/" },
	{ "https://[2001:200::1]/", NULL },
	{ "https://[2003::1]/", NULL },
	{ "https://[2606:4700::7f00:1]/", NULL },
	{ "https://[3ffe::1]/", NULL },
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
	{ "https//example.com/", "https://" },
	{ "https:\\\\example.com/", "0x5c" },
	{ "https:/\\example.com/", "0x5c" },
	{ "ws://example.com/", "https://" },
	{ "wss://example.com/", "https://" },
	{ "ldap://10.0.0.1/", "https://" },
	{ "dict://127.0.0.1:11211/", "https://" },
	{ "data:text/plain,x", "https://" },
	{ "mailto:a@example.com", "https://" },
	{ "https+x://example.com/", "https://" },
	{ "view-source:https://example.com/", "https://" },
	{ "HTTP://EXAMPLE.COM/", "http is refused" },
	{ "http://[::1]/", "http is refused" },
	{ "ht\ttps://example.com/", "0x09" },
	{ "https://exam\nple.com/", "0x0a" },
	{ "\x0bhttps://example.com/", "0x0b" },
	{ "https://example.com/a b", "0x20" },
	{ "https://example.com/\x1b[2J", "0x1b" },
	{ "https://example.com/`", "0x60" },
	{ "https://example.com/{x}", "0x7b" },
	{ "https://example.com/a|b", "0x7c" },
	{ "https://example.com/\"", "0x22" },
	{ "https://example.com/a^b", "0x5e" },
	{ "https://good.test@127.0.0.1/", "credentials" },
	{ "https://127.0.0.1:443@good.test/", "credentials" },
	{ "https://good.test:443@10.0.0.1/", "credentials" },
	{ "https://a%40b@example.com/", "credentials" },
	{ "https://127.0.0.1%20@example.com/", "credentials" },
	{ "https://example.com:443:80/", "port must be" },
	{ "https://example.com:00443/", "port must be" },
	{ "https://example.com:-1/", "port must be" },
	{ "https://example.com:443x/", "port must be" },
	{ "https://example.com:0x1bb/", "port must be" },
	{ "https://example.com:99999/", "port must be" },
	{ "https://[2606:4700::1]:/", "port must be" },
	{ "https://example.com:22/", "port 22" },
	{ "https://example.com:5432/", "port 5432" },
	{ "https://example.com:65535/", "port 65535" },
	{ "https://example.com:1/", "port 1 " },
	{ "https://.", "empty label" },
	{ "https://../", "empty label" },
	{ "https://intranet/", "one label" },
	{ "https://ip6-localhost/", "one label" },
	{ "https://db.cluster.local/", "local network" },
	{ "https://a.b.internal/", "internal" },
	{ "https://LOCALHOST/", "localhost" },
	{ "https://x.LocalHost/", "localhost" },
	{ "https://"
	  "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz01."
	  "example/",
	    "63" },
	{ "https://" NAME254 "/", "253" },
	{ "https://exam!ple.com/", "no letter" },
	{ "https://example.com%2f.example/", "no letter" },
	{ "https://example.com%00.example/", "no letter" },
	{ "https://%6c%6f%63%61%6c%68%6f%73%74/", "no letter" },
	{ "https://example.com%23.example/", "no letter" },
	{ "https://*.example/", "no letter" },
	{ "https://exam\xc2\xadple.com/", "0xc2" },
	{ "https://\xff.example/", "0xff" },
	{ "https://xn--bcher-kva-.example/", "hyphen" },
	{ "https://xn--0.example/", "punycode" },
	{ "https://aa--bb.example/", "punycode" },
	{ "https://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/", "0xe2" },
	{ "https://127\xe3\x80\x82"
	  "0\xe3\x80\x82"
	  "0\xe3\x80\x82"
	  "1/",
	    "0xe3" },
	{ "https://\xd9\xa1.0.0.1/", "0xd9" },
	{ "https://0x7f.0.0.1/", "odd spelling" },
	{ "https://0177.0.0.1/", "odd spelling" },
	{ "https://0177.1/", "odd spelling" },
	{ "https://127.0.1/", "odd spelling" },
	{ "https://127.0x0.0.1/", "odd spelling" },
	{ "https://0x/", "odd spelling" },
	{ "https://4294967296/", "odd spelling" },
	{ "https://127.0.0.01/", "odd spelling" },
	{ "https://00.0.0.0/", "odd spelling" },
	{ "https://1.1.1/", "odd spelling" },
	{ "https://08.8.8.8/", "odd spelling" },
	{ "https://8.8.8.8./", "odd spelling" },
	{ "https://0xa9fea9fe/", "odd spelling" },
	{ "https://2852039166/", "odd spelling" },
	{ "https://025177524776/", "odd spelling" },
	{ "https://169.254.43518/", "odd spelling" },
	{ "https://1.2.3.4.5.6/", "odd spelling" },
	{ "https://127%2e0.0.1/", "odd spelling" },
	{ "https://1..1/", "odd spelling" },
	{ "https://-1/", "hyphen" },
	{ "https://127.0.0.1-/", "hyphen" },
	{ "https://0.0.0.1/", "0.0.0.0/8" },
	{ "https://10.255.255.255/", "10.0.0.0/8" },
	{ "https://100.127.255.254/", "100.64.0.0/10" },
	{ "https://100.100.100.200/", "metadata" },
	{ "https://127.255.255.254/", "loopback" },
	{ "https://168.63.129.16/", "metadata" },
	{ "https://169.254.0.1/", "link-local" },
	{ "https://172.16.0.1/", "172.16.0.0/12" },
	{ "https://172.31.255.255/", "172.16.0.0/12" },
	{ "https://192.0.0.1/", "192.0.0.0/24" },
	{ "https://192.0.0.192/", "192.0.0.0/24" },
	{ "https://192.0.2.1/", "documentation" },
	{ "https://192.31.196.1/", "AS112" },
	{ "https://192.52.193.1/", "AMT" },
	{ "https://192.88.99.1/", "6to4" },
	{ "https://192.168.0.1/", "192.168.0.0/16" },
	{ "https://192.175.48.1/", "AS112" },
	{ "https://198.18.0.1/", "benchmarking" },
	{ "https://198.19.255.255/", "benchmarking" },
	{ "https://198.51.100.7/", "documentation" },
	{ "https://203.0.113.7/", "documentation" },
	{ "https://224.0.0.1/", "multicast" },
	{ "https://239.255.255.255/", "multicast" },
	{ "https://240.0.0.1/", "reserved" },
	{ "https://255.255.255.255/", "reserved" },
	{ "https://[0000:0000:0000:0000:0000:0000:0000:0001]/", "loopback" },
	{ "https://[0:0:0:0:0:ffff:a9fe:a9fe]/", "mapped" },
	{ "https://[::FFFF:808:808]/", "mapped" },
	{ "https://[::127.0.0.1]/", "no plain IPv6" },
	{ "https://[::7f00:1]/", "compatible" },
	{ "https://[::ffff:0:7f00:1]/", "SIIT" },
	{ "https://[64:ff9b::808:808]/", "NAT64" },
	{ "https://[64:ff9b:1::7f00:1]/", "local NAT64" },
	{ "https://[2002:808:808::]/", "6to4" },
	{ "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "Teredo" },
	{ "https://[2606:4700::200:5efe:a00:1]/", "ISATAP" },
	{ "https://[fc00::1]/", "unique local" },
	{ "https://[fd12:3456:789a::1]/", "unique local" },
	{ "https://[fec0::1]/", "site-local" },
	{ "https://[febf::1]/", "link-local" },
	{ "https://[ff02::1]/", "multicast" },
	{ "https://[100::1]/", "discard" },
	{ "https://[100:0:0:1::1]/", "dummy" },
	{ "https://[2001:2::1]/", "benchmarking" },
	{ "https://[2001:20::1]/", "protocols" },
	{ "https://[2001:db8::1]/", "documentation" },
	{ "https://[3fff::1]/", "documentation" },
	{ "https://[2620:4f:8000::1]/", "AS112" },
	{ "https://[5f00::1]/", "segment routing" },
	{ "https://[1fff::1]/", "2000::/3" },
	{ "https://[4000::1]/", "2000::/3" },
	{ "https://[fe80::1%lo]/", "no plain IPv6" },
	{ "https://[::1%25]/", "no plain IPv6" },
	{ "https://[::00001]/", "no plain IPv6" },
	{ "https://[1:2:3:4:5:6:7:8:9]/", "no plain IPv6" },
	{ "https://[1:2:3]/", "no plain IPv6" },
	{ "https://[g::1]/", "no plain IPv6" },
	{ "https://[2606:4700::1/", "bracket" },
	{ "https://2606:4700::1/", "odd spelling" },
	{ "https://[[2606:4700::1]]/", "between ]" },
	{ "https://[93.184.216.34]/", "no plain IPv6" },
	{ "https://x[::1]/", "no letter" },
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

/* 150 rows at least, and none twice. */
static void
test_the_tables_are_as_long_as_they_look(void **state)
{
	(void)state;
	assert_true(LENGTH(accepted) + LENGTH(refused) >= 150);
	for (size_t i = 0; i < LENGTH(refused); i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(refused[i].url, refused[j].url);
}

/* Of a URL in `parser`. */
static void
expect_part(CURLU *parser, CURLUPart part, const char *want)
{
	char *text = NULL;

	assert_int_equal(
	    curl_url_get(parser, part, &text, CURLU_DEFAULT_PORT), CURLUE_OK);
	assert_string_equal(text, want);
	curl_free(text);
}

/* Were it to read another host, all that was checked would be for nothing. */
static void
test_the_client_reads_the_same_from_what_is_accepted(void **state)
{
	struct target target;
	struct err err;
	char port[8];

	(void)state;
	for (size_t i = 0; i < LENGTH(accepted); i++) {
		CURLU *parser = curl_url();

		assert_int_equal(
		    0, parse(&target, accepted[i].url, &production, &err));
		assert_int_equal(
		    curl_url_set(parser, CURLUPART_URL, target.url, 0),
		    CURLUE_OK);
		(void)snprintf(
		    port, sizeof(port), "%u", (unsigned)target.site.port);
		expect_part(parser, CURLUPART_SCHEME, "https");
		expect_part(parser, CURLUPART_HOST, target.site.host);
		expect_part(parser, CURLUPART_PORT, port);
		curl_url_cleanup(parser);
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
		cmocka_unit_test(test_the_tables_are_as_long_as_they_look),
		cmocka_unit_test(
		    test_the_client_reads_the_same_from_what_is_accepted),
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
