"""A subscription is changed with work queued and in flight."""

import json
import threading

import pytest

from .wait import never, until

LATER = "1h"  # a dispatcher that polls no sooner acts on what it is told alone


class Gate:
    """Keeps requests in hand until it is opened, and counts them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.opened = threading.Event()
        self.now = self.most = 0

    def __call__(self, handler, _):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.opened.wait(30)
        with self.lock:
            self.now -= 1
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@pytest.fixture
def make_gate():
    """Gates are open at the end, or their requests would last."""
    made = []

    def make():
        made.append(Gate())
        return made[-1]

    yield make
    for gate in made:
        gate.opened.set()


@pytest.fixture
def subscribe(api, endpoint):
    """Make a subscription; returns its path."""
    def make(**fields):
        return "/v1/subscriptions/" + api.subscribe(endpoint.url, **fields)["id"]
    return make


def post(api, n, asset):
    """n events at once; a "%d" in the asset is the number of each."""
    lines = "".join(json.dumps({
        "type": "t", "data": i, "asset": asset.replace("%d", str(i))}) + "\n" for i in range(n))
    api.post("/v1/events/batch", lines.encode(),
             headers={"Content-Type": "application/x-ndjson"}).expect(202)


def numbers(endpoint):
    """The data of the events that it was sent, in order."""
    return [json.loads(request.body)["data"] for request in endpoint.requests]


def states(db):
    """How many deliveries are in each state."""
    return dict(db.rows("SELECT state, count(*) FROM postrider.deliveries GROUP BY state"))


def turn(db):
    return db.rows("SELECT rest, circuit FROM postrider.turn")[0]


def in_flight(db):
    return db.value("SELECT count(lease_token) FROM postrider.lane")


# -- pause and resume --

def test_a_pause_lets_what_runs_finish_and_a_resume_goes_on_there(
        api, make_dispatch, db, endpoint, subscribe, make_gate):
    gate = make_gate()
    endpoint.script(gate)
    path = subscribe()
    make_dispatch(poll=LATER)
    post(api, 5, "a")
    until(lambda: gate.now == 1, "the first is under way")
    api.post(path + "/pause").expect(200)
    assert turn(db)[0] == "paused"
    post(api, 3, "b")
    gate.opened.set()
    until(lambda: states(db) == {"delivered": 1, "pending": 7}, "it is recorded")
    never(lambda: len(endpoint.requests) > 1, "another request")
    assert in_flight(db) == 0

    api.post(path + "/resume").expect(200)
    until(lambda: states(db) == {"delivered": 8}, "all are delivered")
    by_asset = {"a": [], "b": []}
    for request in endpoint.requests:
        event = json.loads(request.body)
        by_asset[event["asset"]].append(event["data"])
    assert by_asset == {"a": [0, 1, 2, 3, 4], "b": [0, 1, 2]}
    assert {request.headers["postrider-attempt"] for request in endpoint.requests} == {"1"}


def test_a_retry_that_falls_due_during_a_pause_waits_for_its_end(
        api, make_dispatch, db, endpoint, subscribe):
    endpoint.script(503, 200)
    path = subscribe(retry_base_ms=300)
    make_dispatch(poll="50ms", retry_jitter=False)
    post(api, 1, "a")
    until(lambda: states(db) == {"retrying": 1}, "the first attempt failed")
    api.post(path + "/pause").expect(200)
    until(lambda: db.value("SELECT due_at < now() FROM postrider.lane"), "it is due")
    never(lambda: len(endpoint.requests) > 1, "another attempt")
    api.post(path + "/resume").expect(200)
    until(lambda: states(db) == {"delivered": 1}, "it is delivered")
    assert [request.headers["postrider-attempt"] for request in endpoint.requests] == ["1", "2"]


def test_a_resume_lets_an_open_circuit_try_at_once(
        api, make_dispatch, db, endpoint, subscribe):
    endpoint.script(503, 200)
    path = subscribe(circuit_after=1, retry_base_ms=60000, max_in_flight=1)
    make_dispatch(poll=LATER)
    post(api, 2, "a%d")
    until(lambda: turn(db) == ("circuit", "open"), "the circuit is open")
    api.post(path + "/pause").expect(200)
    assert turn(db) == ("paused", "open")
    api.post(path + "/resume").expect(200)
    until(lambda: states(db) == {"delivered": 1, "retrying": 1}, "the probe is delivered")
    until(lambda: turn(db)[1] == "closed", "it closes the circuit")


# -- a change of what it is like --

def test_a_new_url_is_where_the_very_next_request_goes(
        api, make_dispatch, db, endpoint, make_endpoint, subscribe, make_gate):
    gate, elsewhere = make_gate(), make_endpoint()
    endpoint.script(gate)
    path = subscribe()
    make_dispatch(poll=LATER)
    post(api, 4, "a")
    until(lambda: gate.now == 1, "the first is under way")
    api.patch(path, {"url": elsewhere.url}).expect(200)
    gate.opened.set()
    until(lambda: states(db) == {"delivered": 4}, "all are delivered")
    assert (numbers(endpoint), numbers(elsewhere)) == ([0], [1, 2, 3])


def test_new_terms_of_retry_hold_for_the_next_attempt(
        api, make_dispatch, db, endpoint, subscribe):
    endpoint.script(503)
    path = subscribe(retry_base_ms=3600000)
    make_dispatch(poll=LATER)
    post(api, 1, "a")
    until(lambda: states(db) == {"retrying": 1}, "it waits for an hour")
    api.patch(path, {"max_attempts": 1, "timeout_ms": 100}).expect(200)
    post(api, 1, "b")
    until(lambda: states(db) == {"retrying": 1, "dead": 1}, "the other is dead at once")


def test_a_limit_that_is_lowered_and_raised_holds_at_once(
        api, make_dispatch, db, endpoint, subscribe, make_gate):
    first, second = make_gate(), make_gate()
    endpoint.script(first)
    path = subscribe(max_in_flight=50)
    for _ in range(2):
        make_dispatch(poll=LATER)
    post(api, 100, "a%d")
    until(lambda: first.now == 50, "fifty are under way")
    endpoint.script(second)
    api.patch(path, {"max_in_flight": 5}).expect(200)
    first.opened.set()
    until(lambda: second.now == 5, "five more are")
    until(lambda: states(db)["delivered"] == 50, "the fifty are over")
    until(lambda: turn(db)[0] == "limit", "the others wait")
    never(lambda: second.most > 5, "a sixth")

    api.patch(path, {"max_in_flight": 20}).expect(200)
    until(lambda: second.now == 20, "there are twenty at once")
    never(lambda: second.most > 20, "one more")
    second.opened.set()
    until(lambda: states(db) == {"delivered": 100}, "all are delivered")
    assert second.most <= 20


def test_a_lowered_limit_is_kept_by_lanes_that_never_run_dry(
        api, make_dispatch, db, endpoint, subscribe, make_gate):
    """They are handed back to their dispatcher, which no claim is asked for."""
    first, second = make_gate(), make_gate()
    endpoint.script(first)
    path = subscribe(max_in_flight=10)
    make_dispatch(poll=LATER)
    for _ in range(4):
        post(api, 10, "a%d")
    until(lambda: first.now == 10, "ten are under way")
    endpoint.script(second)
    api.patch(path, {"max_in_flight": 2}).expect(200)
    first.opened.set()
    until(lambda: second.now == 2, "two more are")
    until(lambda: states(db)["delivered"] == 10, "the ten are over")
    never(lambda: second.most > 2, "a third")
    second.opened.set()
    until(lambda: states(db) == {"delivered": 40}, "all are delivered")
    assert second.most == 2


def test_a_rate_that_is_changed_or_lifted_holds_at_once(
        api, make_dispatch, db, endpoint, subscribe):
    path = subscribe(rate_per_second=0.002)
    make_dispatch(poll=LATER)
    post(api, 50, "a%d")
    until(lambda: turn(db)[0] == "rate", "the second waits, for 500 seconds")
    assert len(endpoint.requests) == 1

    rate = 8
    api.patch(path, {"rate_per_second": rate}).expect(200)
    until(lambda: len(endpoint.requests) >= 20, "some are sent")
    at = [request.at for request in endpoint.requests[1:]]
    worst = max(j - i + 1 - rate * (at[j] - at[i] + 1)
                for i in range(len(at)) for j in range(i, len(at)))
    assert worst <= 1e-6

    api.patch(path, {"rate_per_second": None}).expect(200)
    until(lambda: states(db) == {"delivered": 50}, "all are delivered", seconds=2)


def test_a_circuit_that_is_to_open_no_more_is_closed_at_once(
        api, make_dispatch, db, endpoint, subscribe):
    endpoint.script(503)
    path = subscribe(circuit_after=2, retry_base_ms=60000, max_in_flight=1)
    make_dispatch(poll=LATER)
    post(api, 12, "a%d")
    until(lambda: turn(db) == ("circuit", "open"), "the circuit is open")
    api.patch(path, {"circuit_after": 0}).expect(200)
    until(lambda: len(endpoint.requests) >= 12, "all are tried")
    assert db.rows("SELECT circuit, failures, circuit_opens FROM postrider.turn") == [
        ("closed", 0, 0)]


def test_a_new_url_is_tried_at_once_though_the_circuit_is_open(
        api, make_dispatch, db, endpoint, make_endpoint, subscribe):
    endpoint.script(503)
    path = subscribe(circuit_after=1, retry_base_ms=60000, max_in_flight=1)
    make_dispatch(poll=LATER)
    post(api, 3, "a%d")
    until(lambda: turn(db) == ("circuit", "open"), "the circuit is open")
    api.patch(path, {"max_attempts": 20}).expect(200)
    assert turn(db) == ("circuit", "open")
    elsewhere = make_endpoint()
    api.patch(path, {"url": elsewhere.url}).expect(200)
    until(lambda: states(db) == {"delivered": 2, "retrying": 1}, "the others are delivered")
    assert turn(db)[1] == "closed"


def test_a_change_wakes_nothing_that_is_paused(api, make_dispatch, db, endpoint, subscribe):
    path = subscribe(rate_per_second=1)
    api.post(path + "/pause").expect(200)
    make_dispatch(poll="50ms")
    post(api, 3, "a%d")
    api.patch(path, {"rate_per_second": None, "max_in_flight": 9, "circuit_after": 0}).expect(200)
    never(lambda: endpoint.requests, "a request")
    assert turn(db)[0] == "paused"


# -- disable and delete --

def test_what_answers_410_is_disabled_and_goes_on_when_enabled(
        api, make_dispatch, db, endpoint, subscribe):
    endpoint.script(410, 200)
    path = subscribe(max_in_flight=1)
    make_dispatch(poll=LATER)
    post(api, 3, "a")
    until(lambda: turn(db)[0] == "disabled", "the turn rests")
    assert states(db) == {"dead": 1, "pending": 2}
    shown = api.get(path).expect(200)
    assert (shown["state"], "410" in shown["state_reason"]) == ("disabled", True)
    assert api.event(1, asset="a")["deliveries"] == 0
    never(lambda: len(endpoint.requests) > 1, "another request")

    api.post(path + "/enable").expect(200)
    until(lambda: states(db) == {"dead": 1, "delivered": 2}, "the others are delivered")
    assert numbers(endpoint) == [0, 1, 2]


def test_what_a_person_disables_goes_on_when_enabled(
        api, make_dispatch, db, endpoint, subscribe, make_gate):
    gate = make_gate()
    endpoint.script(gate)
    path = subscribe()
    make_dispatch(poll=LATER)
    post(api, 3, "a")
    until(lambda: gate.now == 1, "the first is under way")
    api.post(path + "/disable").expect(200)
    assert api.event(1, asset="a")["deliveries"] == 0
    gate.opened.set()
    until(lambda: states(db) == {"delivered": 1, "pending": 2}, "it is recorded")
    never(lambda: len(endpoint.requests) > 1, "another request")
    api.post(path + "/enable").expect(200)
    until(lambda: states(db) == {"delivered": 3}, "all are delivered")
    assert numbers(endpoint) == [0, 1, 2]


@pytest.mark.parametrize("move", ["pause", "disable", None])
def test_what_is_deleted_finishes_what_runs_and_is_sent_nothing_more(
        api, make_dispatch, db, endpoint, subscribe, make_gate, move):
    gate = make_gate()
    endpoint.script(gate)
    path = subscribe(max_in_flight=2)
    dispatch = make_dispatch(poll="100ms")
    for asset in ("a", "b", "c"):
        post(api, 4, asset)
    until(lambda: gate.now == 2, "two are under way")
    if move is not None:
        api.post(f"{path}/{move}").expect(200)
    api.delete(path).expect(204)
    gate.opened.set()
    until(lambda: states(db) == {"delivered": 2, "cancelled": 10}, "all are over")
    until(lambda: db.rows("SELECT rest, wake_at FROM postrider.turn") == [("deleted", None)],
          "nothing is left to do")
    assert len(endpoint.requests) == 2
    assert db.value("SELECT count(*) FROM postrider.lane") == 0
    assert "level=error" not in dispatch.log()


def test_what_waits_is_cancelled_as_soon_as_it_is_deleted(
        api, make_dispatch, db, endpoint, subscribe):
    path = subscribe()
    api.post(path + "/pause").expect(200)
    make_dispatch(poll=LATER)
    for asset in ("a", "b"):
        post(api, 4, asset)
    api.delete(path).expect(204)
    until(lambda: states(db) == {"cancelled": 8}, "all are cancelled")
    assert not endpoint.requests
    assert db.value("SELECT count(*) FROM postrider.lane") == 0


def test_its_neighbours_are_not_touched(api, make_dispatch, db, endpoint, make_endpoint,
                                        subscribe):
    """What happens to one subscription happens to no other."""
    endpoint.script(503)
    path, neighbour = subscribe(retry_base_ms=3600000), make_endpoint()
    api.subscribe(neighbour.url)
    make_dispatch(poll=LATER)
    for n, change in enumerate((
            lambda: api.post(path + "/pause"), lambda: api.post(path + "/disable"),
            lambda: api.patch(path, {"url": "http://127.0.0.1:9/"}),
            lambda: api.delete(path)), 1):
        change()
        post(api, 1, "a")
        until(lambda n=n: len(neighbour.requests) == n, "the neighbour gets its event")
    assert not endpoint.requests
