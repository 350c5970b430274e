"""What was acknowledged and what was seen, held against the database's own record."""

from .case import Violation, group, wants
from .history import KEPT, OPEN

# How an attempt ends that never became a request.
UNSENT = ("dns_failed", "connect_failed", "refused", "impossible", "unsent")
HOPELESS = ("refused", "impossible")
PASSING = (408, 425, 429)

# A message may be refused for these reasons alone: the database is away, or a named
# subscription is.
REFUSALS = (503, 422)


def _name(row):
    return f"attempt {row.attempt} of delivery {row.delivery}, generation {row.generation}"


def lost(case):
    """What was acknowledged is there, with a delivery for each subscription that it
    matches, and each delivery comes to an end or waits for a reason that has a name."""
    present = group(case.history.deliveries, lambda d: d.event)
    for key, post in case.posts.items():
        event = case.events.get(key)
        if event is None:
            if post.acknowledged is not None:
                yield Violation("lost", f"event {key} was acknowledged and is not there")
            continue
        have = {d.subscription_id for d in present[event.number]}
        for subscription in case.history.subscriptions:
            if subscription.tenant == post.tenant:
                yield from _fan_out(case, post, subscription, subscription.id in have)
    for delivery in case.history.deliveries:
        if delivery.state == "pending" and delivery.waits is None:
            yield Violation("lost", f"delivery {delivery.id} has not come to an end")
        elif delivery.state == "cancelled" and not _may_be_cancelled(case, delivery):
            yield Violation("lost", f"delivery {delivery.id} was cancelled")
    yield from _lost_retries(case)


def _may_be_cancelled(case, delivery):
    """Its subscription was deleted, or a person gave it up."""
    number = case.by_id[delivery.subscription_id].number
    return case.may_be(number, "deleted", 0, float("inf")) or any(
        order.kind == "discard" and order.detail["delivery"] == delivery.id
        for order in case.history.orders)


def _lost_retries(case):
    """Each retry that was acknowledged is a generation."""
    retries = group([order for order in case.history.orders
                     if order.kind == "retry" and order.status == 202],
                    lambda order: order.detail["delivery"])
    for id, orders in retries.items():
        if len(orders) > case.deliveries[id].generation - 1:
            yield Violation("lost", f"{len(orders)} retries of delivery {id}, which is in"
                            f" generation {case.deliveries[id].generation}")


def _fan_out(case, post, subscription, is_there):
    """Whether there is a delivery, where that is certain."""
    is_wanted = wants(subscription, post)
    span = post.asked, post.acknowledged or float("inf")
    is_certain = not case.may_be(subscription.number, "deleted", 0, float("inf")) and (
        not case.may_be(subscription.number, "disabled", *span)
        or _is_replayed(case, post, subscription))
    if is_wanted and is_certain and not is_there:
        yield Violation("lost", f"event {post.id} of {post.tenant} has no delivery for"
                        f" subscription {subscription.number}")
    if is_there and not is_wanted:
        yield Violation("wrong subscription", f"event {post.id} of {post.tenant} has a"
                        f" delivery for subscription {subscription.number}")


def _is_replayed(case, post, subscription):
    """A replay brings what came while the subscription was disabled."""
    event = case.events[post.tenant, post.id]
    return post.acknowledged is not None and any(
        order.kind == "replay" and order.status == 202
        and order.subscription == subscription.number
        and order.asked > post.acknowledged and order.detail["since"] < event.committed - 1
        for order in case.history.orders)


def phantom(case):
    """What was refused left nothing, nobody but the apps made events, and a batch is
    there as a whole or not at all."""
    for key in case.events:
        if key not in case.posts:
            yield Violation("phantom", f"nobody posted event {key}")
        elif case.posts[key].was_refused:
            yield Violation("phantom", f"event {key} was refused and is there")
    for batch, posts in group(case.history.posts, lambda p: p.batch).items():
        there = [post for post in posts if (post.tenant, post.id) in case.events]
        if batch is not None and there and len(there) < len(posts):
            yield Violation("phantom", f"{len(there)} of {len(posts)} of batch {batch}"
                            " are there")


def accepted_twice(case):
    """202 is said once; who asks again after an acknowledgement is told 200; and there
    are no answers but these and the refusals that the database's absence explains."""
    for post in case.history.posts:
        knows = False
        for one in post.tries:
            if one.status == 202 and knows:
                yield Violation("accepted twice", f"event {post.id} of {post.tenant}")
            if one.status not in (*KEPT, *OPEN, *REFUSALS):
                yield Violation("accepted twice", f"event {post.id} of {post.tenant} was"
                                f" answered {one.status}")
            knows |= one.status in KEPT


def off_the_record(case):
    """Each request has an attempt's row: one attempt is one request at most."""
    for position, requests in case.by_position.items():
        delivery = case.deliveries.get(position)
        if delivery is None:
            continue
        subscription = case.by_id.get(delivery.subscription_id)
        is_deleted = subscription and case.may_be(
            subscription.number, "deleted", requests[0].began, float("inf"))
        for attempt, same in group(requests, lambda r: r.attempt).items():
            rows = [row for row in case.rows[position] if row.attempt == attempt]
            most = max(len(rows), delivery.generation if is_deleted else 0)
            if len(same) > most:
                yield Violation(
                    "off the record", f"{len(same)} requests for attempt {attempt} of"
                    f" delivery {position}, and {len(rows)} on record",
                    tuple(r.number for r in same))


