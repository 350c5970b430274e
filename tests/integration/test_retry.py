"""What becomes of a delivery, for each thing that may come back."""

import socket

import pytest

from .wait import never, until

FAST = {"retry_base_ms": 100, "retry_cap_ms": 60000, "timeout_ms": 500}


def head(db):
    """The head's attempts and the wait before its next, in milliseconds."""
    rows = db.rows("SELECT l.attempts, round(extract(epoch FROM l.due_at - a.started_at) * 1000"
                   " - a.duration_us / 1000.0) FROM postrider.lane l JOIN postrider.attempt a"
                   " ON a.delivery_id = l.head_id AND a.attempt = l.attempts"
                   " WHERE l.due_at IS NOT NULL")
    return rows[0] if rows else None


def state(db):
    return db.value("SELECT state FROM postrider.deliveries")


def answer(handler, status):
    handler.send_response(status)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def by_path(handler, request):
    """Answer with the status that the path names."""
    answer(handler, int(request.path.strip("/")))


def once_by_path():
    """Answer each path with its status once, then with 200."""
    seen = set()

    def act(handler, request):
        answer(handler, 200 if request.path in seen else int(request.path.strip("/")))
        seen.add(request.path)
    return act


def subscribe_all(api, endpoint, statuses):
    for status in statuses:
        api.subscribe(f"{endpoint.url}{status}", **FAST)


def outcomes(db):
    """Status, state, attempts, of each delivery."""
    return db.rows("SELECT status, state, attempts FROM postrider.deliveries ORDER BY status")


def test_a_success_is_delivered(api, dispatch, db, endpoint):
    endpoint.script(by_path)
    statuses = [200, 201, 202, 204, 226, 299]
    subscribe_all(api, endpoint, statuses)
    api.event({})
    until(lambda: outcomes(db) == [(s, "delivered", 1) for s in statuses], "all are delivered")


def test_what_may_pass_is_tried_again(api, dispatch, db, endpoint):
    endpoint.script(once_by_path())
    statuses = [408, 425, 429, 500, 501, 502, 503, 504, 599]
    subscribe_all(api, endpoint, statuses)
    api.event({})
    until(lambda: outcomes(db) == [(200, "delivered", 2)] * len(statuses), "all are delivered")
    assert db.rows("SELECT status FROM postrider.attempt WHERE attempt = 1"
                   " ORDER BY status") == [(s,) for s in statuses]


def test_what_will_not_pass_is_dead_at_once(api, dispatch, db, endpoint):
    endpoint.script(by_path)
    statuses = [300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 409, 422, 451, 499]
    subscribe_all(api, endpoint, statuses)
    api.event({}, asset="a")
    api.event({}, asset="a")
    until(lambda: outcomes(db) == sorted([(s, "dead", 1) for s in statuses] * 2),
          "all are dead, and the lanes have gone on")
    assert {(s, f"HTTP status {s}") for s in statuses} == set(
        db.rows("SELECT status, reason FROM postrider.dead_letters"))
    assert db.value("SELECT count(*) FROM postrider.lane") == 0


def test_a_redirect_is_not_followed(api, dispatch, db, make_endpoint):
    first, second = make_endpoint(), make_endpoint()

    def redirect(handler, _):
        handler.send_response(307)
        handler.send_header("Location", second.url)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    first.script(redirect)
    api.subscribe(first.url)
    api.event({})
    until(lambda: state(db) == "dead", "it is dead")
    assert second.requests == []


def test_gone_disables_the_subscription(api, dispatch, db, endpoint):
    endpoint.script(410)
    made = api.subscribe(endpoint.url)
    api.event({}, asset="a")
    api.event({}, asset="b")
    until(lambda: db.value("SELECT state FROM postrider.subscription") == "disabled",
          "it is disabled")
    assert "410" in api.get(f"/v1/subscriptions/{made['id']}").expect(200)["state_reason"]
    assert api.event({})["deliveries"] == 0
    assert db.value("SELECT count(*) FROM postrider.audit"
                    " WHERE action = 'subscription.disabled'") == 1


def test_backoff_doubles_up_to_its_cap(api, make_dispatch, db, endpoint):
    endpoint.script(500)
    made = api.subscribe(endpoint.url, retry_base_ms=200, retry_cap_ms=500, max_attempts=20)
    make_dispatch(retry_jitter=False)
    api.event({})
    for attempts, wait in (1, 200), (2, 400), (3, 500), (4, 500):
        found = until(lambda: (h := head(db)) and h[0] == attempts and h,
                      f"attempt {attempts} has failed")
        assert found[1] == pytest.approx(wait, abs=150)
    assert made["max_attempts"] == 20


