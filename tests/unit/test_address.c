#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "core/address.h"
#include "suite.h"

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

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

/* NULL if the address may be connected to. */
static const char *
special(const char *text)
{
	union address address = address_of(text);
	const char *why = NULL;

	return address_judge(&address.any, &why) == ADDRESS_GLOBAL ? NULL : why;
}

/* Every row of IANA's special-purpose registries, by first and last address,
 * and what else is no global unicast. */
static const struct {
	const char *row, *first, *last;
} registry[] = {
	{ "this network 0.0.0.0/8", "0.0.0.0", "0.255.255.255" },
	{ "this host 0.0.0.0/32", "0.0.0.0", "0.0.0.0" },
	{ "private-use 10.0.0.0/8", "10.0.0.0", "10.255.255.255" },
	{ "shared 100.64.0.0/10", "100.64.0.0", "100.127.255.255" },
	{ "loopback 127.0.0.0/8", "127.0.0.0", "127.255.255.255" },
	{ "link local 169.254.0.0/16", "169.254.0.0", "169.254.255.255" },
	{ "private-use 172.16.0.0/12", "172.16.0.0", "172.31.255.255" },
	{ "protocols 192.0.0.0/24", "192.0.0.0", "192.0.0.255" },
	{ "continuity 192.0.0.0/29", "192.0.0.0", "192.0.0.7" },
	{ "dummy 192.0.0.8/32", "192.0.0.8", "192.0.0.8" },
	{ "PCP anycast 192.0.0.9/32", "192.0.0.9", "192.0.0.9" },
	{ "TURN anycast 192.0.0.10/32", "192.0.0.10", "192.0.0.10" },
	{ "NAT64 discovery 192.0.0.170", "192.0.0.170", "192.0.0.171" },
	{ "TEST-NET-1 192.0.2.0/24", "192.0.2.0", "192.0.2.255" },
	{ "AS112-v4 192.31.196.0/24", "192.31.196.0", "192.31.196.255" },
	{ "AMT 192.52.193.0/24", "192.52.193.0", "192.52.193.255" },
	{ "6to4 relay 192.88.99.0/24", "192.88.99.0", "192.88.99.255" },
	{ "6a44 relay 192.88.99.2/32", "192.88.99.2", "192.88.99.2" },
	{ "private-use 192.168.0.0/16", "192.168.0.0", "192.168.255.255" },
	{ "AS112 192.175.48.0/24", "192.175.48.0", "192.175.48.255" },
	{ "benchmarking 198.18.0.0/15", "198.18.0.0", "198.19.255.255" },
	{ "TEST-NET-2 198.51.100.0/24", "198.51.100.0", "198.51.100.255" },
	{ "TEST-NET-3 203.0.113.0/24", "203.0.113.0", "203.0.113.255" },
	{ "multicast 224.0.0.0/4", "224.0.0.0", "239.255.255.255" },
	{ "reserved 240.0.0.0/4", "240.0.0.0", "255.255.255.255" },
	{ "broadcast 255.255.255.255", "255.255.255.255", "255.255.255.255" },
	{ "a cloud's platform", "168.63.129.16", "168.63.129.16" },

	{ "loopback ::1/128", "::1", "::1" },
	{ "unspecified ::/128", "::", "::" },
	{ "compatible ::/96", "::2", "::ffff:ffff" },
	{ "mapped ::ffff:0:0/96", "::ffff:0.0.0.0", "::ffff:255.255.255.255" },
	{ "translated ::ffff:0:0:0/96", "::ffff:0:0:0", "::ffff:0:ffff:ffff" },
	{ "NAT64 64:ff9b::/96", "64:ff9b::", "64:ff9b::ffff:ffff" },
	{ "local NAT64 64:ff9b:1::/48",
	    "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff" },
	{ "discard-only 100::/64", "100::", "100::ffff:ffff:ffff:ffff" },
	{ "dummy 100:0:0:1::/64",
	    "100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff" },
	{ "protocols 2001::/23",
	    "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "Teredo 2001::/32",
	    "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "PCP anycast 2001:1::1/128", "2001:1::1", "2001:1::1" },
	{ "TURN anycast 2001:1::2/128", "2001:1::2", "2001:1::2" },
	{ "DNS-SD anycast 2001:1::3/128", "2001:1::3", "2001:1::3" },
	{ "benchmarking 2001:2::/48",
	    "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff" },
	{ "AMT 2001:3::/32",
	    "2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "AS112-v6 2001:4:112::/48",
	    "2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff" },
	{ "ORCHID 2001:10::/28",
	    "2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "ORCHIDv2 2001:20::/28",
	    "2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "drone remote ID 2001:30::/28",
	    "2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "documentation 2001:db8::/32",
	    "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "6to4 2002::/16",
	    "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "AS112 2620:4f:8000::/48",
	    "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff" },
	{ "documentation 3fff::/20",
	    "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "segment routing 5f00::/16",
	    "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "unique local fc00::/7",
	    "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "link local fe80::/10",
	    "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "site local fec0::/10",
	    "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "multicast ff00::/8",
	    "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "below 2000::/3", "1fff::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:1" },
	{ "above 2000::/3", "4000::", "5eff::1" },
	{ "ISATAP", "2606:4700::5efe:808:808", "2606:4700::200:5efe:a00:1" },
};

static const char *const neighbours[] = { "1.0.0.0", "9.255.255.255",
	"11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
	"128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255",
	"169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255",
	"192.0.1.0", "192.0.1.255", "192.0.3.0", "192.31.195.255",
	"192.31.197.0", "192.52.192.255", "192.52.194.0", "192.88.98.255",
	"192.88.100.0", "192.167.255.255", "192.169.0.0", "192.175.47.255",
	"192.175.49.0", "198.17.255.255", "198.20.0.0", "198.51.99.255",
	"198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
	"2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	"2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
	"2001:db9::", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	"2003::", "2606:4700::7f00:1", "2606:4700::5eff:a00:1",
	"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff",
	"2620:4f:8001::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	"3fff:1000::" };

static void
test_every_special_range_is_refused_from_end_to_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(registry); i++)
		if (special(registry[i].first) == NULL ||
		    special(registry[i].last) == NULL)
			fail_msg("allowed: %s", registry[i].row);
}

static void
test_the_neighbours_of_special_ranges_are_allowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(neighbours); i++)
		if (special(neighbours[i]) != NULL)
			fail_msg(
			    "%s: %s", neighbours[i], special(neighbours[i]));
}

