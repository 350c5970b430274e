#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "deliveries.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "problem.h"
#include "store/audit.h"
#include "store/subscription_test.h"
#include "subscription_tests.h"
#include "subscriptions.h"

/* Between two looks: most endpoints answer soon. */
#define FIRST_WAIT (20 * USEC_PER_MS)
#define LONGEST_WAIT (200 * USEC_PER_MS)

struct test {
	TAILQ_ENTRY(test) link;
	struct subscription_tests *tests;
	struct call *call;
	struct subscription_test_asked asked;
	struct event *timer;
	usec_t wait;
	bool is_at_desk; /* its answer is to come */
};

struct subscription_tests {
	struct ingest *ingest;
	TAILQ_HEAD(, test) list;
	bool is_stopping;
};

static void
free_test(struct test *test)
{
	TAILQ_REMOVE(&test->tests->list, test, link);
	if (test->timer != NULL)
		event_free(test->timer);
	free(test);
}

static void
fail(struct test *test, const struct err *err)
{
	problem_reply_err(test->call, err);
	free_test(test);
}

static void
refuse(struct test *test, int status, const char *why)
{
	problem_reply(test->call, status, "%s", why);
	free_test(test);
}

static void
reply(struct test *test, const struct pg_rows *rows)
{
	struct buf body = { 0 };

	buf_puts(&body, "{\"event_id\":");
	json_quote(&body, test->asked.event_id, strlen(test->asked.event_id));
	deliveries_put_try(&body, rows, 0);
	buf_puts(&body, "}");
	call_json(test->call, 200, &body);
	free_test(test);
}

/* Until the next look; or it is over, and freed. */
static void
rest(struct test *test)
{
	struct timeval wait = clock_timeval(test->wait);

	test->wait = test->wait < LONGEST_WAIT ? 2 * test->wait : LONGEST_WAIT;
	if (test->tests->is_stopping)
		refuse(test, 503, "it is stopping; try again");
	else if (event_add(test->timer, &wait) != 0)
		refuse(test, 503, "out of memory");
}

static void
on_looked(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct test *test = arg;
	enum subscription_test_state state;

	test->is_at_desk = false;
	if (err != NULL) {
		fail(test, err);
		return;
	}
	state = subscription_test_look_read(rows[0]);
	if (state == SUBSCRIPTION_TEST_DONE)
		reply(test, rows[0]);
	else if (state == SUBSCRIPTION_TEST_WAITS)
		rest(test);
	else
		refuse(test, state == SUBSCRIPTION_TEST_NOT_TAKEN ? 503 : 504,
		    subscription_test_why(state));
}

static void
look(struct test *test)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		refuse(test, 503, "out of memory");
		return;
	}
	subscription_test_look(
	    batch, test->asked.subscription_id, test->asked.event_id);
	test->is_at_desk = true;
	if (desk_submit(
		test->tests->ingest->desk, batch, on_looked, test, &err) == 0)
		return;
	fail(test, &err);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	look(arg);
}

static void
on_asked(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct test *test = arg;

	test->is_at_desk = false;
	if (err != NULL) {
		fail(test, err);
		return;
	}
	switch (subscription_test_asked_read(rows[0])) {
	case SUBSCRIPTION_TEST_MISSING:
		subscriptions_missing(test->call);
		free_test(test);
		break;
	case SUBSCRIPTION_TEST_BUSY:
		refuse(test, 429,
		    "a test of it is under way or was asked for just now, or "
		    "too many of others are: wait for their answers");
		break;
	case SUBSCRIPTION_TEST_ASKED:
		rest(test);
		break;
	}
}

static int
ask(struct test *test, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct call_who who;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "test");
	call_who(&who, test->call);
	test->asked.tenant_id = test->call->key.tenant_id;
	test->asked.subscription_id = call_id(test->call);
	test->asked.actor = who.actor;
	if (subscription_test_ask(batch, &test->asked, err) != 0) {
		pg_batch_free(batch);
		return -1;
	}
	test->asked.actor = NULL; /* the batch has a copy */
	audit_from(batch, who.source);
	test->is_at_desk = true;
	return desk_submit(
	    test->tests->ingest->desk, batch, on_asked, test, err);
}

void
subscription_tests_post(struct call *call)
{
	struct subscription_tests *tests = call->ingest->tests;
	struct test *test = calloc(1, sizeof(*test));
	struct err err;

	if (test == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	*test =
	    (struct test){ .tests = tests, .call = call, .wait = FIRST_WAIT };
	TAILQ_INSERT_TAIL(&tests->list, test, link);
	test->timer = evtimer_new(tests->ingest->loop, on_timer, test);
	if (test->timer == NULL)
		refuse(test, 503, "out of memory");
	else if (ask(test, &err) != 0)
		fail(test, &err);
}

int
subscription_tests_open(
    struct subscription_tests **out, struct ingest *ingest, struct err *err)
{
	struct subscription_tests *tests = calloc(1, sizeof(*tests));

	if (tests == NULL)
		return err_set(err, ERR_NOMEM, "tests");
	tests->ingest = ingest;
	TAILQ_INIT(&tests->list);
	*out = tests;
	return 0;
}

void
subscription_tests_stop(struct subscription_tests *tests)
{
	struct test *test = TAILQ_FIRST(&tests->list), *next;

	tests->is_stopping = true;
	for (; test != NULL; test = next) {
		next = TAILQ_NEXT(test, link);
		if (!test->is_at_desk)
			refuse(test, 503, "it is stopping; try again");
	}
}

void
subscription_tests_close(struct subscription_tests *tests)
{
	if (tests == NULL)
		return;
	subscription_tests_stop(tests);
	free(tests);
}
