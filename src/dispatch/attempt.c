#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/err.h"
#include "dispatch/attempt.h"
#include "dispatch/dice.h"
#include "dispatch/endpoints.h"
#include "dispatch/message.h"
#include "dispatch/recorder.h"
#include "dispatch/worker.h"
#include "http/sender.h"

/* Before what could not be sent is claimed again; what keeps it from being sent
 * would else be asked without pause. */
#define UNSENT_WAIT (100 * USEC_PER_MS)

/* The same where a key is missing: another dispatcher may have it; who has it
 * not is asked again and again. */
#define KEYLESS_WAIT (10 * USEC_PER_SEC)

/* Requests that are begun before answers are looked for again.  An endpoint
 * that is fast is then sent to by few handles and on few connections, which the
 * processor's caches hold, however many are claimed at once. */
enum { AT_ONCE = 8 };

/* Those that are LEASED and wait for that, and when they go on. */
static struct attempt_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
static struct event turn;
static int begun; /* since `turn` */

/* Those that are SENDING, so that a shutdown can find them. */
static struct attempt_list sending = TAILQ_HEAD_INITIALIZER(sending);

static int
copy_body(
    struct attempt *attempt, const struct lane_lease *from, struct err *err)
{
	char *event_id = strdup(from->event_id);
	char *body = malloc(from->len + 1);

	if (event_id == NULL || body == NULL) {
		free(event_id);
		free(body);
		return err_set(err, ERR_NOMEM, "attempt");
	}
	memcpy(body, from->body, from->len);
	attempt->lease.event_id = event_id;
	attempt->lease.body = body;
	attempt->lease.len = from->len;
	return 0;
}

int
attempt_new(struct attempt **out, struct worker *worker,
    const struct lane_lease *lease, usec_t leased_at, struct err *err)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));

	if (attempt == NULL)
		return err_set(err, ERR_NOMEM, "attempt");
	*attempt = (struct attempt){
		.state = ATTEMPT_LEASED,
		.worker = worker,
		.lease = *lease,
		.leased_at = leased_at,
	};
	attempt->lease.event_id = NULL;
	attempt->lease.body = NULL;
	worker->held++;
	if (lease->body != NULL && copy_body(attempt, lease, err) != 0) {
		attempt_free(attempt);
		return -1;
	}
	*out = attempt;
	return 0;
}

void
attempt_free(struct attempt *attempt)
{
	struct worker *worker = attempt->worker;
	/* The copies are ours, so const is only a promise to others. */
	void *event_id = (void *)(uintptr_t)attempt->lease.event_id;
	void *body = (void *)(uintptr_t)attempt->lease.body;
	void *headers = (void *)(uintptr_t)attempt->outcome.headers;
	void *excerpt = (void *)(uintptr_t)attempt->outcome.excerpt;

	assert(attempt->state != ATTEMPT_SENDING);
	if (attempt->endpoint != NULL) {
		attempt->endpoint->nintricate -= attempt->is_intricate;
		endpoints_release(attempt->endpoint);
	}
	free(event_id);
	free(body);
	free(headers);
	free(excerpt);
	free(attempt);
	worker->held--;
	worker_freed(worker);
}

/* A secret of its endpoint is sealed under a key that we do not have. */
static bool
is_keyless(const struct attempt *attempt)
{
	return attempt->endpoint != NULL &&
	       attempt->endpoint->endpoint->missing_key[0] != '\0';
}

/* A copy, or NULL for nothing; also without memory: the outcome comes first. */
static const char *
keep(const char *text)
{
	return text[0] == '\0' ? NULL : strdup(text);
}

