#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "core/address.h"

/* An address as 128 bits; an IPv4 address is the topmost 32 of them. */
struct bits {
	uint64_t high, low;
};

struct range {
	sa_family_t family;
	struct bits first;
	int prefix;
	enum address_kind kind;
	const char *why;
};

/* clang-format off */
/* Octets are decimal, groups hexadecimal, as they are always written. */
#define V4(a, b, c, d) AF_INET, { (uint64_t)(a) << 56 | (uint64_t)(b) << 48 | \
	(uint64_t)(c) << 40 | (uint64_t)(d) << 32, 0 }
#define HALF(a, b, c, d) ((uint64_t)0x##a << 48 | (uint64_t)0x##b << 32 | \
	(uint64_t)0x##c << 16 | (uint64_t)0x##d)
#define V6(a, b, c, d) AF_INET6, { HALF(a, b, c, d), 0 }
#define L6(a, b, c, d, e, f, g, h) AF_INET6, \
	{ HALF(a, b, c, d), HALF(e, f, g, h) }

#define LOOPBACK ADDRESS_LOOPBACK
#define PRIVATE ADDRESS_PRIVATE
#define BANNED ADDRESS_BANNED

/* The first row that holds an address judges it: a part stands before the
 * whole that it is cut from. */
static const struct range ranges[] = {
	{ V4(0, 0, 0, 0), 8, BANNED, "this network (0.0.0.0/8)" },
	{ V4(10, 0, 0, 0), 8, PRIVATE, "private (10.0.0.0/8)" },
	{ V4(100, 100, 100, 200), 32, BANNED, "metadata (100.100.100.200)" },
	{ V4(100, 64, 0, 0), 10, PRIVATE, "carrier NAT (100.64.0.0/10)" },
	{ V4(127, 0, 0, 0), 8, LOOPBACK, "loopback (127.0.0.0/8)" },
	{ V4(168, 63, 129, 16), 32, BANNED, "metadata (168.63.129.16)" },
	{ V4(169, 254, 169, 254), 32, BANNED, "metadata (169.254.169.254)" },
	{ V4(169, 254, 0, 0), 16, BANNED, "link-local (169.254.0.0/16)" },
	{ V4(172, 16, 0, 0), 12, PRIVATE, "private (172.16.0.0/12)" },
	{ V4(192, 0, 0, 0), 24, BANNED, "protocols (192.0.0.0/24)" },
	{ V4(192, 0, 2, 0), 24, BANNED, "documentation (192.0.2.0/24)" },
	{ V4(192, 31, 196, 0), 24, BANNED, "AS112 (192.31.196.0/24)" },
	{ V4(192, 52, 193, 0), 24, BANNED, "AMT (192.52.193.0/24)" },
	{ V4(192, 88, 99, 0), 24, BANNED, "6to4 relay (192.88.99.0/24)" },
	{ V4(192, 168, 0, 0), 16, PRIVATE, "private (192.168.0.0/16)" },
	{ V4(192, 175, 48, 0), 24, BANNED, "AS112 (192.175.48.0/24)" },
	{ V4(198, 18, 0, 0), 15, BANNED, "benchmarking (198.18.0.0/15)" },
	{ V4(198, 51, 100, 0), 24, BANNED, "documentation (198.51.100.0/24)" },
	{ V4(203, 0, 113, 0), 24, BANNED, "documentation (203.0.113.0/24)" },
	{ V4(224, 0, 0, 0), 4, BANNED, "multicast (224.0.0.0/4)" },
	{ V4(240, 0, 0, 0), 4, BANNED, "reserved (240.0.0.0/4)" },

	{ V6(0, 0, 0, 0), 128, BANNED, "unspecified (::)" },
	{ L6(0, 0, 0, 0, 0, 0, 0, 1), 128, LOOPBACK, "loopback (::1)" },
	{ V6(0, 0, 0, 0), 96, BANNED, "compatible (::/96)" },
	{ L6(0, 0, 0, 0, 0, ffff, 0, 0), 96, BANNED, "mapped (::ffff:0:0/96)" },
	{ L6(0, 0, 0, 0, ffff, 0, 0, 0), 96, BANNED, "SIIT (::ffff:0:0:0/96)" },
	{ V6(64, ff9b, 0, 0), 96, BANNED, "NAT64 (64:ff9b::/96)" },
	{ V6(64, ff9b, 1, 0), 48, BANNED, "local NAT64 (64:ff9b:1::/48)" },
	{ V6(100, 0, 0, 0), 64, BANNED, "discard-only (100::/64)" },
	{ V6(100, 0, 0, 1), 64, BANNED, "dummy (100:0:0:1::/64)" },
	{ V6(2001, 0, 0, 0), 32, BANNED, "Teredo (2001::/32)" },
	{ V6(2001, 2, 0, 0), 48, BANNED, "benchmarking (2001:2::/48)" },
	{ V6(2001, 0, 0, 0), 23, BANNED, "protocols (2001::/23)" },
	{ V6(2001, db8, 0, 0), 32, BANNED, "documentation (2001:db8::/32)" },
	{ V6(2002, 0, 0, 0), 16, BANNED, "6to4 (2002::/16)" },
	{ V6(2620, 4f, 8000, 0), 48, BANNED, "AS112 (2620:4f:8000::/48)" },
	{ V6(3fff, 0, 0, 0), 20, BANNED, "documentation (3fff::/20)" },
	{ V6(5f00, 0, 0, 0), 16, BANNED, "segment routing (5f00::/16)" },
	{ V6(fd00, ec2, 0, 0), 32, BANNED, "metadata (fd00:ec2::/32)" },
	{ V6(fd20, ce, 0, 0), 32, BANNED, "metadata (fd20:ce::/32)" },
	{ V6(fd00, 42, 0, 0), 64, BANNED, "metadata (fd00:42::/64)" },
	{ V6(fc00, 0, 0, 0), 7, PRIVATE, "unique local (fc00::/7)" },
	{ V6(fe80, 0, 0, 0), 10, BANNED, "link-local (fe80::/10)" },
	{ V6(fec0, 0, 0, 0), 10, BANNED, "site-local (fec0::/10)" },
	{ V6(ff00, 0, 0, 0), 8, BANNED, "multicast (ff00::/8)" },
};

