/*
 * crowd: which address has how many connections, and which of them wait for
 * their client.
 *
 * When all connections are taken, one that waits is given up for a newcomer:
 * one of the address that has most such, so that whoever holds many holds them
 * only until somebody else comes.  Of one address those that ask for nothing
 * go before those in the middle of a request, and whoever has waited longest
 * goes first.  All of it costs the same whatever the number.
 *
 * So it is with the memory that is kept for what they send: crowd counts how much
 * each address has.
 *
 * An IPv6 client is its /64, which is what one subscriber has.
 */

#ifndef HTTP_CROWD_H
#define HTTP_CROWD_H

#include <stddef.h>
#include <sys/queue.h>

#include "base/clock.h"

struct crowd;
struct crowd_address;
struct err;
struct sockaddr;

enum crowd_wait {
	CROWD_BUSY, /* its request is the program's to answer */
	CROWD_IDLE, /* no octet of a request has come */
	CROWD_SLOW, /* in the middle of a request, or of its answer */
	CROWD_OVER, /* has its last answer */
};

/* One connection, as a member of its owner's. */
struct crowd_guest {
	TAILQ_ENTRY(crowd_guest) link; /* unless busy */
	struct crowd_address *address;
	enum crowd_wait wait;
	usec_t since; /* when it began to wait so */
	size_t held; /* octets of memory */
};

/* For `max` connections at once, and a few more. */
int crowd_open(struct crowd **out, int max, struct err *err);

/* With nobody in it.  NULL does nothing. */
void crowd_close(struct crowd *crowd);

/* `guest` comes, and is idle.  -1 if memory is short. */
int crowd_enter(struct crowd *crowd, struct crowd_guest *guest,
    const struct sockaddr *from);
void crowd_leave(struct crowd *crowd, struct crowd_guest *guest);

/* It waits in another way from now on, unless it waits so already. */
void crowd_wait(
    struct crowd *crowd, struct crowd_guest *guest, enum crowd_wait wait);

/* How many are not busy; how many there are of this guest's address. */
int crowd_waiting(const struct crowd *crowd);
int crowd_beside(const struct crowd_guest *guest);

/* It holds so much memory from now on, and none when it leaves; how much all of
 * its address hold. */
void crowd_hold(struct crowd_guest *guest, size_t octets);
size_t crowd_held_beside(const struct crowd_guest *guest);

/* Who goes first, of all or of this guest's address; NULL if all are busy. */
struct crowd_guest *crowd_first(const struct crowd *crowd);
struct crowd_guest *crowd_first_beside(const struct crowd_guest *guest);

#endif
