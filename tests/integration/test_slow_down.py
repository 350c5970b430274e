"""An endpoint that answers 429, 502, 503 or 504 is sent less: all of its subscription."""

import json
import math
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from .wait import dawdle, never, until

DISPATCHERS = 8


def reply(handler, status, *retry_after):
    handler.send_response(status)
    for value in retry_after:
        handler.send_header("Retry-After", value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def refuse(status, *retry_after):
    return lambda handler, _: reply(handler, status, *retry_after)


class Capacity:
    """Answers after a while, and refuses what is more than `most` at a time."""

    def __init__(self, most, seconds=0.04):
        self.lock = threading.Lock()
        self.most, self.seconds = most, seconds
        self.now = self.refused = self.taken = 0

    def __call__(self, handler, _):
        with self.lock:
            fits = self.now < self.most
            self.now += fits
            self.taken += fits
            self.refused += not fits
        if fits:
            dawdle(self.seconds)
            with self.lock:
                self.now -= 1
        reply(handler, 200 if fits else 429)


def batch(api, n):
    batch_of(api, [f"a{i}" for i in range(n)])


def batch_of(api, assets):
    lines = "\n".join('{"type":"t","data":{},"asset":"%s"}' % asset for asset in assets).encode()
    api.call("POST", "/v1/events/batch", lines,
             {"Content-Type": "application/x-ndjson"}).expect(202)


def turns(db):
    """Why each rests, seconds until it wakes, how many it gets in flight."""
    return db.rows("SELECT rest, extract(epoch FROM wake_at - now())::float8, slowed_to"
                   " FROM postrider.turn ORDER BY subscription_id")


def delivered(db):
    return db.rows("SELECT DISTINCT state FROM postrider.deliveries") == [("delivered",)]


# -- what it asks for --

@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_retry_after_lets_all_of_the_subscription_rest_and_no_other(
        status, api, dispatch, db, make_endpoint):
    busy, other = make_endpoint(), make_endpoint()
    busy.script(refuse(status, "2"), 200)
    api.subscribe(busy.url, max_in_flight=1, retry_base_ms=100)
    api.subscribe(other.url, max_in_flight=1)
    batch(api, 5)
    until(lambda: turns(db)[0][0] == "slowed", "it rests")
    api.event({}, asset="new")
    until(lambda: len(other.requests) == 6, "the other subscription goes on")
    assert len(busy.requests) == 1
    until(lambda: delivered(db), "all are delivered", seconds=20)
    assert busy.requests[1].at - busy.requests[0].at > 1.9


def test_a_rest_ends_by_the_clock_of_the_database_on_any_dispatcher(
        api, make_dispatch, db, endpoint):
    endpoint.script(refuse(503, "2"), 200)
    api.subscribe(endpoint.url, max_in_flight=1)
    batch(api, 2)
    first = make_dispatch()
    until(lambda: turns(db)[0][0] == "slowed", "it rests")
    first.stop()
    make_dispatch(poll="1m")
    until(lambda: delivered(db), "somebody else goes on", seconds=20)
    assert endpoint.requests[1].at - endpoint.requests[0].at > 1.9


def in_100_s(form):
    return lambda: (datetime.now(timezone.utc) + timedelta(seconds=100)).strftime(form)


# What the headers say; between how many seconds it rests, or None.
FORMS = {
    "seconds": (["100"], 90, 100),
    "a fraction is rounded up": (["99.2"], 90, 100),
    "as RFC 9110 wants dates": ([in_100_s("%a, %d %b %Y %H:%M:%S GMT")], 90, 101),
    "as RFC 850 had them": ([in_100_s("%A, %d-%b-%y %H:%M:%S GMT")], 90, 101),
    "as asctime() has them": ([in_100_s("%a %b %e %H:%M:%S %Y")], 90, 101),
    "the longer of two": (["100", "5"], 90, 100),
    "the longer of two, again": (["5", "100"], 90, 100),
    "what can be read of two": (["soon", "100"], 90, 100),
    "five minutes at most": (["86400"], 290, 300),
    "absurd": (["9" * 40], 290, 300),
    "the end of time": (["Fri, 31 Dec 9999 23:59:59 GMT"], 290, 300),
    "past": (["Sun, 06 Nov 1994 08:49:37 GMT"], None, None),
    "zero": (["0"], None, None),
    "negative": (["-5"], None, None),
    "words": (["soon"], None, None),
    "empty": ([""], None, None),
    "no such day": (["Sun, 31 Feb 2027 08:49:37 GMT"], None, None),
    "none": ([], None, None),
}


def test_retry_after_in_every_form(api, dispatch, db, endpoint):
    cases = list(FORMS.values())

    def answer(handler, request):
        values, _, _ = cases[int(request.path.strip("/"))]
        reply(handler, 429, *(v() if callable(v) else v for v in values))

    endpoint.script(answer)
    for i in range(len(cases)):
        api.subscribe(f"{endpoint.url}{i}", retry_base_ms=3600000)
    api.event({})
    until(lambda: all(slowed_to for _, _, slowed_to in turns(db)), "all are slowed down")
    for label, (_, least, most), (rest, wake_in, _) in zip(FORMS, cases, turns(db)):
        if least is None:
            assert rest != "slowed", label
        else:
            assert rest == "slowed" and least < wake_in <= most, label


def test_the_delivery_itself_waits_as_long_as_it_was_asked_to(api, make_dispatch, db, endpoint):
    """Not only the five minutes of its subscription."""
    endpoint.script(refuse(503, "2000"))
    api.subscribe(endpoint.url)
    make_dispatch(retry_jitter=False)
    api.event({})
    until(lambda: turns(db)[0][0] == "slowed", "it rests")
    assert 1990 < db.value("SELECT extract(epoch FROM due_at - now())::float8"
                           " FROM postrider.lane") <= 2000


@pytest.mark.parametrize("status", [408, 425, 500, 501, 505])
def test_no_other_answer_slows_it_down(status, api, dispatch, db, endpoint):
    endpoint.script(refuse(status, "100"), 200)
    api.subscribe(endpoint.url, max_in_flight=1)
    batch(api, 2)
    until(lambda: len(endpoint.requests) == 2, "the other is sent at once")
    assert turns(db)[0][2] is None


@pytest.mark.parametrize("known", [False, True])
def test_what_is_recorded_along_with_the_refusal_hands_back_no_lane(
        api, make_dispatch, db, endpoint, make_endpoint, other, known):
    """Whether or not it is known when it is leased that the lane goes on."""
    go = {name: threading.Event() for name in "abc"}
    status = {"a": 200, "b": 503, "c": 200}
    answered, beside = threading.Semaphore(0), make_endpoint()

    def answer(handler, request):
        asset = json.loads(request.body)["asset"]
        go[asset].wait()
        reply(handler, status[asset], *["3"] * (asset == "b"))
        answered.release()

    endpoint.script(answer)
    make_dispatch(lease_margin="2m")  # and half of it for a statement
    api.subscribe(endpoint.url, event_types=["t"])
    api.subscribe(beside.url, event_types=["beside"])
    batch_of(api, "aabc" if known else "abc")
    until(lambda: len(endpoint.requests) == 3, "three are under way")
    if not known:
        batch_of(api, "a")
    other.execute("SELECT FROM postrider.lane WHERE asset = 'c' FOR UPDATE")
    go["c"].set()
    until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                           " AND datname = current_database()") == 1, "a record waits")
    go["a"].set()
    go["b"].set()
    for _ in "abc":
        assert answered.acquire(timeout=10)
    # Whoever sends this after them has looked at all that had come by then.
    api.event({}, type="beside")
    until(lambda: beside.requests, "their answers have been read")
    other.rollback()
    until(lambda: turns(db)[0][0] == "slowed", "it rests")
    never(lambda: len(endpoint.requests) > 3, "the second of lane a")


