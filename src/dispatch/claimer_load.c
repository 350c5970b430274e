#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "dispatch/claimer_inside.h"
#include "dispatch/endpoints.h"
#include "dispatch/worker.h"
#include "pg/row.h"

/* At most so often is a missing key logged. */
#define KEYLESS_SAID_EVERY (60 * USEC_PER_SEC)

enum { LOADS = 100 }; /* in one batch */

/* An attempt whose endpoint is known, at the version it was leased at. */
static bool
has_endpoint(struct attempt *attempt)
{
	if (attempt->endpoint == NULL)
		attempt->endpoint = endpoints_hold(attempt->worker->endpoints,
		    attempt->lease.subscription_id, attempt->lease.version);
	return attempt->endpoint != NULL;
}

static void
start(struct claimer *claimer, struct attempt *attempt)
{
	if (claimer->worker->stopping)
		attempt_unsent(attempt);
	else if (has_endpoint(attempt))
		attempt_start(attempt);
	else {
		TAILQ_INSERT_TAIL(&claimer->waiting, attempt, entry);
		claimer_look(claimer, 0);
	}
}

void
claimer_start_waiting(struct claimer *claimer)
{
	struct attempt_list list = TAILQ_HEAD_INITIALIZER(list);
	struct attempt *attempt;

	TAILQ_CONCAT(&list, &claimer->waiting, entry);
	while ((attempt = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, attempt, entry);
		start(claimer, attempt);
	}
}

void
claimer_begin(struct claimer *claimer, struct lane_lease *lease,
    const struct pg_rows *bodies, int row, usec_t leased_at)
{
	bool has_body = lane_body_read(bodies, row, lease);
	struct attempt *attempt;
	struct err err;

	if (attempt_new(&attempt, claimer->worker, lease, leased_at, &err) != 0)
		log_error("a lease was dropped", "error", err.text, NULL);
	else if (has_body)
		start(claimer, attempt);
	else {
		log_error("a delivery is given back: another session answered "
			  "for its payload; connect without a pooler",
		    NULL);
		attempt_unsent(attempt);
	}
}

/* Each of its deliveries is given back, so once is enough for a while. */
static void
say_keyless(struct claimer *claimer, const struct endpoint *endpoint)
{
	char id[24];

	if (endpoint->missing_key[0] == '\0' ||
	    (claimer->keyless_at != 0 &&
		claimer->asked_at < claimer->keyless_at + KEYLESS_SAID_EVERY))
		return;
	claimer->keyless_at = claimer->asked_at;
	(void)snprintf(id, sizeof(id), "%" PRId64, endpoint->subscription_id);
	log_error("deliveries wait: a secret is sealed under a key that is not "
		  "in secret_key_file; add it and restart",
	    "subscription", id, "key", endpoint->missing_key, NULL);
}

static int
read_endpoint(struct claimer *claimer, const struct pg_rows *rows, int *row,
    struct err *err)
{
	struct worker *worker = claimer->worker;
	struct endpoint *endpoint;

	if (endpoint_read(&endpoint, rows, row, &worker->ring,
		claimer->asked_at, err) != 0)
		return -1;
	say_keyless(claimer, endpoint);
	return endpoints_put(worker->endpoints, endpoint, err);
}

/* Subscriptions stay as tombstones, so that each comes back. */
static void
on_loaded(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;
	struct err failed;
	int row = 0;

	if (!claimer_answered(claimer, err))
		return;
	while (row < pg_count(rows[0])) {
		if (read_endpoint(claimer, rows[0], &row, &failed) != 0) {
			log_error("an endpoint was dropped", "error",
			    failed.text, NULL);
			claimer_look(claimer, CLAIMER_AGAIN_AFTER);
			return;
		}
	}
	claimer_start_waiting(claimer);
	claimer_step(claimer);
}

void
claimer_load(struct claimer *claimer, struct pg_batch *batch)
{
	struct attempt *attempt;
	int64_t ids[LOADS];
	size_t n = 0;

	TAILQ_FOREACH (attempt, &claimer->waiting, entry) {
		if (n < LOADS && attempt->endpoint == NULL &&
		    (n == 0 || ids[n - 1] != attempt->lease.subscription_id))
			ids[n++] = attempt->lease.subscription_id;
	}
	endpoint_load(batch, ids, n);
	claimer_submit(claimer, batch, on_loaded);
}
