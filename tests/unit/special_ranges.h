/*
 * special_ranges: what is no global unicast, and a slow judge of addresses.
 *
 * The tables are written down apart from the code's own, and the judge goes by
 * the longest prefix, bit by bit: it shares nothing with what it judges.
 */

#ifndef TESTS_SPECIAL_RANGES_H
#define TESTS_SPECIAL_RANGES_H

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/address.h"

struct special_range {
	const char *range, *name, *rfc;
	enum address_kind kind;
};

#define LOOPBACK ADDRESS_LOOPBACK
#define PRIVATE ADDRESS_PRIVATE
#define BANNED ADDRESS_BANNED

/* IANA IPv4 Special-Purpose Address Registry, row by row. */
static const struct special_range iana4[] = {
	{ "0.0.0.0/8", "this network", "791", BANNED },
	{ "0.0.0.0/32", "this host on this network", "1122", BANNED },
	{ "10.0.0.0/8", "private-use", "1918", PRIVATE },
	{ "100.64.0.0/10", "shared address space", "6598", PRIVATE },
	{ "127.0.0.0/8", "loopback", "1122", LOOPBACK },
	{ "169.254.0.0/16", "link local", "3927", BANNED },
	{ "172.16.0.0/12", "private-use", "1918", PRIVATE },
	{ "192.0.0.0/24", "IETF protocol assignments", "6890", BANNED },
	{ "192.0.0.0/29", "IPv4 service continuity", "7335", BANNED },
	{ "192.0.0.8/32", "IPv4 dummy address", "7600", BANNED },
	{ "192.0.0.9/32", "port control protocol anycast", "7723", BANNED },
	{ "192.0.0.10/32", "TURN anycast", "8155", BANNED },
	{ "192.0.0.170/32", "NAT64/DNS64 discovery", "8880", BANNED },
	{ "192.0.0.171/32", "NAT64/DNS64 discovery", "8880", BANNED },
	{ "192.0.2.0/24", "documentation (TEST-NET-1)", "5737", BANNED },
	{ "192.31.196.0/24", "AS112-v4", "7535", BANNED },
	{ "192.52.193.0/24", "AMT", "7450", BANNED },
	{ "192.88.99.0/24", "deprecated (6to4 relay)", "7526", BANNED },
	{ "192.88.99.2/32", "6a44 relay anycast", "6751", BANNED },
	{ "192.168.0.0/16", "private-use", "1918", PRIVATE },
	{ "192.175.48.0/24", "direct delegation AS112", "7534", BANNED },
	{ "198.18.0.0/15", "benchmarking", "2544", BANNED },
	{ "198.51.100.0/24", "documentation (TEST-NET-2)", "5737", BANNED },
	{ "203.0.113.0/24", "documentation (TEST-NET-3)", "5737", BANNED },
	{ "240.0.0.0/4", "reserved", "1112", BANNED },
	{ "255.255.255.255/32", "limited broadcast", "8190", BANNED },
};

/* IANA IPv6 Special-Purpose Address Registry, row by row. */
static const struct special_range iana6[] = {
	{ "::1/128", "loopback", "4291", LOOPBACK },
	{ "::/128", "unspecified", "4291", BANNED },
	{ "::ffff:0:0/96", "IPv4-mapped", "4291", BANNED },
	{ "64:ff9b::/96", "IPv4-IPv6 translation", "6052", BANNED },
	{ "64:ff9b:1::/48", "IPv4-IPv6 translation", "8215", BANNED },
	{ "100::/64", "discard-only", "6666", BANNED },
	{ "100:0:0:1::/64", "dummy prefix", "9780", BANNED },
	{ "2001::/23", "IETF protocol assignments", "2928", BANNED },
	{ "2001::/32", "Teredo", "4380", BANNED },
	{ "2001:1::1/128", "port control protocol anycast", "7723", BANNED },
	{ "2001:1::2/128", "TURN anycast", "8155", BANNED },
	{ "2001:1::3/128", "DNS-SD registration anycast", "9665", BANNED },
	{ "2001:2::/48", "benchmarking", "5180", BANNED },
	{ "2001:3::/32", "AMT", "7450", BANNED },
	{ "2001:4:112::/48", "AS112-v6", "7535", BANNED },
	{ "2001:10::/28", "deprecated (ORCHID)", "4843", BANNED },
	{ "2001:20::/28", "ORCHIDv2", "7343", BANNED },
	{ "2001:30::/28", "drone remote identification", "9374", BANNED },
	{ "2001:db8::/32", "documentation", "3849", BANNED },
	{ "2002::/16", "6to4", "3056", BANNED },
	{ "2620:4f:8000::/48", "direct delegation AS112", "7534", BANNED },
	{ "3fff::/20", "documentation", "9637", BANNED },
	{ "5f00::/16", "segment routing", "9602", BANNED },
	{ "fc00::/7", "unique-local", "4193", PRIVATE },
	{ "fe80::/10", "link-local unicast", "4291", BANNED },
};