def stale_record(case):
    """An outcome on record is the one that its own worker had from the receiver for
    that very attempt, while its lease held."""
    for row in case.history.attempts:
        seen = [request for request in case.by_position[row.delivery]
                if request.attempt == row.attempt
                and case.generation(request) in (row.generation, None)]
        why = _why_stale(case, row, seen)
        if why:
            yield Violation("stale record", f"{_name(row)}: {row.ended} {row.status}: {why}",
                            tuple(request.number for request in seen))


def _why_stale(case, row, seen):
    if row.ended == "lease_expired":
        return None
    if row.ended in UNSENT:
        return "there was a request" if seen else None
    if row.ended == "answered" and not any(r.status == row.status for r in seen):
        return "the receiver did not answer so"
    ours = [r for r in seen if _is_by(case, r, row)]
    if seen and not ours:
        return "another worker sent it"
    if ours and row.recorded > max(
            r.wall + max(case.timeouts(r)) + case.margin for r in ours):
        return "its lease had run out"
    return None


def _is_by(case, request, row):
    worker = case.workers.get(request.worker)
    return worker is None or worker.pid == row.pid


def wrong_verdict(case):
    """Attempts count from 1 without a gap; what passes is retried until the last
    attempt, anything else is the end; the delivery's state is what the last one says."""
    for delivery in case.history.deliveries:
        generations = group(case.rows[delivery.id], lambda row: row.generation)
        for generation, rows in generations.items():
            for text in _wrong_course(case, delivery, generation, rows):
                yield Violation("wrong verdict", f"delivery {delivery.id}, generation"
                                f" {generation}: {text}")
        last = generations.get(delivery.generation, [])
        if delivery.state in ("delivered", "dead") and len(last) != delivery.attempts:
            yield Violation("wrong verdict", f"delivery {delivery.id} is {delivery.state}"
                            f" after {delivery.attempts} attempts, {len(last)} on record")


def _wrong_course(case, delivery, generation, rows):
    if [row.attempt for row in rows] != list(range(1, len(rows) + 1)):
        yield f"attempts {[row.attempt for row in rows]}"
    for row in rows[:-1]:
        if not _passes(row):
            yield f"it went on after {row.ended} {row.status}"
    number = case.by_id[delivery.subscription_id].number
    most = case.possible(number, "max_attempts", 0, float("inf"))
    if len(rows) > max(most):
        yield f"{len(rows)} attempts, not {max(most)}"
    if generation == delivery.generation:
        yield from _wrong_end(delivery, rows[-1], min(most))


def _wrong_end(delivery, last, fewest):
    is_taken = last.ended == "answered" and 200 <= last.status <= 299
    if (delivery.state == "delivered") != is_taken:
        yield f"{delivery.state} after {last.ended} {last.status}"
    if delivery.state == "dead" and _passes(last) and last.attempt < fewest:
        yield f"dead after attempt {last.attempt}"
    if delivery.state == "pending" and not _passes(last):
        yield f"pending after {last.ended} {last.status}"


def _passes(row):
    """Whether it is a failure that may pass."""
    if row.ended == "answered":
        return row.status in PASSING or 500 <= row.status <= 599
    return row.ended not in HOPELESS


def too_early(case):
    """A retry waits for its backoff, of which jitter leaves half at least, and for what
    the receiver asked for, up to the cap; both from when the failure was recorded."""
    for delivery in case.history.deliveries:
        for one, two in _pairs(case.rows[delivery.id]):
            for request in case.by_position[delivery.id]:
                if (request.attempt != two.attempt or one.recorded is None
                        or case.generation(request) != two.generation):
                    continue
                came, wait = request.wall - one.recorded, _least_wait(case, one, request)
                if came < wait:
                    yield Violation("too early", f"{_name(two)} came {came:.4f} s after the"
                                    f" last, not {wait}", (request.number,))


def _pairs(rows):
    """Attempts that follow each other in one generation."""
    return [(one, two) for one, two in zip(rows, rows[1:])
            if one.generation == two.generation and one.attempt + 1 == two.attempt]


def _least_wait(case, row, request):
    def least(field):
        return min(case.possible(request.subscription, field, 0, request.began)) / 1000
    cap = least("retry_cap_ms")
    backoff = min(cap, least("retry_base_ms") * 2 ** (row.attempt - 1)) / 2
    asked = 1 if row.status == 429 else 0
    return max(backoff, min(asked, cap))


def left_behind(case):
    """No lane stays without a delivery that it stands for."""
    if case.history.lanes_left:
        yield Violation("left behind", f"{case.history.lanes_left} lanes")


JUDGES = (lost, phantom, accepted_twice, off_the_record, stale_record,
          wrong_verdict, too_early, left_behind)
