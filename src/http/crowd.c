#include <assert.h>
#include <netinet/in.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "crowd.h"

enum { KEY = 16, PREFIX = 8, BESIDES = 2 };

TAILQ_HEAD(guests, crowd_guest);
TAILQ_HEAD(addresses, crowd_address);

struct crowd_address {
	unsigned char key[KEY]; /* first: the tree compares it */
	TAILQ_ENTRY(crowd_address) link; /* by `waiting` */
	int count; /* its guests */
	int waiting; /* of them, those that are not busy */
	size_t held; /* by all of them */
	struct guests idle, slow;
};

struct crowd {
	void *tree; /* of addresses; the C library keeps it balanced */
	int waiting; /* guests that are not busy */
	int most; /* no address has more of them */
	int max;
	struct addresses by_waiting[]; /* up to `max` */
};

int
crowd_open(struct crowd **out, int max, struct err *err)
{
	size_t n = (size_t)max + BESIDES;
	struct crowd *crowd =
	    calloc(1, sizeof(*crowd) + (n + 1) * sizeof(struct addresses));

	if (crowd == NULL)
		return err_set(err, ERR_NOMEM, "connections");
	crowd->max = (int)n;
	for (size_t i = 0; i <= n; i++)
		TAILQ_INIT(&crowd->by_waiting[i]);
	*out = crowd;
	return 0;
}

void
crowd_close(struct crowd *crowd)
{
	if (crowd == NULL)
		return;
	assert(crowd->tree == NULL);
	free(crowd);
}

static void
make_key(unsigned char key[KEY], const struct sockaddr *from)
{
	memset(key, 0, KEY);
	if (from->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		bool is_mapped;

		memcpy(&in6, from, sizeof(in6));
		is_mapped = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr);
		memcpy(key, &in6.sin6_addr, is_mapped ? KEY : PREFIX);
	} else {
		struct sockaddr_in in;

		memcpy(&in, from, sizeof(in));
		key[10] = key[11] = 0xff;
		memcpy(key + 12, &in.sin_addr, 4);
	}
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, KEY);
}

/* The address, made if it is new; NULL if memory is short. */
static struct crowd_address *
find(struct crowd *crowd, const struct sockaddr *from)
{
	struct crowd_address *address = calloc(1, sizeof(*address)), **found;

	if (address == NULL)
		return NULL;
	make_key(address->key, from);
	found = tsearch(address, &crowd->tree, compare);
	if (found == NULL || *found != address) {
		free(address);
		return found == NULL ? NULL : *found;
	}
	TAILQ_INIT(&address->idle);
	TAILQ_INIT(&address->slow);
	TAILQ_INSERT_TAIL(&crowd->by_waiting[0], address, link);
	return address;
}

/* One more, or one less, of its guests waits. */
static void
rank(struct crowd *crowd, struct crowd_address *address, int step)
{
	TAILQ_REMOVE(&crowd->by_waiting[address->waiting], address, link);
	crowd->waiting += step;
	address->waiting += step;
	assert(address->waiting >= 0 && address->waiting <= crowd->max);
	TAILQ_INSERT_TAIL(&crowd->by_waiting[address->waiting], address, link);
	if (address->waiting > crowd->most)
		crowd->most = address->waiting;
	while (crowd->most > 0 && TAILQ_EMPTY(&crowd->by_waiting[crowd->most]))
		crowd->most--;
}

static struct guests *
list_of(const struct crowd_guest *guest)
{
	return guest->wait == CROWD_SLOW ? &guest->address->slow
	                                 : &guest->address->idle;
}

void
crowd_wait(struct crowd *crowd, struct crowd_guest *guest, enum crowd_wait wait)
{
	int step = (wait != CROWD_BUSY) - (guest->wait != CROWD_BUSY);

	if (guest->wait == wait)
		return;
	if (guest->wait != CROWD_BUSY)
		TAILQ_REMOVE(list_of(guest), guest, link);
	guest->wait = wait;
	if (step != 0)
		rank(crowd, guest->address, step);
	if (wait == CROWD_BUSY)
		return;
	guest->since = wait == CROWD_OVER ? 0 : clock_now();
	if (wait == CROWD_OVER)
		TAILQ_INSERT_HEAD(list_of(guest), guest, link);
	else
		TAILQ_INSERT_TAIL(list_of(guest), guest, link);
}

int
crowd_enter(
    struct crowd *crowd, struct crowd_guest *guest, const struct sockaddr *from)
{
	*guest = (struct crowd_guest){ .wait = CROWD_BUSY };
	guest->address = find(crowd, from);
	if (guest->address == NULL)
		return -1;
	guest->address->count++;
	crowd_wait(crowd, guest, CROWD_IDLE);
	return 0;
}

void
crowd_leave(struct crowd *crowd, struct crowd_guest *guest)
{
	struct crowd_address *address = guest->address;

	crowd_wait(crowd, guest, CROWD_BUSY);
	if (--address->count > 0)
		return;
	TAILQ_REMOVE(&crowd->by_waiting[0], address, link);
	(void)tdelete(address, &crowd->tree, compare);
	free(address);
}

int
crowd_waiting(const struct crowd *crowd)
{
	return crowd->waiting;
}

int
crowd_beside(const struct crowd_guest *guest)
{
	return guest->address->count;
}

void
crowd_hold(struct crowd_guest *guest, size_t octets)
{
	guest->address->held -= guest->held;
	guest->address->held += octets;
	guest->held = octets;
}

size_t
crowd_held_beside(const struct crowd_guest *guest)
{
	return guest->address->held;
}

static struct crowd_guest *
first_of(const struct crowd_address *address)
{
	struct crowd_guest *guest = TAILQ_FIRST(&address->idle);

	return guest == NULL ? TAILQ_FIRST(&address->slow) : guest;
}

struct crowd_guest *
crowd_first(const struct crowd *crowd)
{
	if (crowd->most == 0)
		return NULL;
	return first_of(TAILQ_FIRST(&crowd->by_waiting[crowd->most]));
}

struct crowd_guest *
crowd_first_beside(const struct crowd_guest *guest)
{
	return first_of(guest->address);
}