static void
test_the_reason_names_the_range(void **state)
{
	(void)state;
	assert_string_equal(special("127.0.0.1"), "loopback (127.0.0.0/8)");
	assert_string_equal(special("::1"), "loopback (::1)");
	assert_string_equal(
	    special("169.254.169.254"), "metadata (169.254.169.254)");
	assert_string_equal(special("2001:0:1::"), "Teredo (2001::/32)");
}

static void
test_another_family_is_refused(void **state)
{
	union address address = { .any = { .sa_family = AF_UNIX } };
	const char *why = NULL;

	(void)state;
	assert_int_equal(address_judge(&address.any, &why), ADDRESS_BANNED);
	assert_non_null(why);
}

static void
test_the_suite_of_addresses(void **state)
{
	char *text = need_suite("address/ipv4_ipv6_policy.csv"), *at = text;
	int rows = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		(void)next_field(&at);
	for (; *at != '\0'; rows++) {
		char *address = next_field(&at), *verdict = next_field(&at);
		char *why = next_field(&at);

		if ((special(address) == NULL) !=
		    (strcmp(verdict, "allow") == 0))
			fail_msg("%s, should %s: %s", address, verdict, why);
	}
	free(text);
	assert_true(rows > 400);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_every_special_range_is_refused_from_end_to_end),
		cmocka_unit_test(
		    test_the_neighbours_of_special_ranges_are_allowed),
		cmocka_unit_test(test_the_reason_names_the_range),
		cmocka_unit_test(test_another_family_is_refused),
		cmocka_unit_test(test_the_suite_of_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
