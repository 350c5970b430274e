/*
 * worker: what the parts of one dispatcher share.
 *
 *	claimer --leases--> attempts --outcomes--> recorder
 *	   ^                   ^                      |
 *	   |                   +------ next heads ----+
 *	   +---------------- free places -------------+
 *
 * All durable state is in PostgreSQL.  What lives here may be lost at any
 * moment: leases run out, and another dispatcher goes on.
 */

#ifndef DISPATCH_WORKER_H
#define DISPATCH_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/seal.h"

struct claimer;
struct endpoints;
struct event_base;
struct recorder;
struct sender;

/* Of a request at a rate, after its claim, at least; else it is given back. */
#define WORKER_BEGIN_WITHIN (100 * USEC_PER_MS)

struct worker_conf {
	char *allow_hosts;
	bool any_port;
	usec_t backlog_old; /* 0: none is */
	int64_t batch; /* most lanes in one claim, outcomes in one record */
	char *ca_file;
	char *revoked_file;
	char *database;
	char *database_role;
	bool development;
	usec_t lease_margin;
	char *log_level;
	int64_t max_in_flight;
	char *nameserver;
	usec_t poll;
	usec_t retention_log; /* 0: for ever, as the next */
	usec_t retention_payload;
	bool retry_jitter;
	char *secret_key_file;
	usec_t shutdown_grace;
	usec_t statement_timeout; /* half of lease_margin */
};

struct worker {
	struct event_base *loop;
	const struct worker_conf *conf;
	char name[128]; /* unique to this process, in lane.lease_worker */
	struct seal_ring ring; /* that secrets are sealed under */
	struct endpoints *endpoints;
	struct sender *sender;
	struct claimer *claimer;
	struct recorder *recorder;
	int held; /* leases held: attempts that exist */
	bool stopping; /* nothing new is begun */
};

/* Room for more leases in one claim, and the most that there ever is. */
int worker_room(const struct worker *worker);
int worker_room_max(const struct worker *worker);

/* An attempt came to its end: its place is free.  Ends the loop when stopping
 * and this was the last. */
void worker_freed(struct worker *worker);

/* What no restart by itself will mend: say why once, and end the loop. */
struct err;
void worker_fail(struct worker *worker, const struct err *err);

#endif
