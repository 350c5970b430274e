/*
 * target: where a request may go.
 *
 * A subscription's URL is chosen by a stranger, so it is an attack until
 * proven otherwise.  The URL is parsed once, here, checked against the rules,
 * and rebuilt in one canonical form; nothing else is ever given to the client.
 * Addresses are checked at registration if the host is a literal, and at every
 * attempt, on the address really connected to.
 *
 *	                        accepted
 *	always                  https, port 443, public names and addresses
 *	any_port                https on any port
 *	development             for 127.0.0.0/8, ::1 and localhost alone:
 *	                        http, any port, and loopback addresses
 *	allow_hosts             for the hosts named: private and loopback
 *	                        addresses, names of inner networks
 *
 * Nothing opens link-local, metadata, multicast, unspecified or reserved
 * addresses, nor IPv6 addresses with IPv4 ones inside.
 *
 * Pure: it resolves nothing.
 */

#ifndef CORE_TARGET_H
#define CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sockaddr;

enum {
	TARGET_URL_MAX = 8192, /* octets of a URL */
	TARGET_HOST_MAX = 253, /* octets of a name, RFC 1035 */
};

/* What an installation allows. */
struct target_policy {
	bool development; /* opens http, loopback and any port on it */
	bool any_port; /* allows ports other than 443 */
	const char *allow_hosts; /* exact hosts, comma-separated, that may be
	                            internal; IPv6 in brackets; "" for none */
};

/* Where a URL leads. */
struct target_site {
	bool is_https;
	bool is_literal; /* the host is an address: nothing to resolve */
	bool is_loopback; /* the host is written as loopback */
	bool is_allowed_host; /* named by `allow_hosts` */
	uint16_t port;
	char host[TARGET_HOST_MAX + 3]; /* lower case; IPv6 in brackets */
};

struct target {
	struct target_site site;
	char url[TARGET_URL_MAX + 64]; /* the canonical form */
};

/*
 * Parse and judge `url`.  ERR_REFUSED says which rule it breaks and what would
 * be accepted.
 */
int target_parse(struct target *out, const char *url, size_t len,
    const struct target_policy *policy, struct err *err);

/*
 * Judge an address about to be connected to for `site`.  Returns NULL if it
 * may be, else the reason, a constant such as "loopback (127.0.0.0/8)".
 */
const char *target_refuses(const struct target_site *site,
    const struct target_policy *policy, const struct sockaddr *address);

#endif
