"""The order of lanes: as it was committed, as the apps saw it, as the receiver did."""

from .case import Violation, group

BLOCK = 1000  # positions, of which an event's number is the first


def out_of_order(case):
    """In a lane the order is that of the commits, and of what the apps could see: no
    request before the predecessor is over, positions that grow."""
    lanes = group(
        [d for d in case.history.deliveries if _is_ordered(case, d)],
        lambda d: (case.by_id[d.subscription_id].number, case.event_of[d.event].asset))
    for lane, deliveries in lanes.items():
        deliveries.sort(key=lambda d: (case.event_of[d.event].committed, d.id))
        for check in (_inverted, _began_early, _misplaced, _acknowledged_later, _shuffled,
                      _went_past):
            for text, requests in check(case, deliveries):
                yield Violation("out of order", f"lane {lane}: {text}",
                                tuple(r.number for r in requests))


def late_attempt(case):
    """No attempt begins after a later one of its generation has: its lease was gone."""
    for position, requests in case.by_position.items():
        for generation, same in group(requests, case.generation).items():
            for one, two in zip(same, same[1:]):
                if generation is not None and two.attempt < one.attempt:
                    yield Violation(
                        "late attempt", f"attempt {two.attempt} of delivery {position} came"
                        f" after attempt {one.attempt}", (one.number, two.number))


def _is_ordered(case, delivery):
    """What a replay brings takes its event's own place, in the block of positions that
    the event's number is the first of: ahead of all that came meanwhile."""
    event = case.event_of.get(delivery.event)
    subscription = case.by_id.get(delivery.subscription_id)
    if event is not None and 0 <= delivery.id - event.number < BLOCK:
        return False
    return (event is not None and event.asset is not None and event.committed is not None
            and subscription is not None and subscription.ordering == "asset")


def _first_generation(case, delivery):
    return [request for request in case.by_position[delivery.id]
            if case.generation(request) == 1]


def _inverted(case, deliveries):
    """All first-generation requests of the one begin before any of the next."""
    last = None
    for delivery in deliveries:
        requests = _first_generation(case, delivery)
        if not requests:
            continue
        if last is not None and requests[0].began < last.began:
            yield (f"delivery {delivery.id} was sent before the last request of"
                   f" {last.position}"), (requests[0], last)
        if last is None or requests[-1].began > last.began:
            last = requests[-1]


def _over(case, delivery):
    """When the end of its first generation was recorded, wall; 0 if nobody knows."""
    rows = [row for row in case.rows[delivery.id] if row.generation == 1]
    if delivery.state == "pending" and delivery.generation == 1:
        return float("inf")
    return rows[-1].recorded or 0 if rows else 0


def _began_early(case, deliveries):
    before, over = None, 0
    for delivery in deliveries:
        requests = _first_generation(case, delivery)
        if requests and requests[0].wall < over:
            yield (f"delivery {delivery.id} was sent while {before.id} was not over",
                   (requests[0],))
        if _over(case, delivery) > over:
            before, over = delivery, _over(case, delivery)


def _misplaced(case, deliveries):
    """Positions grow, but for one that is drawn for a new lane while all of its
    predecessor's life, from acceptance to the end, passes by."""
    for one, two in zip(deliveries, deliveries[1:]):
        if one.id > two.id and not 0 < _over(case, one) < case.event_of[two.event].committed:
            yield f"position {two.id} follows {one.id}", ()


def _acknowledged_later(case, deliveries):
    """What was acknowledged before the other was posted comes first."""
    first, earliest = None, float("inf")
    for delivery in reversed(deliveries):
        post = case.posts.get(_key(case, delivery))
        if post is None:
            continue
        if earliest < post.asked:
            yield f"delivery {first} was acknowledged before {delivery.id} was posted", ()
        if post.acknowledged is not None and post.acknowledged < earliest:
            first, earliest = delivery.id, post.acknowledged


def _shuffled(case, deliveries):
    """The lines of a batch keep their order."""
    def batch(delivery):
        post = case.posts.get(_key(case, delivery))
        return post and post.batch
    for name, same in group(sorted(deliveries, key=lambda d: d.id), batch).items():
        lines = name and [case.posts[_key(case, d)].line for d in same]
        if name and lines != sorted(lines):
            yield f"lines {lines} of batch {name}", ()


def _went_past(case, deliveries):
    """A dead letter that holds its lane lets nothing pass until somebody acts."""
    holds = []
    for delivery in deliveries:
        for request in _first_generation(case, delivery)[:1]:
            for dead, since, until in holds:
                if since < request.began < until:
                    yield f"delivery {delivery.id} went past {dead}, which holds", (request,)
        holds += _hold(case, delivery)


def _hold(case, delivery):
    """[(id, since, until)], if it certainly held its lane in its first generation."""
    requests = _first_generation(case, delivery)
    died = _over(case, delivery)
    is_over = delivery.state == "dead" or delivery.generation > 1
    is_dead = is_over and not _was_taken(case, delivery)
    if not requests or not is_dead or not 0 < died < float("inf"):
        return []
    number = requests[0].subscription
    since = requests[0].began + died - requests[0].wall
    if set(case.possible(number, "on_dead", since - case.margin, since)) != {"hold"}:
        return []
    acts = [order.asked for order in case.history.orders if order.subscription == number]
    acts += [change.asked for field in ("on_dead", "state")
             for change in case.changes[number, field]]
    return [(delivery.id, since, min((at for at in acts if at > since - case.margin),
                                     default=float("inf")))]


def _was_taken(case, delivery):
    return any(row.ended == "answered" and 200 <= row.status <= 299
               for row in case.rows[delivery.id] if row.generation == 1)


def _key(case, delivery):
    event = case.event_of[delivery.event]
    return event.tenant, event.event_id


JUDGES = (out_of_order, late_attempt)
