/*
 * address: which addresses are global unicast, and what the others are.
 *
 * From IANA's special-purpose registries for IPv4 and IPv6, multicast, and a
 * few addresses that clouds serve secrets on.  For IPv6 it is an allow-list:
 * 2000::/3 less its exceptions.  An address that embeds an IPv4 one (mapped,
 * compatible, translated, 6to4, Teredo, NAT64, ISATAP) is never global
 * unicast, whatever is inside.
 */

#ifndef CORE_ADDRESS_H
#define CORE_ADDRESS_H

struct sockaddr;

enum address_kind {
	ADDRESS_GLOBAL, /* global unicast */
	ADDRESS_LOOPBACK, /* 127.0.0.0/8, ::1 */
	ADDRESS_PRIVATE, /* somebody's inner network */
	ADDRESS_BANNED, /* nothing that anyone should send a webhook to */
};

/*
 * What `address` is.  Unless it is global, `*why` is set to a constant that
 * names the range, such as "loopback (127.0.0.0/8)".
 */
enum address_kind address_judge(
    const struct sockaddr *address, const char **why);

#endif
