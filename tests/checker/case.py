"""A history with its indexes, and the few questions that most judges ask of it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Violation:
    kind: str
    text: str
    requests: tuple = ()  # numbers of those that show it

    def __str__(self):
        return f"{self.kind}: {self.text}"


class Groups(dict):
    def __missing__(self, key):
        return []


def group(things, key):
    """{key: those things, in their order}; nothing for any other key."""
    groups = Groups()
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


class Case:
    def __init__(self, history):
        self.history = history
        self.margin = history.margin
        self.by_number = {s.number: s for s in history.subscriptions}
        self.by_id = {s.id: s for s in history.subscriptions}
        self.workers = {w.number: w for w in history.workers}
        self.posts = {(p.tenant, p.id): p for p in history.posts}
        self.events = {(e.tenant, e.event_id): e for e in history.events}
        self.event_of = {e.number: e for e in history.events}
        self.deliveries = {d.id: d for d in history.deliveries}
        self.rows = group(history.attempts, lambda a: a.delivery)
        self.requests = sorted(history.requests, key=lambda r: r.began)
        self.by_subscription = group(self.requests, lambda r: r.subscription)
        self.by_position = group(self.requests, lambda r: r.position)
        self.changes = group(sorted(history.changes, key=lambda c: c.asked),
                             lambda c: (c.subscription, c.field))

    # -- what was in force --

    def possible(self, number, field, since, until):
        """Values that a field may have had at some time from since to until.

        A value may hold from when it was asked for until its successor was answered.
        """
        changes = self.changes[number, field]
        ends = [change.answered for change in changes[1:]] + [float("inf")]
        return [change.value for change, end in zip(changes, ends)
                if change.asked <= until and end >= since]

    def may_be(self, number, state, since, until):
        return state in self.possible(number, "state", since, until) or (
            state == "disabled" and self._may_be_disabled(number, since, until))

    def _may_be_disabled(self, number, since, until):
        """By an answer 410, unless it was surely resumed after that."""
        return any(
            request.status == 410 and request.ended <= until and not any(
                change.value == "active" and change.asked > request.ended + 2 * self.margin
                and change.answered < since for change in self.changes[number, "state"])
            for request in self.by_subscription[number])

    def timeouts(self, request):
        """What the time-out of a request may have been, in seconds."""
        return [ms / 1000 for ms in self.possible(
            request.subscription, "timeout_ms", request.began - self.margin, request.began)]

    # -- requests --

    def _stood_still(self, request, since, until):
        """Whether its owner was frozen at some time in between."""
        worker = self.workers.get(request.worker)
        return worker is not None and any(
            begin < until and (end or float("inf")) > since for begin, end in worker.frozen)

    def was_frozen(self, request):
        """While it was on the wire."""
        return self._stood_still(request, request.began, request.ended or float("inf"))

    def was_just_frozen(self, request):
        """Between its being claimed and its beginning, perhaps."""
        return self._stood_still(request, request.began - self.margin, request.began)

    def let_go(self, request):
        """From when on others need not respect it.

        That is its end.  But the owner that is frozen cannot close its socket, and
        its lease runs out: a request starts in the first half of the margin, so the
        lease holds for the time-out and the other half at least.
        """
        end = request.ended or float("inf")
        if self.was_frozen(request):
            return min(end, request.began + min(self.timeouts(request)) + self.margin / 2)
        return end

    def lane(self, request):
        """(subscription, asset), or None where no order is kept."""
        subscription = self.by_number.get(request.subscription)
        event = subscription and self.events.get((subscription.tenant, request.event_id))
        if not event or event.asset is None or subscription.ordering != "asset":
            return None
        return request.subscription, event.asset

    def generation(self, request):
        """Which generation of its delivery it belongs to; None if nobody can tell.

        The next generation begins after the end of the last was recorded.
        """
        delivery = self.deliveries.get(request.position)
        if delivery is None:
            return None
        rows = self.rows[delivery.id]
        for generation in range(1, delivery.generation):
            last = max((row for row in rows if row.generation == generation),
                       key=lambda row: row.attempt, default=None)
            if last is None or last.recorded is None:
                return None
            if request.wall < last.recorded:
                return generation
        return delivery.generation


def wants(subscription, post):
    """Whether the event is for it: named, or else of a type that it asked for."""
    if subscription.tenant != post.tenant:
        return False
    if post.named is not None:
        return subscription.number in post.named
    return any(pattern in ("*", post.type) or
               pattern.endswith(".*") and post.type.startswith(pattern[:-1])
               for pattern in subscription.types)
