#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/log.h"
#include "dispatch/message.h"
#include "dispatch/tester.h"
#include "dispatch/worker.h"
#include "http/sender.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/chore.h"
#include "store/endpoint.h"
#include "store/lane.h"
#include "store/subscription_test.h"

enum { AT_ONCE = 16 }; /* people and scripts wait for them; few do */

enum state { TAKEN, SENDING, DONE };

struct test {
	TAILQ_ENTRY(test) entry;
	struct tester *tester;
	enum state state;
	/* What is signed: as of a lease, without a lane.  The texts are copies,
	 * owned. */
	struct lane_lease lease;
	char *event_id;
	void *body;
	usec_t taken_at; /* on clock_now(), or a little earlier */
	struct endpoint *endpoint; /* owned; NULL until known */
	struct send *send; /* while SENDING */
	struct send_result result; /* once DONE */
	bool is_put; /* the step under way writes it down */
};

struct tester {
	struct worker *worker;
	tester_due_fn *due;
	void *arg;
	TAILQ_HEAD(, test) tests;
	int n;
	usec_t put_at; /* the step under way */
	bool has_load; /* it loads endpoints */
};

static void
free_test(struct test *test)
{
	if (test->state == SENDING)
		send_cancel(test->send);
	endpoint_free(test->endpoint);
	free(test->event_id);
	free(test->body);
	free(test);
}

static void
remove_test(struct tester *tester, struct test *test)
{
	TAILQ_REMOVE(&tester->tests, test, entry);
	tester->n--;
	free_test(test);
}

static void
finish(struct test *test, enum send_end end, const char *reason)
{
	test->state = DONE;
	test->result = (struct send_result){
		.end = end,
		.retry_after = -1,
		.timing = SEND_NO_TIMING,
	};
	(void)snprintf(test->result.reason, sizeof(test->result.reason), "%.*s",
	    (int)sizeof(test->result.reason) - 1, reason);
}

static void
on_sent(void *arg, const struct send_result *result)
{
	struct test *test = arg;

	test->send = NULL;
	test->state = DONE;
	test->result = *result;
	test->tester->due(test->tester->arg);
}

static int
start_send(struct test *test, struct err *err)
{
	struct endpoint *endpoint = test->endpoint;
	const struct send_tls tls = {
		.ca = endpoint->tls.ca,
		.certificate = endpoint->tls.certificate,
		.key = endpoint->tls.key,
	};
	struct message message;
	int result;

	if (message_write(&message, endpoint, &test->lease, clock_wall(),
		clock_now()) != 0)
		result = err_set(err, ERR_RETRY, "signing failed");
	else
		result = sender_start(&test->send, test->tester->worker->sender,
		    &(struct send_args){
			.url = endpoint->url,
			.headers = message.headers,
			.body = test->body,
			.len = test->lease.len,
			.timeout = endpoint->timeout,
			.tls = &tls,
			/* Half of the margin is left to write down the end. */
			.not_after = test->taken_at + endpoint->timeout +
		                     SUBSCRIPTION_TEST_MARGIN / 2,
		    },
		    on_sent, test, err);
	message_fini(&message);
	return result;
}

static void
begin(struct test *test)
{
	struct err err;

	if (test->endpoint->missing_key[0] != '\0')
		finish(test, SEND_UNSENT,
		    "a secret is sealed under a key that the dispatcher does "
		    "not have");
	else if (test->endpoint->trouble[0] != '\0')
		finish(test, SEND_IMPOSSIBLE, test->endpoint->trouble);
	else if (start_send(test, &err) == 0)
		test->state = SENDING;
	else
		finish(test,
		    err.code == ERR_REFUSED ? SEND_REFUSED : SEND_UNSENT,
		    err.text);
}

static int
add_test(struct tester *tester, const struct subscription_test_task *task)
{
	struct test *test = calloc(1, sizeof(*test));

	if (test == NULL)
		return -1;
	test->event_id = strdup(task->event_id);
	test->body = malloc(task->len + 1);
	if (test->event_id == NULL || test->body == NULL) {
		free_test(test);
		return -1;
	}
	memcpy(test->body, task->body, task->len);
	test->tester = tester;
	test->taken_at = tester->put_at;
	test->lease = (struct lane_lease){
		.subscription_id = task->subscription_id,
		.attempt = 1,
		.event_id = test->event_id,
		.body = test->body,
		.len = task->len,
	};
	TAILQ_INSERT_TAIL(&tester->tests, test, entry);
	tester->n++;
	return 0;
}