/* What the answer was like, for who looks at the delivery. */
static void
keep_answer(struct delivery_outcome *outcome, const struct send_result *result)
{
	const struct send_timing *timing = &result->timing;

	outcome->phases[DELIVERY_DNS] = timing->dns;
	outcome->phases[DELIVERY_CONNECT] = timing->connect;
	outcome->phases[DELIVERY_TLS] = timing->tls;
	outcome->phases[DELIVERY_WAIT] = timing->wait;
	outcome->phases[DELIVERY_RECEIVE] = timing->receive;
	(void)snprintf(
	    outcome->remote, sizeof(outcome->remote), "%s", result->remote);
	(void)snprintf(
	    outcome->reason, sizeof(outcome->reason), "%s", result->reason);
	outcome->excerpt = keep(result->excerpt);
	/* The many that were taken without a word would double their log. */
	if (outcome->verdict.kind != VERDICT_DELIVERED ||
	    outcome->excerpt != NULL)
		outcome->headers = keep(result->headers);
}

/* Judge it and hand it over.  The attempt is the recorder's after this. */
static void
judge(struct attempt *attempt, const struct retry_policy *given,
    const struct send_result *result)
{
	struct delivery_outcome *outcome = &attempt->outcome;
	struct retry_policy policy = *given;

	policy.jitter = attempt->worker->conf->retry_jitter;
	attempt->state = ATTEMPT_DONE;
	*outcome = (struct delivery_outcome){
		.lane_id = attempt->lease.lane_id,
		.subscription_id = attempt->lease.subscription_id,
		.version = attempt->lease.version,
		.claimed_at = attempt->leased_at,
		.accepted_at = attempt->lease.accepted_at,
		.end = result->end,
		.status = result->status,
		.duration = result->duration,
		.verdict =
		    verdict_decide(&policy, attempt->lease.attempt, result->end,
			result->status, result->retry_after, dice_roll()),
	};
	if (result->end == SEND_UNSENT && !attempt->worker->stopping)
		outcome->verdict.wait =
		    is_keyless(attempt) ? KEYLESS_WAIT : UNSENT_WAIT;
	memcpy(outcome->token, attempt->lease.token, LANE_TOKEN);
	keep_answer(outcome, result);
	recorder_add(attempt->worker->recorder, attempt);
}

static void
finish(struct attempt *attempt, const struct send_result *result)
{
	/* Without an endpoint nothing was sent, and nothing is retried. */
	static const struct retry_policy none = { .max_attempts = 1 };

	judge(attempt,
	    attempt->endpoint == NULL ? &none
				      : &attempt->endpoint->endpoint->policy,
	    result);
}

static void
finish_unanswered(
    struct attempt *attempt, enum send_end end, const char *reason)
{
	struct send_result result = {
		.end = end,
		.retry_after = -1,
		.timing = SEND_NO_TIMING,
	};

	(void)snprintf(result.reason, sizeof(result.reason), "%.*s",
	    (int)sizeof(result.reason) - 1, reason);
	finish(attempt, &result);
}

static void
on_sent(void *arg, const struct send_result *result)
{
	struct attempt *attempt = arg;

	attempt->send = NULL;
	TAILQ_REMOVE(&sending, attempt, entry);
	finish(attempt, result);
}

/* 0 if a request is under way; else how it ended without one. */
static int
start_send(struct attempt *attempt, struct err *err)
{
	struct endpoint *endpoint = attempt->endpoint->endpoint;
	const struct send_tls tls = {
		.ca = endpoint->tls.ca,
		.certificate = endpoint->tls.certificate,
		.key = endpoint->tls.key,
	};
	struct worker *worker = attempt->worker;
	/* The endpoint may be newer than the lease. */
	usec_t timeout = attempt->lease.timeout;
	struct message message;
	int result;

	if (endpoint->timeout < timeout)
		timeout = endpoint->timeout;

	/* The lease outlives the longest attempt by the margin; half of that
	 * may pass before the attempt begins, and the other half is left when
	 * it ends.  Whoever slept in between does not write the request. */
	if (message_write(&message, endpoint, &attempt->lease, clock_wall(),
		clock_now()) != 0)
		result = err_set(err, ERR_RETRY, "signing failed");
	else
		result = sender_start(&attempt->send, worker->sender,
		    &(struct send_args){
			.url = endpoint->url,
			.headers = message.headers,
			.body = attempt->lease.body,
			.len = attempt->lease.len,
			.timeout = timeout,
			.tls = &tls,
			.not_after = attempt->leased_at + timeout +
		                     worker->conf->lease_margin / 2,
		    },
		    on_sent, attempt, err);
	message_fini(&message);
	return result;
}