# -- how many it takes --

def test_what_refuses_all_above_a_number_is_sent_about_that_many(
        api, dispatch, db, endpoint):
    capacity = Capacity(8)
    endpoint.script(capacity)
    api.subscribe(endpoint.url, max_in_flight=100, retry_base_ms=200, max_attempts=100)
    db.execute("UPDATE postrider.subscription SET circuit_after = 0")
    batch(api, 100)
    until(lambda: capacity.taken >= 50, "it has settled", seconds=30)
    batch(api, 800)
    refused, began = capacity.refused, time.monotonic()
    until(lambda: delivered(db), "all are delivered", seconds=60)
    took = time.monotonic() - began
    assert capacity.refused - refused < 80, "fewer than one in ten is refused"
    assert took < 4 * 800 * capacity.seconds / capacity.most, "and what it can take is made use of"


def test_a_burst_that_is_refused_halves_it_once(api, dispatch, db, endpoint):
    """In however many records its refusals are kept."""
    all_of_them = threading.Barrier(16)

    def answer(handler, _):
        dawdle(0.05 * all_of_them.wait())
        reply(handler, 429)

    endpoint.script(answer)
    api.subscribe(endpoint.url, max_in_flight=16, retry_base_ms=3600000)
    batch(api, 16)
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") == 16, "all are recorded")
    assert turns(db)[0][2] == 8