def test_retry_after_is_honoured_up_to_the_cap(api, make_dispatch, db, endpoint):
    waits = iter(["2", "100000", "-5", "soon"])

    def throttle(handler, _):
        handler.send_response(429)
        handler.send_header("Retry-After", next(waits))
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    endpoint.script(throttle)
    api.subscribe(endpoint.url, retry_base_ms=100, retry_cap_ms=5000)
    make_dispatch(retry_jitter=False)
    api.event({})
    assert until(lambda: head(db), "it waits")[1] == pytest.approx(2000, abs=150)
    for attempts, wait in (2, 5000), (3, 400), (4, 800):
        # The wait itself is not ours to sit out.
        db.execute("UPDATE postrider.lane SET due_at = now() WHERE due_at IS NOT NULL")
        db.execute("UPDATE postrider.turn SET wake_at = now() WHERE wake_at IS NOT NULL")
        db.execute("NOTIFY postrider_work")
        found = until(lambda: (h := head(db)) and h[0] == attempts and h,
                      f"attempt {attempts} has failed")
        assert found[1] == pytest.approx(wait, abs=150)


def test_the_last_attempt_ends_it(api, dispatch, db, endpoint):
    endpoint.script(500)
    api.subscribe(endpoint.url, **{**FAST, "retry_base_ms": 10}, max_attempts=3)
    api.event({}, asset="a")
    until(lambda: state(db) == "dead", "it is dead")
    assert len(endpoint.requests) == 3
    assert db.rows("SELECT attempts, status FROM postrider.dead_letters") == [(3, 500)]


def test_hold_keeps_the_lane_waiting_for_a_person(api, dispatch, db, endpoint):
    endpoint.script(422, 200)
    api.subscribe(endpoint.url, on_dead="hold")
    api.event({"n": 1}, asset="a")
    until(lambda: state(db) == "dead", "the head is dead")
    api.event({"n": 2}, asset="a")
    api.event({"n": 3}, asset="b")
    until(lambda: len(endpoint.requests) == 2, "the other lane goes on")
    never(lambda: len(endpoint.requests) > 2, "the held lane moves")
    assert db.rows("SELECT asset, why FROM postrider.stuck") == [
        ("a", "held by a dead letter")]


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_a_refused_connection_is_tried_again(api, dispatch, db):
    api.subscribe(f"http://127.0.0.1:{closed_port()}/", **FAST)
    api.event({})
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") >= 2, "two attempts")
    assert db.value("SELECT DISTINCT ended FROM postrider.attempt") == "connect_failed"
    assert state(db) in ("retrying", "delivering")


def test_no_answer_is_a_time_out_and_tried_again(api, dispatch, db, endpoint):
    endpoint.script("hang", 200)
    api.subscribe(endpoint.url, **FAST)
    api.event({})
    until(lambda: state(db) == "delivered", "it is delivered")
    ended, duration = db.rows("SELECT ended, duration_us FROM postrider.attempt"
                              " WHERE attempt = 1")[0]
    assert ended == "timed_out"
    assert 450_000 < duration < 2_000_000


def test_attempts_without_end_stay_within_the_cap(api, make_dispatch, db, endpoint):
    """2^n overflows nothing, whatever n."""
    endpoint.script(500)
    api.subscribe(endpoint.url, retry_base_ms=1000, retry_cap_ms=3000,
                  max_attempts=2147483647)
    api.event({})
    for attempts in 29, 62, 63, 999, 2147483645:
        db.execute("UPDATE postrider.lane SET attempts = %s, due_at = now()", (attempts,))
        db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now(), wake_at = NULL")
        dispatch = make_dispatch(retry_jitter=False)
        found = until(lambda: (h := head(db)) and h[0] == attempts + 1 and h,
                      f"attempt {attempts + 1} has failed")
        assert found[1] == pytest.approx(3000, abs=200)
        dispatch.stop()


def test_a_thousand_retries_spread(api, dispatch, db, endpoint):
    endpoint.script(503)
    api.subscribe(endpoint.url, ordering="none", retry_base_ms=60000, retry_cap_ms=60000,
                  max_in_flight=1000)
    db.execute("UPDATE postrider.subscription SET circuit_after = 0")
    for _ in range(200):
        api.event({})
    until(lambda: db.value("SELECT count(*) FROM postrider.deliveries"
                           " WHERE state = 'retrying'") == 200, "all wait", seconds=30)
    low, high, distinct = db.rows(
        "SELECT min(w), max(w), count(DISTINCT round(w)) FROM (SELECT extract(epoch FROM"
        " l.due_at - a.started_at) AS w FROM postrider.lane l JOIN postrider.attempt a"
        " ON a.delivery_id = l.head_id) x")[0]
    assert 29 < low < 40 and 50 < high < 62
    assert distinct > 20