/* What IPv6 has been given out of; all else is unassigned. */
static const struct range global6 = {
	V6(2000, 0, 0, 0), 3, ADDRESS_GLOBAL, NULL
};
/* clang-format on */

/* The bits of `n` octets, read as one big-endian number. */
static uint64_t
read_octets(const unsigned char *octets, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | octets[i];
	return value;
}

static struct bits
read_address(const struct sockaddr *address)
{
	struct bits bits = { 0, 0 };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	unsigned char octets[16];

	if (address->sa_family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		memcpy(octets, &v4.sin_addr, 4);
		bits.high = read_octets(octets, 4) << 32;
	} else {
		memcpy(&v6, address, sizeof(v6));
		memcpy(octets, &v6.sin6_addr, sizeof(octets));
		bits.high = read_octets(octets, 8);
		bits.low = read_octets(octets + 8, 8);
	}
	return bits;
}

/* The first `n` bits of 64, 0 <= n. */
static uint64_t
mask(int n)
{
	if (n <= 0)
		return 0;
	return n >= 64 ? UINT64_MAX : UINT64_MAX << (64 - n);
}

static int
holds(const struct range *range, struct bits bits)
{
	return ((bits.high ^ range->first.high) & mask(range->prefix)) == 0 &&
	       ((bits.low ^ range->first.low) & mask(range->prefix - 64)) == 0;
}

/* RFC 5214 section 6.1: the interface identifier is 0000:5efe or 0200:5efe and
 * an IPv4 address, under any prefix. */
static int
is_isatap(struct bits bits)
{
	return (bits.low >> 32 & ~(uint64_t)0x02000000) == 0x5efe;
}

enum address_kind
address_judge(const struct sockaddr *address, const char **why)
{
	struct bits bits;

	if (address->sa_family != AF_INET && address->sa_family != AF_INET6) {
		*why = "neither IPv4 nor IPv6";
		return ADDRESS_BANNED;
	}
	bits = read_address(address);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (ranges[i].family != address->sa_family ||
		    !holds(&ranges[i], bits))
			continue;
		*why = ranges[i].why;
		return ranges[i].kind;
	}
	if (address->sa_family == AF_INET)
		return ADDRESS_GLOBAL;
	if (is_isatap(bits)) {
		*why = "ISATAP (an IPv4 address inside)";
		return ADDRESS_BANNED;
	}
	if (!holds(&global6, bits)) {
		*why = "not global unicast (outside 2000::/3)";
		return ADDRESS_BANNED;
	}
	return ADDRESS_GLOBAL;
}