def test_eight_dispatchers_share_the_lower_number(api, make_dispatch, db, endpoint):
    """It begins with 4, and n successes make it the root of 16 + 2 n."""
    lock, state = threading.Lock(), {"now": 0, "taken": 0, "excess": 0}

    def count(handler, _):
        with lock:
            state["now"] += 1
            allowed = math.floor(math.sqrt(16 + 2 * state["taken"]))
            state["excess"] = max(state["excess"], state["now"] - allowed)
        dawdle(0.01)
        with lock:
            state["now"] -= 1
            state["taken"] += 1
        reply(handler, 200)

    endpoint.script(count)
    api.subscribe(endpoint.url, max_in_flight=1000)
    db.execute("UPDATE postrider.turn SET slowed_to = 4, slowed_at = now()")
    batch(api, 300)
    for _ in range(DISPATCHERS):
        make_dispatch(poll="50ms")
    until(lambda: delivered(db), "all are delivered", seconds=60)
    assert state["excess"] == 0
    assert db.value("SELECT slowed_to FROM postrider.turn") == pytest.approx(math.sqrt(16 + 600))


def test_eight_dispatchers_find_the_number_together(api, make_dispatch, db, endpoint):
    capacity = Capacity(8)
    endpoint.script(capacity)
    api.subscribe(endpoint.url, max_in_flight=200, retry_base_ms=200, max_attempts=100)
    db.execute("UPDATE postrider.subscription SET circuit_after = 0")
    for _ in range(DISPATCHERS):
        make_dispatch(poll="50ms")
    batch(api, 100)
    until(lambda: capacity.taken >= 50, "it has settled", seconds=30)
    batch(api, 400)
    refused = capacity.refused
    until(lambda: delivered(db), "all are delivered", seconds=60)
    assert capacity.refused - refused < 80


def test_what_takes_all_again_gets_all_again(api, dispatch, db, endpoint):
    endpoint.script(502, 200)
    api.subscribe(endpoint.url, max_in_flight=6, retry_base_ms=100)
    batch(api, 60)
    until(lambda: len(endpoint.requests) == 61, "all are sent", seconds=20)
    until(lambda: turns(db)[0][2] is None, "nothing slows it down")


def test_an_endpoint_that_refuses_all_opens_its_circuit(api, dispatch, db, endpoint):
    """However few it gets: the probe waits as long as it asks for."""
    endpoint.script(refuse(503, "100"))
    api.subscribe(endpoint.url, max_in_flight=10, retry_base_ms=1000)
    db.execute("UPDATE postrider.subscription SET circuit_after = 10")
    batch(api, 10)
    until(lambda: db.value("SELECT circuit FROM postrider.turn") == "open", "it opens")
    (rest, wake_in, _), = turns(db)
    assert rest == "circuit" and 90 < wake_in <= 100
