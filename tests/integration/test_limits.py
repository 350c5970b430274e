"""Limits are exact across all dispatchers: in flight, per second, and an open circuit."""

import threading

from . import statement
from .wait import dawdle, never, until

DISPATCHERS = 8


class Gauge:
    """Answers after a while, and knows how many it had in hand at most."""

    def __init__(self, seconds):
        self.lock = threading.Lock()
        self.seconds = seconds
        self.now = self.most = 0

    def __call__(self, handler, _):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        dawdle(self.seconds)
        with self.lock:
            self.now -= 1
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


def start(make_dispatch, n=DISPATCHERS, **settings):
    return [make_dispatch(**settings) for _ in range(n)]


def batch(api, n, **fields):
    lines = b"\n".join(b'{"type":"t","data":%d%s}' % (
        i, b"".join(b',"%s":"%s"' % (key.encode(), value.replace("%d", str(i)).encode())
                    for key, value in fields.items())) for i in range(n))
    api.call("POST", "/v1/events/batch", lines,
             {"Content-Type": "application/x-ndjson"}).expect(202)


def set_up(db, **fields):
    for field, value in fields.items():
        db.execute(f"UPDATE postrider.subscription SET {field} = %s", (value,))


def excess(at, rate, late):
    """By how many requests the rate was exceeded, at worst, over any time."""
    return max(j - i + 1 - rate * (at[j] - at[i] + 1 + late)
               for i in range(len(at)) for j in range(i, len(at)))


def circuit(db):
    return db.rows("SELECT circuit, rest, failures, circuit_opens FROM postrider.turn")[0]


def test_eight_dispatchers_keep_one_limit(api, make_dispatch, db, endpoint):
    gauge = Gauge(0.02)
    endpoint.script(gauge)
    api.subscribe(endpoint.url, max_in_flight=5)
    batch(api, 300, asset="a%d")
    start(make_dispatch, poll="50ms")
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.deliveries")
          == [("delivered",)], "all are delivered", seconds=60)
    assert gauge.most == 5


def test_eight_dispatchers_keep_one_rate(api, make_dispatch, db, endpoint):
    """In any t seconds a receiver sees at most rate * (t + 1) requests begin."""
    rate, late = 25, 0.25  # seconds after which a busy machine's endpoint reads its clock
    api.subscribe(endpoint.url, ordering="none")
    set_up(db, rate_per_second=rate)
    batch(api, 100)
    start(make_dispatch, poll="50ms")
    until(lambda: len(endpoint.requests) == 100, "all are sent", seconds=60)
    at = sorted(request.at for request in endpoint.requests)
    assert excess(at, rate, late) <= 0
    assert at[-1] - at[0] < 3 * 100 / rate, "and the rate is made use of"


def test_claims_keep_a_rate_exactly(db, cluster):
    """Whenever each request begins within the time that it was given."""
    rate, begin_within = 40, 0.1
    tenant = db.value("INSERT INTO postrider.tenant (name) VALUES ('acme') RETURNING id")
    made = db.value("INSERT INTO postrider.subscription (tenant_id, url, rate_per_second,"
                    " timeout_ms, max_in_flight) VALUES (%s, 'https://example.com/', %s, 1000, 200)"
                    " RETURNING id",
                    (tenant, rate))
    db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id, rest, entered_at)"
               " VALUES (%s, %s, NULL, now())", (made, tenant))
    db.execute("INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id,"
               " head_event_no, due_at) SELECT g, %s, g, g, g, now()"
               " FROM generate_series(1, 200) g", (made,))

    def granted(*connections):
        for connection in connections:
            with connection.transaction():
                statement.claim(connection)
        return [at for at, in db.rows(
            "SELECT extract(epoch FROM lease_until)::float8 FROM postrider.lane"
            " WHERE lease_token IS NOT NULL ORDER BY 1")]

    with cluster.connect(db.name) as first, cluster.connect(db.name) as second:
        until(lambda: len(granted(first, second)) >= 120, "many are granted", seconds=30)
    at = granted()
    assert excess(at, rate, -begin_within) <= 1e-3, "the first late, the last at once"
    assert at[-1] - at[0] < 1.2 * 120 / rate, "and the rate is made use of"


