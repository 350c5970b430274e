"""What the receiver saw, held against what was posted and what was in force."""

import base64
import hashlib
import hmac
import json

from .case import Violation, group, wants

TOLERANCE = 300    # seconds that a timestamp may be off, as Standard Webhooks has it
CONNECTING = 0.25  # seconds, on a machine that is busy with everything else
COMMIT = 0.5       # seconds from the beginning of a transaction to its end, at most


def _say(request):
    return (f"request {request.number} ({request.event_id} attempt {request.attempt} to"
            f" subscription {request.subscription} by worker {request.worker},"
            f" {request.began:.3f} to {request.ended or 0:.3f})")


def wrong_subscription(case):
    """A request is for an event of the subscription's own tenant, of a type that it
    asked for, and under the position of its own delivery."""
    for request in case.requests:
        subscription = case.by_number.get(request.subscription)
        post = subscription and case.posts.get((subscription.tenant, request.event_id))
        if subscription is None or post is None:
            why = "nobody posted this event for it"
        elif not wants(subscription, post):
            why = f"it did not ask for {post.type}, nor did the event name it"
        else:
            why = _wrong_delivery(case, request, subscription)
        if why:
            yield Violation("wrong subscription", f"{_say(request)}: {why}", (request.number,))


def _wrong_delivery(case, request, subscription):
    delivery = case.deliveries.get(request.position)
    if delivery is None:
        return f"there is no delivery {request.position}"
    event = case.event_of.get(delivery.event)
    if delivery.subscription_id != subscription.id:
        return f"delivery {delivery.id} is another subscription's"
    if event is None or event.event_id != request.event_id:
        return f"delivery {delivery.id} is another event's"
    return None


def changed_bytes(case):
    """Every request of an event has the same bytes: the envelope of the very data
    that was posted, which are also those that the database keeps."""
    for request in case.requests:
        subscription = case.by_number.get(request.subscription)
        key = subscription and (subscription.tenant, request.event_id)
        if request.behaviour == "partial" or key not in case.posts:
            continue
        why = _wrong_body(case, request.body, key)
        if why:
            yield Violation("changed bytes", f"{_say(request)}: {why}", (request.number,))


def _wrong_body(case, body, key):
    post, event = case.posts[key], case.events.get(key)
    data = post.data.encode().decode("latin-1")
    if not body.endswith(f'"data":{data}}}'):
        return "the data are not those that were posted"
    if event is None or event.body not in (None, body):
        return "the body is not what the database keeps"
    seen = json.loads(body.encode("latin-1"))
    told = {"id": post.id, "type": post.type, "asset": post.asset}
    if {name: seen.get(name) for name in told} != told:
        return f"the envelope is not that of {told}"
    return None


def wrong_signature(case):
    """Standard Webhooks: HMAC-SHA256 under the subscription's own secret, over id,
    timestamp and body, with a timestamp of now."""
    for request in case.requests:
        subscription = case.by_number.get(request.subscription)
        if subscription is None or request.behaviour == "partial":
            continue
        timestamp = request.headers.get("webhook-timestamp", "")
        signed = f"{request.event_id}.{timestamp}.{request.body}".encode("latin-1")
        secret = base64.b64decode(subscription.secret.removeprefix("whsec_"))
        digest = hmac.new(secret, signed, hashlib.sha256).digest()
        ours = "v1," + base64.b64encode(digest).decode()
        if ours not in request.headers.get("webhook-signature", "").split(" "):
            yield Violation("wrong signature", _say(request), (request.number,))
        elif not timestamp.isdigit() or abs(int(timestamp) - request.wall) > TOLERANCE:
            yield Violation("wrong signature", f"{_say(request)}: timestamp {timestamp}",
                            (request.number,))


def overlap(case):
    """No two requests of a lane are on the wire at once, save that an older one's
    owner was frozen until its lease had run out."""
    for lane, requests in group(case.requests, case.lane).items():
        if lane is None:
            continue
        last, until = None, 0
        for request in requests:
            if request.began < until:
                yield Violation("overlap", f"lane {lane}: {_say(request)} began within"
                                f" {_say(last)}", (last.number, request.number))
            if case.let_go(request) > until:
                last, until = request, case.let_go(request)