/* In neither registry, and yet nowhere to send to. */
static const struct special_range unregistered[] = {
	{ "224.0.0.0/4", "multicast", "5771", BANNED },
	{ "100.100.100.200/32", "a cloud's metadata", "-", BANNED },
	{ "168.63.129.16/32", "a cloud's platform", "-", BANNED },
	{ "169.254.169.254/32", "clouds' metadata", "-", BANNED },
	{ "::/96", "IPv4-compatible", "4291", BANNED },
	{ "::ffff:0:0:0/96", "IPv4-translated", "2765", BANNED },
	{ "::/3", "below global unicast", "4291", BANNED },
	{ "4000::/2", "above global unicast", "4291", BANNED },
	{ "8000::/1", "above global unicast", "4291", BANNED },
	{ "fd00:ec2::/32", "a cloud's metadata", "-", BANNED },
	{ "fd20:ce::/32", "a cloud's metadata", "-", BANNED },
	{ "fd00:42::/64", "a cloud's metadata", "-", BANNED },
	{ "fec0::/10", "site-local", "3879", BANNED },
	{ "ff00::/8", "multicast", "4291", BANNED },
};

#undef LOOPBACK
#undef PRIVATE
#undef BANNED

#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

struct special_octets {
	unsigned char at[16];
	int size; /* 4 or 16 */
};

/* A range's octets and the length of its prefix. */
static int
special_read(struct special_octets *out, const char *range)
{
	char text[INET6_ADDRSTRLEN];
	const char *slash = strchr(range, '/');
	size_t len = slash != NULL ? (size_t)(slash - range) : strlen(range);
	int prefix;

	if (len >= sizeof(text))
		abort();
	memcpy(text, range, len);
	text[len] = '\0';
	out->size = strchr(text, ':') != NULL ? 16 : 4;
	if (inet_pton(out->size == 16 ? AF_INET6 : AF_INET, text, out->at) != 1)
		abort();
	prefix =
	    slash != NULL ? (int)strtol(slash + 1, NULL, 10) : out->size * 8;
	return prefix;
}

static int
special_bit(const struct special_octets *octets, int i)
{
	return octets->at[i / 8] >> (7 - i % 8) & 1;
}

/* The length of the prefix if `range` holds `address`, else -1. */
static int
special_match(const char *range, const struct special_octets *address)
{
	struct special_octets first;
	int prefix = special_read(&first, range);

	if (first.size != address->size)
		return -1;
	for (int i = 0; i < prefix; i++)
		if (special_bit(&first, i) != special_bit(address, i))
			return -1;
	return prefix;
}

/* The interface identifiers ::0:5efe:a.b.c.d and ::200:5efe:a.b.c.d. */
static int
special_is_isatap(const struct special_octets *address)
{
	const unsigned char *id = address->at + 8;

	return address->size == 16 && (id[0] == 0 || id[0] == 2) &&
	       id[1] == 0 && id[2] == 0x5e && id[3] == 0xfe;
}

static enum address_kind
special_judge(const struct special_octets *address)
{
	static const struct {
		const struct special_range *rows;
		size_t n;
	} tables[] = {
		{ iana4, LENGTH(iana4) },
		{ iana6, LENGTH(iana6) },
		{ unregistered, LENGTH(unregistered) },
	};
	enum address_kind kind = ADDRESS_GLOBAL;
	int best = -1;

	for (size_t t = 0; t < LENGTH(tables); t++)
		for (size_t i = 0; i < tables[t].n; i++) {
			const struct special_range *row = &tables[t].rows[i];
			int prefix = special_match(row->range, address);

			if (prefix > best) {
				best = prefix;
				kind = row->kind;
			}
		}
	if (kind == ADDRESS_GLOBAL && special_is_isatap(address))
		return ADDRESS_BANNED;
	return kind;
}

#endif