def test_a_slow_rate_sends_one_at_a_time(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url)
    set_up(db, rate_per_second=2)
    batch(api, 5, asset="a")
    start(make_dispatch, 2)
    until(lambda: len(endpoint.requests) == 5, "all are sent", seconds=30)
    at = [request.at for request in endpoint.requests]
    assert at == sorted(at)
    assert excess(at, 2, 0.25) <= 0
    until(lambda: db.rows("SELECT DISTINCT state, attempts FROM postrider.delivery")
          == [("delivered", 1)], "each took one attempt")


def test_what_waits_for_its_rate_rests(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url, ordering="none")
    set_up(db, rate_per_second=0.01)
    batch(api, 3)
    make_dispatch()
    until(lambda: endpoint.requests, "the first is sent")
    until(lambda: db.value("SELECT rest FROM postrider.turn") == "rate", "the others wait")
    assert 50 < db.value("SELECT extract(epoch FROM wake_at - now())::float8"
                         " FROM postrider.turn") < 101
    never(lambda: len(endpoint.requests) > 1, "a second request")


def test_a_run_of_failures_opens_the_circuit(api, make_dispatch, db, endpoint):
    """Across lanes; then nothing is sent, and no attempt is used up."""
    endpoint.script(500)
    api.subscribe(endpoint.url, max_in_flight=4, retry_base_ms=3600000)
    set_up(db, circuit_after=10)
    batch(api, 40, asset="a%d")
    make_dispatch()
    until(lambda: circuit(db)[0] == "open", "it opens")
    until(lambda: db.value("SELECT count(lease_token) FROM postrider.lane") == 0,
          "what was under way is over")
    sent = len(endpoint.requests)
    assert 10 <= sent < 10 + 4
    never(lambda: len(endpoint.requests) > sent, "a request while it is open")
    assert circuit(db)[1] == "circuit"
    assert db.value("SELECT sum(attempts) FROM postrider.lane") == sent
    assert db.rows("SELECT action FROM postrider.audit WHERE actor = 'dispatch'") == [
        ("subscription.circuit_opened",)]


def test_the_circuit_lets_one_probe_through_and_backs_off(api, make_dispatch, db, endpoint):
    endpoint.script(503)
    api.subscribe(endpoint.url, max_in_flight=10, retry_base_ms=200, retry_cap_ms=60000,
                  max_attempts=100)
    set_up(db, circuit_after=5)
    batch(api, 30, asset="a%d")
    start(make_dispatch, 3)
    until(lambda: circuit(db)[3] >= 4, "three probes fail", seconds=20)
    first, second, third = (request.at for request in endpoint.requests[-3:])
    assert second - first > 0.4 and third - second > 0.8, "one each, and the wait doubles"

    endpoint.script(200)
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.deliveries")
          == [("delivered",)], "a probe closes it, and all are delivered", seconds=30)
    until(lambda: circuit(db)[0] == "closed" and circuit(db)[2:] == (0, 0), "it is closed")
    assert db.rows("SELECT action FROM postrider.audit WHERE actor = 'dispatch' ORDER BY id") \
        == [("subscription.circuit_opened",), ("subscription.circuit_closed",)]


def test_a_success_ends_a_run_of_failures(api, make_dispatch, db, endpoint):
    endpoint.script(*([500, 500, 200] * 10))
    api.subscribe(endpoint.url, ordering="none", max_in_flight=1, max_attempts=1)
    set_up(db, circuit_after=3)
    batch(api, 29)
    make_dispatch()
    until(lambda: len(endpoint.requests) == 29, "all are sent")
    until(lambda: db.value("SELECT count(*) FROM postrider.lane") == 0, "all are recorded")
    assert circuit(db)[0] == "closed"


def test_a_vanished_dispatcher_is_no_failure_of_the_endpoint(
        api, make_dispatch, db, endpoint):
    endpoint.script("hang", "hang", 200)
    api.subscribe(endpoint.url, timeout_ms=500, retry_base_ms=1)
    set_up(db, circuit_after=1)
    dispatch = make_dispatch(lease_margin="500ms")
    batch(api, 2, asset="a%d")
    until(lambda: len(endpoint.requests) == 2, "two are under way")
    dispatch.kill(9)
    make_dispatch(lease_margin="500ms")
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.deliveries")
          == [("delivered",)], "both are delivered")
    assert circuit(db)[0] == "closed"
    assert db.value("SELECT count(*) FROM postrider.attempt WHERE ended = 'lease_expired'") == 2