def too_many_in_flight(case):
    """No more requests of a subscription are on the wire than max_in_flight was when
    the last of them was claimed, at most half a margin before it began."""
    for number, requests in case.by_subscription.items():
        if number not in case.by_number:
            continue
        flying = []
        for request in requests:
            flying = [one for one in flying if case.let_go(one) > request.began] + [request]
            limit = max(case.possible(
                number, "max_in_flight", request.began - case.margin / 2, request.began))
            if len(flying) > limit:
                yield Violation(
                    "too many in flight", f"{len(flying)}, not {limit}: " +
                    ", ".join(map(_say, flying)), tuple(one.number for one in flying))


def sent_while_stopped(case):
    """Once a pause, a deletion or the like was answered, or an answer 410 is on record,
    only what had been claimed before may still begin, within half a margin."""
    for number in case.by_number:
        changes = case.changes[number, "state"]
        starts = [change for change in changes if change.value == "active"]
        stops = [(change.answered, change.value) for change in changes
                 if change.value != "active"]
        for since, why in stops + _gone(case, number):
            until = min((start.asked for start in starts if start.answered > since),
                        default=float("inf"))
            for request in case.by_subscription[number]:
                if since + case.margin / 2 < request.began < until:
                    yield Violation("sent while stopped", f"{_say(request)}: {why} since"
                                    f" {since:.3f}", (request.number,))


def _gone(case, number):
    """When an answer 410 was on record, which disables its subscription."""
    stops = []
    for request in case.by_subscription[number]:
        for row in case.rows[request.position]:
            if row.status == 410 == request.status and row.attempt == request.attempt:
                stops.append((request.began + row.recorded - request.wall, "gone"))
    return stops


def too_fast(case):
    """In any T seconds no more than rate * (T + 1) requests of a subscription begin;
    below one a second, one at a time.  They are granted so; connecting takes time."""
    for number, requests in case.by_subscription.items():
        for rate, same in _at_one_rate(case, number, requests):
            lowest, first = float("inf"), None
            for nth, request in enumerate(same):
                level = nth - rate * request.wall
                if level < lowest:
                    lowest, first = level, request
                if level - lowest + 1 > max(rate, 1) + rate * CONNECTING:
                    yield Violation(
                        "too fast", f"{level - lowest + 1:.2f} over {rate} a second from"
                        f" {_say(first)} to {_say(request)}", (first.number, request.number))


def _at_one_rate(case, number, requests):
    """(rate, requests) for each stretch in which the rate was certainly the same.

    One whose owner was frozen after the grant is late, and does not count.
    """
    rate, same = None, []
    for request in requests:
        if case.was_just_frozen(request):
            continue
        rates = case.possible(number, "rate_per_second", request.began - case.margin,
                              request.began)
        if len(rates) == 1 and rates[0] == rate:
            same.append(request)
            continue
        if rate is not None:
            yield rate, same
        rate, same = (rates[0], [request]) if len(rates) == 1 else (None, [])
    if rate is not None:
        yield rate, same


def too_many_probes(case):
    """While a circuit is not closed only what was claimed before may still begin, and
    then one probe at a time.  Another circuit_after may close it."""
    for circuit in case.history.circuits:
        since = circuit.opened + case.margin / 2 + COMMIT
        until = circuit.closed or float("inf")
        changes = case.changes[circuit.subscription, "circuit_after"][1:]
        last = None
        for request in case.by_subscription[circuit.subscription]:
            skew = request.wall - request.began
            until = min([until] + [at.asked + skew for at in changes
                                   if at.answered + skew > circuit.opened])
            if not since < request.wall < until:
                continue
            if last is not None and request.began < case.let_go(last):
                yield Violation("too many probes", f"{_say(last)} and {_say(request)}",
                                (last.number, request.number))
            last = request


def double_effect(case):
    """A receiver that keeps the ids it has seen applies no fact twice: one fact comes
    under one id."""
    for number, requests in case.by_subscription.items():
        ids = {}
        for request in requests:
            if request.behaviour == "partial":
                continue
            fact = request.body[request.body.find('"data":'):]
            first = ids.setdefault(fact, request)
            if first.event_id != request.event_id:
                yield Violation(
                    "double effect", f"{_say(first)} and {_say(request)} are one fact",
                    (first.number, request.number))


JUDGES = (wrong_subscription, changed_bytes, wrong_signature, overlap, too_many_in_flight,
          too_fast, too_many_probes, sent_while_stopped, double_effect)
