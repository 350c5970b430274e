#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "own_address.h"

#define FRESH (10 * USEC_PER_SEC)

int
own_address_init(struct own_address *own, struct err *err)
{
	*own = (struct own_address){ .read_at = clock_now() };
	if (getifaddrs(&own->list) == 0)
		return 0;
	own->list = NULL;
	return err_errno(err, ERR_BROKEN, "cannot list our own addresses");
}

void
own_address_fini(struct own_address *own)
{
	if (own->list != NULL)
		freeifaddrs(own->list);
	own->list = NULL;
}

/* Addresses come and go with interfaces.  If the system does not tell, the
 * old list is better than none. */
static void
refresh(struct own_address *own)
{
	struct ifaddrs *list;
	usec_t now = clock_now();

	if (now - own->read_at < FRESH)
		return;
	own->read_at = now;
	if (getifaddrs(&list) != 0)
		return;
	own_address_fini(own);
	own->list = list;
}

static bool
is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	struct sockaddr_in a4, b4;
	struct sockaddr_in6 a6, b6;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET) {
		memcpy(&a4, a, sizeof(a4));
		memcpy(&b4, b, sizeof(b4));
		return a4.sin_addr.s_addr == b4.sin_addr.s_addr;
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(&a6, a, sizeof(a6));
	memcpy(&b6, b, sizeof(b6));
	return memcmp(&a6.sin6_addr, &b6.sin6_addr, sizeof(a6.sin6_addr)) == 0;
}

bool
own_address_has(struct own_address *own, const struct sockaddr *address)
{
	refresh(own);
	for (const struct ifaddrs *at = own->list; at != NULL;
	     at = at->ifa_next)
		if (at->ifa_addr != NULL && is_same(at->ifa_addr, address))
			return true;
	return false;
}