/* Too late to begin. */
static bool
is_late(const struct attempt *attempt)
{
	usec_t late = clock_now() - attempt->leased_at;

	return late > attempt->worker->conf->lease_margin / 2 ||
	       late > attempt->lease.begin_within;
}

static void
begin(struct attempt *attempt)
{
	struct err err;

	begun++;
	if (attempt->endpoint == NULL)
		finish_unanswered(
		    attempt, SEND_IMPOSSIBLE, "its subscription is not there");
	else if (is_keyless(attempt))
		attempt_unsent(attempt);
	else if (attempt->endpoint->endpoint->trouble[0] != '\0')
		finish_unanswered(attempt, SEND_IMPOSSIBLE,
		    attempt->endpoint->endpoint->trouble);
	else if (attempt->lease.body == NULL)
		finish_unanswered(
		    attempt, SEND_IMPOSSIBLE, "its payload was purged");
	else if (attempt->worker->stopping || is_late(attempt))
		attempt_unsent(attempt);
	else if (start_send(attempt, &err) == 0) {
		attempt->state = ATTEMPT_SENDING;
		TAILQ_INSERT_TAIL(&sending, attempt, entry);
	} else if (err.code == ERR_REFUSED)
		finish_unanswered(attempt, SEND_REFUSED, err.text);
	else
		attempt_unsent(attempt);
}

/* After the loop has looked for answers. */
static void
arm(struct worker *worker, event_callback_fn on_turn)
{
	static const struct timeval at_once = { 0, 0 };

	if (!event_initialized(&turn))
		(void)evtimer_assign(&turn, worker->loop, on_turn, worker);
	if (!evtimer_pending(&turn, NULL))
		(void)evtimer_add(&turn, &at_once);
}

static void
on_turn(evutil_socket_t fd, short what, void *worker)
{
	struct attempt *attempt;

	(void)fd;
	(void)what;
	begun = 0;
	while (begun < AT_ONCE && (attempt = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, attempt, entry);
		begin(attempt);
	}
	if (begun > 0)
		arm(worker, on_turn);
}

void
attempt_start(struct attempt *attempt)
{
	assert(attempt->state == ATTEMPT_LEASED);
	arm(attempt->worker, on_turn);
	if (begun < AT_ONCE && TAILQ_EMPTY(&waiting))
		begin(attempt);
	else
		TAILQ_INSERT_TAIL(&waiting, attempt, entry);
}

void
attempt_unsent(struct attempt *attempt)
{
	finish_unanswered(attempt, SEND_UNSENT, "");
}

void
attempt_expired(struct attempt *attempt, const struct retry_policy *policy)
{
	judge(attempt, policy,
	    &(struct send_result){
		.end = SEND_LEASE_EXPIRED,
		.retry_after = -1,
		.duration = -1,
		.timing = SEND_NO_TIMING,
		.reason = "the dispatcher that held the lease vanished",
	    });
}

void
attempt_cancel_all(struct worker *worker)
{
	struct attempt *attempt;

	while ((attempt = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, attempt, entry);
		attempt_unsent(attempt);
	}
	while ((attempt = TAILQ_FIRST(&sending)) != NULL) {
		assert(attempt->worker == worker);
		send_cancel(attempt->send);
		attempt->send = NULL;
		TAILQ_REMOVE(&sending, attempt, entry);
		finish_unanswered(attempt, SEND_TIMED_OUT,
		    "the dispatcher was stopped before an answer came");
	}
}
