/*
 * own_address: the addresses of this machine.
 *
 * A public address of our own is global unicast like any other, and yet leads
 * to what listens here: ingest, the database, the hypervisor's agents.
 */

#ifndef HTTP_OWN_ADDRESS_H
#define HTTP_OWN_ADDRESS_H

#include <stdbool.h>

#include "base/clock.h"

struct err;
struct ifaddrs;
struct sockaddr;

struct own_address {
	struct ifaddrs *list;
	usec_t read_at;
};

/* Read them.  ERR_BROKEN if the system does not tell. */
int own_address_init(struct own_address *own, struct err *err);

/* A zeroed one is fine. */
void own_address_fini(struct own_address *own);

/* Whether `address` is one of them, its port aside, as they were at most ten
 * seconds ago. */
bool own_address_has(struct own_address *own, const struct sockaddr *address);

#endif
