#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "core/address.h"
#include "special_ranges.h"
#include "suite.h"

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

static enum address_kind
judge(const struct special_octets *octets)
{
	union address address;
	const char *why = NULL;
	enum address_kind kind;

	memset(&address, 0, sizeof(address));
	if (octets->size == 4) {
		address.v4.sin_family = AF_INET;
		memcpy(&address.v4.sin_addr, octets->at, 4);
	} else {
		address.v6.sin6_family = AF_INET6;
		memcpy(&address.v6.sin6_addr, octets->at, 16);
	}
	kind = address_judge(&address.any, &why);
	assert_true(kind == ADDRESS_GLOBAL || why != NULL);
	return kind;
}

/* All bits behind the prefix set. */
static void
go_to_last(struct special_octets *octets, int prefix)
{
	for (int i = prefix; i < octets->size * 8; i++)
		octets->at[i / 8] |= (unsigned char)(1 << (7 - i % 8));
}

/* One up or down; all ones is followed by zero. */
static void
step(struct special_octets *octets, int by)
{
	for (int i = octets->size - 1; i >= 0; i--) {
		octets->at[i] = (unsigned char)(octets->at[i] + by);
		if (octets->at[i] != (by > 0 ? 0 : 0xff))
			return;
	}
}

static void
check_rows(const struct special_range *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct special_octets first, last, before, after;
		int prefix = special_read(&first, rows[i].range);

		last = first;
		go_to_last(&last, prefix);
		before = first;
		step(&before, -1);
		after = last;
		step(&after, 1);
		if (judge(&first) == ADDRESS_GLOBAL ||
		    judge(&last) == ADDRESS_GLOBAL)
			fail_msg("allowed: %s, %s (RFC %s)", rows[i].range,
			    rows[i].name, rows[i].rfc);
		if (judge(&first) != special_judge(&first) ||
		    judge(&last) != special_judge(&last) ||
		    judge(&before) != special_judge(&before) ||
		    judge(&after) != special_judge(&after))
			fail_msg("judged otherwise: an end or a neighbour of "
				 "%s, %s (RFC %s)",
			    rows[i].range, rows[i].name, rows[i].rfc);
	}
}

/* 192.0.0.170 and 171 are one row there and two here. */
static void
test_each_row_of_ianas_ipv4_registry_is_refused_from_end_to_end(void **state)
{
	(void)state;
	assert_int_equal(LENGTH(iana4), 26);
	check_rows(iana4, LENGTH(iana4));
}

static void
test_each_row_of_ianas_ipv6_registry_is_refused_from_end_to_end(void **state)
{
	(void)state;
	assert_int_equal(LENGTH(iana6), 25);
	check_rows(iana6, LENGTH(iana6));
}

static void
test_what_is_in_no_registry_is_refused_from_end_to_end(void **state)
{
	(void)state;
	check_rows(unregistered, LENGTH(unregistered));
}

/* 8.8.8.8, 10.0.0.1 and 127.0.0.1, in each way to write one into IPv6. */
static const struct {
	const char *way, *global, *private, *loopback;
} embedded[] = {
	{ "mapped", "::ffff:808:808", "::ffff:a00:1", "::ffff:7f00:1" },
	{ "compatible", "::808:808", "::a00:1", "::7f00:1" },
	{ "translated", "::ffff:0:808:808", "::ffff:0:a00:1",
	    "::ffff:0:7f00:1" },
	{ "NAT64", "64:ff9b::808:808", "64:ff9b::a00:1", "64:ff9b::7f00:1" },
	{ "local NAT64", "64:ff9b:1::808:808", "64:ff9b:1::a00:1",
	    "64:ff9b:1::7f00:1" },
	{ "local NAT64, /48", "64:ff9b:1:808:8:800::", "64:ff9b:1:a00:0:100::",
	    "64:ff9b:1:7f00:0:100::" },
	{ "6to4", "2002:808:808::1", "2002:a00:1::1", "2002:7f00:1::1" },
	{ "Teredo server", "2001:0:808:808::1", "2001:0:a00:1::1",
	    "2001:0:7f00:1::1" },
	{ "Teredo client", "2001::8000:0:f7f7:f7f7", "2001::8000:0:f5ff:fffe",
	    "2001::8000:0:80ff:fffe" },
	{ "ISATAP", "2606:4700::5efe:808:808", "2606:4700::5efe:a00:1",
	    "2606:4700::5efe:7f00:1" },
	{ "ISATAP, universal", "2606:4700::200:5efe:808:808",
	    "2606:4700::200:5efe:a00:1", "2606:4700::200:5efe:7f00:1" },
};

static void
test_no_way_to_write_ipv4_into_ipv6_is_allowed(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(embedded); i++)
		if (special(embedded[i].global) == NULL ||
		    special(embedded[i].private) == NULL ||
		    special(embedded[i].loopback) == NULL)
			fail_msg("allowed: %s", embedded[i].way);
}

/* An allow-list opens private and loopback addresses, and only these. */
static void
test_an_address_inside_another_is_neither_private_nor_loopback(void **state)
{
	const char *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(embedded); i++) {
		union address private = address_of(embedded[i].private);
		union address loopback = address_of(embedded[i].loopback);

		assert_int_equal(
		    address_judge(&private.any, &why), ADDRESS_BANNED);
		assert_int_equal(
		    address_judge(&loopback.any, &why), ADDRESS_BANNED);
	}
}

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
		    test_each_row_of_ianas_ipv4_registry_is_refused_from_end_to_end),
		cmocka_unit_test(
		    test_each_row_of_ianas_ipv6_registry_is_refused_from_end_to_end),
		cmocka_unit_test(
		    test_what_is_in_no_registry_is_refused_from_end_to_end),
		cmocka_unit_test(
		    test_no_way_to_write_ipv4_into_ipv6_is_allowed),
		cmocka_unit_test(
		    test_an_address_inside_another_is_neither_private_nor_loopback),
		cmocka_unit_test(
		    test_the_neighbours_of_special_ranges_are_allowed),
		cmocka_unit_test(test_the_reason_names_the_range),
		cmocka_unit_test(test_another_family_is_refused),
		cmocka_unit_test(test_the_suite_of_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
