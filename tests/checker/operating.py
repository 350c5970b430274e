"""The operators: pauses, limits, retries, replays, all by way of the API."""

import datetime
import http.client
import random
import threading
import time

from integration.api import Api
from integration.wait import dawdle

from .history import Change, Order
from .world import PATIENCE

LAST_WAIT = 40
UNSURE = (None, 500, 503, 504)


class Operator(threading.Thread):
    """Does a scenario's orders and changes the receiver's mind, in turn."""

    def __init__(self, world, scenario, history, receiver):
        super().__init__(name="operator")
        self.world = world
        self.history = history
        self.receiver = receiver
        self.chance = random.Random(f"{scenario.seed}/operator")
        self.plan = self._timetable(scenario)
        self.stopping = threading.Event()
        self.failure = None

    @staticmethod
    def _timetable(scenario):
        plan, at = [], 0
        for kind, slot, wait, argument in scenario.orders:
            at += wait
            plan.append((at, len(plan), kind, slot, argument))
        at = 0
        for slot, wait, mix in scenario.behaviours:
            at += wait
            plan.append((at, len(plan), "behave", slot, mix))
        return sorted(plan)

    def run(self):
        began = time.monotonic()
        try:
            for at, _, kind, slot, argument in self.plan:
                if self.stopping.wait(max(0, began + at - time.monotonic())):
                    return
                subscription = self.history.subscriptions[
                    slot % len(self.history.subscriptions)]
                if kind == "behave":
                    self.receiver.behave(subscription.number, argument)
                else:
                    ORDERS[kind](self, subscription, argument)
        except Exception as failure:  # the round reports it
            self.failure = failure

    def calm(self):
        """Once all is over: no backlog has to trickle away."""
        for subscription in self.history.subscriptions:
            patch(self, subscription, LIMITS.index(RATE))

    # -- asking --

    def ask(self, subscription, method, path, body=None):
        """Ask until there is an answer.  (asked, answered, answer), or None."""
        asked, deadline = time.monotonic(), time.monotonic() + LAST_WAIT
        while time.monotonic() < deadline:
            seat = self.chance.choice(self.world.ingests)
            api = Api(seat.port, self.world.keys[subscription.tenant], seconds=PATIENCE)
            try:
                answer = api.call(method, f"/v1/subscriptions/{subscription.id}{path}", body)
            except (OSError, http.client.HTTPException):
                answer = None
            if answer is not None and answer.status not in UNSURE:
                return asked, time.monotonic(), answer
            dawdle(0.05)
        raise AssertionError(f"{method} {path} of {subscription.id} is never answered")

    def change(self, subscription, method, path, fields, body=None):
        """Ask for new values of `fields`, and note from when to when they came."""
        asked, answered, answer = self.ask(subscription, method, path, body)
        if answer.status in (200, 202, 204):
            self.history.changes += [
                Change(subscription.number, name, value, asked, answered)
                for name, value in fields.items()]
        return answer

    def order(self, subscription, kind, path, detail, body=None):
        asked, answered, answer = self.ask(subscription, "POST", path, body)
        self.history.orders.append(Order(
            kind, subscription.number, asked, answered, answer.status, detail))
        return answer


# -- orders: each takes the operator, a subscription and a drawn number --

def pause(operator, subscription, _):
    operator.change(subscription, "POST", "/pause", {"state": "paused"})


def resume(operator, subscription, _):
    operator.change(subscription, "POST", "/resume", {"state": "active"})


def disable(operator, subscription, _):
    operator.change(subscription, "POST", "/disable", {"state": "disabled"})


def enable(operator, subscription, _):
    operator.change(subscription, "POST", "/enable", {"state": "active"})


def delete(operator, subscription, number):
    """Seldom, or there would soon be none."""
    if number % 8 == 0:
        operator.change(subscription, "DELETE", "", {"state": "deleted"})


RATE = ("rate_per_second", (None, 0.8, 5, 20))
LIMITS = (
    ("max_in_flight", (1, 2, 5, 20)),
    ("on_dead", ("skip", "hold")),
    ("max_attempts", (2, 4, 12, 40)),
    RATE,
    ("circuit_after", (0, 3, 20)),
)


def patch(operator, subscription, number):
    name, values = LIMITS[number % len(LIMITS)]
    fields = {name: values[number // len(LIMITS) % len(values)]}
    operator.change(subscription, "PATCH", "", fields, fields)


def _dead(operator, number):
    """(subscription, delivery) of a dead letter; None if there is none."""
    found = operator.world.look("SELECT subscription_id, delivery_id"
                                " FROM postrider.dead_letter ORDER BY delivery_id")
    if not found:
        return None
    id, delivery = found[number % len(found)]
    return next(s for s in operator.history.subscriptions if s.id == id), delivery


def retry(operator, _, number):
    _one_dead_letter(operator, "retry", number)


def discard(operator, _, number):
    _one_dead_letter(operator, "discard", number)


def _one_dead_letter(operator, kind, number):
    found = _dead(operator, number)
    if found is not None:
        subscription, delivery = found
        operator.order(subscription, kind, f"/deliveries/{delivery}/{kind}",
                       {"delivery": delivery})


def retry_dead(operator, subscription, _):
    operator.order(subscription, "retry_dead", "/retry-dead", {}, {"rate_per_second": 200})


def replay(operator, subscription, number):
    """Of the last seconds: what was delivered is delivered again."""
    since = time.time() - number % 8
    text = datetime.datetime.fromtimestamp(since, datetime.timezone.utc).isoformat()
    operator.order(subscription, "replay", "/replay", {"since": since},
                   {"since": text.replace("+00:00", "Z"), "rate_per_second": 100})


ORDERS = {function.__name__: function for function in (
    pause, resume, disable, enable, delete, patch, retry, discard, retry_dead, replay)}