static void
put_record(struct pg_batch *batch, const struct test *test)
{
	const struct send_result *result = &test->result;
	const struct send_timing *timing = &result->timing;

	subscription_test_record(batch, test->lease.subscription_id,
	    test->event_id,
	    &(struct subscription_test_outcome){
		.end = result->end,
		.status = result->status,
		.duration = result->duration,
		.phases = {
			[DELIVERY_DNS] = timing->dns,
			[DELIVERY_CONNECT] = timing->connect,
			[DELIVERY_TLS] = timing->tls,
			[DELIVERY_WAIT] = timing->wait,
			[DELIVERY_RECEIVE] = timing->receive,
		},
		.remote = result->remote,
		.reason = result->reason,
		.headers = result->headers,
		.excerpt = result->excerpt,
	    });
}

/* What could not be written down in its time, nobody waits for; what PostgreSQL
 * refuses must not hold up the others for ever. */
static void
drop_late(struct tester *tester)
{
	struct test *test = TAILQ_FIRST(&tester->tests), *next;

	for (; test != NULL; test = next) {
		next = TAILQ_NEXT(test, entry);
		if (test->state != DONE ||
		    clock_now() < test->taken_at + test->endpoint->timeout +
				      SUBSCRIPTION_TEST_MARGIN)
			continue;
		log_error("a test was dropped: it was not recorded in time",
		    "event", test->event_id, NULL);
		remove_test(tester, test);
	}
}

void
tester_put(struct tester *tester, struct pg_batch *batch)
{
	int64_t ids[AT_ONCE];
	size_t n = 0;
	struct test *test;

	drop_late(tester);
	TAILQ_FOREACH (test, &tester->tests, entry) {
		test->is_put = test->state == DONE;
		if (test->is_put)
			put_record(batch, test);
		else if (test->state == TAKEN)
			ids[n++] = test->lease.subscription_id;
	}
	tester->has_load = n > 0;
	if (n > 0)
		endpoint_load(batch, ids, n);
	subscription_test_take(
	    batch, tester->worker->name, AT_ONCE - tester->n);
	tester->put_at = clock_now();
}

/* The one that was taken for this endpoint, which becomes its own. */
static void
give(struct tester *tester, struct endpoint *endpoint)
{
	struct test *test;

	TAILQ_FOREACH (test, &tester->tests, entry) {
		if (test->state == TAKEN &&
		    test->lease.subscription_id == endpoint->subscription_id) {
			test->endpoint = endpoint;
			begin(test);
			return;
		}
	}
	endpoint_free(endpoint);
}

static void
read_endpoints(struct tester *tester, const struct pg_rows *rows)
{
	struct endpoint *endpoint;
	struct err err;
	int row = 0;

	while (row < pg_count(rows)) {
		if (endpoint_read(&endpoint, rows, &row, &tester->worker->ring,
			tester->put_at, &err) != 0) {
			log_error(
			    "an endpoint was dropped", "error", err.text, NULL);
			return; /* the next step asks again */
		}
		give(tester, endpoint);
	}
}

static void
read_tasks(struct tester *tester, const struct pg_rows *rows)
{
	struct subscription_test_task task;

	for (int row = 0; row < pg_count(rows); row++) {
		subscription_test_take_read(rows, row, &task);
		if (add_test(tester, &task) != 0)
			log_error("a test was dropped: out of memory", NULL);
	}
}

static bool
has_step(const struct tester *tester)
{
	const struct test *test;

	TAILQ_FOREACH (test, &tester->tests, entry)
		if (test->state != SENDING)
			return true;
	return false;
}

void
tester_answered(
    struct tester *tester, struct pg_rows *const *rows, struct chore_step *out)
{
	struct test *test = TAILQ_FIRST(&tester->tests), *next;
	int before = tester->n;

	*out = (struct chore_step){ .next_in = -1 };
	for (; test != NULL; test = next) {
		next = TAILQ_NEXT(test, entry);
		if (!test->is_put)
			continue;
		rows++;
		out->did++;
		remove_test(tester, test);
	}
	if (tester->has_load) {
		out->did++;
		read_endpoints(tester, *rows++);
	}
	out->did += pg_count(*rows);
	read_tasks(tester, *rows);
	/* Also if there was no room for more, and now there is. */
	if (has_step(tester) || (before == AT_ONCE && tester->n < before))
		out->next_in = 0;
}

int
tester_open(struct tester **out, struct worker *worker, tester_due_fn *due,
    void *arg, struct err *err)
{
	struct tester *tester = calloc(1, sizeof(*tester));

	if (tester == NULL)
		return err_set(err, ERR_NOMEM, "tester");
	tester->worker = worker;
	tester->due = due;
	tester->arg = arg;
	TAILQ_INIT(&tester->tests);
	*out = tester;
	return 0;
}

void
tester_close(struct tester *tester)
{
	struct test *test;

	if (tester == NULL)
		return;
	while ((test = TAILQ_FIRST(&tester->tests)) != NULL)
		remove_test(tester, test);
	free(tester);
}
