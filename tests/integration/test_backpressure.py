"""One bad endpoint harms only itself."""

import socket
import threading
import time

from .wait import dawdle, never, until


def connections(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND application_name LIKE 'postrider-dispatch%%'")


def latency(api, endpoint, n):
    """Median seconds from the post to the request, one event at a time."""
    waits = []
    for _ in range(n):
        before = len(endpoint.requests)
        began = time.monotonic()
        api.event({}, type="healthy")
        until(lambda: len(endpoint.requests) > before, "it arrives")
        waits.append(endpoint.requests[-1].at - began)
    return sorted(waits)[n // 2]


def test_five_hundred_silent_endpoints_do_not_slow_a_healthy_one(
        api, make_dispatch, db, endpoint):
    make_dispatch(max_in_flight=1000)
    api.subscribe(endpoint.url, event_types=["healthy"])
    alone = latency(api, endpoint, 15)
    assert connections(db) == 2

    with socket.create_server(("127.0.0.1", 0), backlog=1000) as silent:
        for n in range(500):
            api.subscribe(f"http://127.0.0.1:{silent.getsockname()[1]}/{n}",
                          event_types=["silent"], timeout_ms=60000)
        for n in range(2):
            api.event({"n": n}, type="silent", asset="a")
        until(lambda: db.value("SELECT count(lease_token) FROM postrider.lane") == 500,
              "five hundred requests are in flight", seconds=60)
        beside = latency(api, endpoint, 15)
        assert connections(db) == 2
        assert db.value("SELECT count(*) FROM pg_stat_activity WHERE datname ="
                        " current_database() AND xact_start < now() - interval '2 s'") == 0
        # Generous, since a machine under test stalls; a blocked loop takes seconds.
        assert beside < max(10 * alone, 0.5)


class Gauge:
    """How many requests an endpoint has at once."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __call__(self, handler, _):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        dawdle(0.02)
        with self.lock:
            self.now -= 1
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


def test_the_limit_of_a_subscription_holds_across_dispatchers(
        api, make_dispatch, db, endpoint):
    gauge = Gauge()
    endpoint.script(gauge)
    api.subscribe(endpoint.url, ordering="none", max_in_flight=7)
    for _ in range(3):
        make_dispatch(poll="100ms")
    for n in range(200):
        api.event({"n": n})
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.deliveries")
          == [("delivered",)], "all are delivered", seconds=60)
    assert 1 < gauge.most <= 7


def test_a_deep_backlog_does_not_keep_a_new_delivery_waiting(
        api, make_dispatch, db, make_endpoint):
    busy, fresh = make_endpoint(), make_endpoint()
    busy.script(Gauge())
    api.subscribe(busy.url, event_types=["busy"], ordering="none", max_in_flight=10)
    api.subscribe(fresh.url, event_types=["fresh"])
    lines = b"\n".join(b'{"type":"busy","data":%d}' % n for n in range(1000))
    api.call("POST", "/v1/events/batch", lines,
             {"Content-Type": "application/x-ndjson"}).expect(202)
    make_dispatch()
    until(lambda: len(busy.requests) > 20, "the backlog is being sent")
    api.event({}, type="fresh")
    until(lambda: fresh.requests, "the new one is sent at once", seconds=3)
    assert len(busy.requests) < 1000


def test_a_paused_subscription_waits_and_goes_on(api, dispatch, db, endpoint):
    made = api.subscribe(endpoint.url)
    db.execute("UPDATE postrider.subscription SET state = 'paused' WHERE id = %s",
               (made["id"],))
    api.event({"n": 1})
    until(lambda: db.value("SELECT rest FROM postrider.turn") == "paused", "it rests")
    never(lambda: endpoint.requests, "a request while paused")
    db.execute("UPDATE postrider.subscription SET state = 'active'")
    db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now()")
    db.execute("NOTIFY postrider_work")
    until(lambda: endpoint.requests, "it goes on where it was")


def test_a_full_dispatcher_serves_all_in_turn(api, make_dispatch, db, endpoint):
    """With room for few, it is not always the same few."""
    for n in range(8):
        api.subscribe(f"{endpoint.url}{n}", ordering="none")
    for n in range(20):
        api.event({"n": n})
    make_dispatch(max_in_flight=2)
    until(lambda: len(endpoint.requests) >= 48, "a third is sent")
    seen = [request.path for request in endpoint.requests[:48]]
    assert min(seen.count(f"/{n}") for n in range(8)) >= 3


def test_deep_lanes_do_not_keep_a_full_dispatcher_to_themselves(
        api, make_dispatch, db, make_endpoint):
    busy, fresh = make_endpoint(), make_endpoint()
    busy.script(Gauge())
    api.subscribe(busy.url, event_types=["busy"])
    api.subscribe(fresh.url, event_types=["fresh"])
    lines = b"\n".join(b'{"type":"busy","asset":"%d","data":0}' % (n % 2) for n in range(400))
    api.call("POST", "/v1/events/batch", lines,
             {"Content-Type": "application/x-ndjson"}).expect(202)
    make_dispatch(max_in_flight=2)
    until(lambda: len(busy.requests) > 10, "the deep lanes are being sent")
    api.event({}, type="fresh")
    until(lambda: fresh.requests, "the new one is sent", seconds=30)
    assert len(busy.requests) < 200


def transactions(db):
    return db.value("SELECT xact_commit + xact_rollback FROM pg_stat_database"
                    " WHERE datname = current_database()")


def test_a_lane_that_somebody_holds_is_not_asked_for_without_pause(
        api, make_dispatch, db, cluster, endpoint):
    api.subscribe(endpoint.url)
    api.event({"n": 1}, asset="a")
    with cluster.connect(db.name) as other:
        other.autocommit = False
        other.execute("SELECT FROM postrider.lane FOR UPDATE")
        make_dispatch()
        before = transactions(db)
        never(lambda: transactions(db) - before > 1500, "passes without pause", seconds=2)
        other.rollback()
    until(lambda: endpoint.requests, "it is sent")


def test_a_lease_that_somebody_holds_is_not_asked_for_without_pause(
        api, make_dispatch, db, cluster, endpoint):
    api.subscribe(endpoint.url)
    api.event({"n": 1}, asset="a")
    db.execute("UPDATE postrider.lane SET due_at = NULL, lease_token = gen_random_uuid(),"
               " lease_worker = 'gone', leased_at = now() - interval '2 hours',"
               " lease_until = now() - interval '1 hour',"
               " look_at = now()")
    with cluster.connect(db.name) as other:
        other.autocommit = False
        other.execute("SELECT FROM postrider.lane FOR UPDATE")
        make_dispatch()
        before = transactions(db)
        never(lambda: transactions(db) - before > 1500, "passes without pause", seconds=2)
        other.rollback()
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt"), "it is taken over")


def test_a_pause_counts_from_the_next_head_of_a_lane(api, dispatch, db, endpoint):
    """A running request finishes; what stands behind it is not handed straight back."""
    answer = threading.Event()

    def wait(handler, _):
        answer.wait(20)
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    endpoint.script(wait, 200)
    made = api.subscribe(endpoint.url, timeout_ms=20000)
    api.event({"n": 1}, asset="a")
    api.event({"n": 2}, asset="a")
    until(lambda: endpoint.requests, "the first is in flight")
    db.execute("UPDATE postrider.subscription SET state = 'paused' WHERE id = %s",
               (made["id"],))
    answer.set()
    until(lambda: db.value("SELECT state FROM postrider.deliveries ORDER BY id")
          == "delivered", "the first is recorded")
    never(lambda: len(endpoint.requests) > 1, "the second is sent while paused")
    db.execute("UPDATE postrider.subscription SET state = 'active'")
    db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now()")
    db.execute("NOTIFY postrider_work")
    until(lambda: len(endpoint.requests) == 2, "it goes on where it was")
