"""Leases: a dead worker blocks nothing for long, a late one changes nothing."""

import json
import signal
import threading
from pathlib import Path

from .wait import never, until

LEASE = {"lease_margin": "1200ms", "poll": "200ms"}
FAST = {"retry_base_ms": 10, "retry_cap_ms": 10, "timeout_ms": 500}


def attempts(db):
    return db.rows("SELECT attempt, ended FROM postrider.attempt ORDER BY attempt, ended DESC")


def state(db):
    return db.value("SELECT state FROM postrider.deliveries")


def test_a_worker_killed_while_sending_consumes_an_attempt(api, make_dispatch, db, endpoint):
    endpoint.script("hang", 200)
    api.subscribe(endpoint.url, **FAST)
    first = make_dispatch(**LEASE)
    api.event({"n": 1})
    until(lambda: endpoint.requests, "the first request is under way")
    first.kill(signal.SIGKILL)
    make_dispatch(**LEASE)
    until(lambda: state(db) == "delivered", "another delivers it")
    assert attempts(db) == [(1, "lease_expired"), (2, "answered")]
    assert [r.headers["postrider-attempt"] for r in endpoint.requests] == ["1", "2"]


def test_every_crash_counts_and_the_last_is_the_end(api, make_dispatch, db, endpoint):
    endpoint.script("hang")
    api.subscribe(endpoint.url, **FAST, max_attempts=3)
    api.event({"n": 1}, asset="a")
    for n in range(1, 4):
        dispatch = make_dispatch(**LEASE)
        until(lambda: len(endpoint.requests) == n, f"request {n} is under way")
        dispatch.kill(signal.SIGKILL)
    endpoint.script(200)
    api.event({"n": 2}, asset="a")
    make_dispatch(**LEASE)
    until(lambda: len(endpoint.requests) == 4, "the lane goes on")
    assert db.rows("SELECT attempt, ended FROM postrider.attempt a JOIN"
                   " postrider.dead_letter USING (delivery_id) ORDER BY attempt, ended DESC") == [
        (1, "lease_expired"), (2, "lease_expired"), (3, "lease_expired")]
    assert db.rows("SELECT attempts FROM postrider.dead_letters") == [(3,)]


def test_a_frozen_worker_that_wakes_too_late_records_nothing(api, make_dispatch, db, endpoint):
    endpoint.script("hang", 200)
    api.subscribe(endpoint.url, **FAST)
    first = make_dispatch(**LEASE)
    api.event({"n": 1})
    until(lambda: endpoint.requests, "the first request is under way")
    first.pause()
    make_dispatch(**LEASE)
    until(lambda: state(db) == "delivered", "another delivers it")
    kept = db.rows("SELECT * FROM postrider.attempt ORDER BY attempt, ended DESC")
    first.cont()
    until(lambda: "lease was lost" in first.log(), "the first one finds out")
    assert db.rows("SELECT * FROM postrider.attempt ORDER BY attempt, ended DESC") == kept
    assert attempts(db) == [(1, "lease_expired"), (2, "answered")]


def test_a_stale_token_cannot_record(api, make_dispatch, db, endpoint):
    """Not even for the lane that the same worker holds again."""
    endpoint.script("hang")
    api.subscribe(endpoint.url, timeout_ms=1500, retry_base_ms=60000, retry_cap_ms=60000)
    dispatch = make_dispatch(lease_margin="20s")
    api.event({"n": 1})
    until(lambda: endpoint.requests, "the request is under way")
    db.execute("UPDATE postrider.lane SET lease_token = gen_random_uuid()")
    until(lambda: "lease was lost" in dispatch.log(), "its outcome is refused")
    assert attempts(db) == []
    assert db.value("SELECT lease_token IS NOT NULL FROM postrider.lane")


def test_a_lease_that_ran_out_cannot_record(api, make_dispatch, db, endpoint):
    endpoint.script("hang")
    api.subscribe(endpoint.url, timeout_ms=1000)
    dispatch = make_dispatch(lease_margin="20s", poll="1h")
    api.event({"n": 1})
    until(lambda: endpoint.requests, "the request is under way")
    db.execute("UPDATE postrider.lane SET lease_until = now() - interval '1 hour',"
               " look_at = now()")
    until(lambda: "lease was lost" in dispatch.log() or ("lease_expired",) in db.rows(
        "SELECT ended FROM postrider.attempt"), "its outcome is refused")
    assert ("timed_out",) not in db.rows("SELECT ended FROM postrider.attempt")


def test_a_request_is_not_started_on_a_lease_that_is_gone(
        api, make_dispatch, db, cluster, endpoint):
    """Between claim and send the worker waits for the endpoint's secrets, too long."""
    api.subscribe(endpoint.url, **FAST)
    make_dispatch(**LEASE)
    with cluster.connect(db.name) as other:
        other.autocommit = False
        other.execute("LOCK postrider.subscription_secret")
        api.event({"n": 1})
        until(lambda: db.value("SELECT lease_until < clock_timestamp() FROM postrider.lane"),
              "it has a lease, which runs out")
        other.rollback()
    until(lambda: state(db) == "delivered", "it is delivered under a new lease")
    assert attempts(db) == [(1, "lease_expired"), (2, "answered")]
    assert [r.headers["postrider-attempt"] for r in endpoint.requests] == ["2"]


def test_a_head_locked_from_outside_does_not_let_its_successor_pass(
        api, make_dispatch, db, cluster, endpoint):
    api.subscribe(endpoint.url)
    api.event({"n": 1}, asset="a")
    api.event({"n": 2}, asset="a")
    with cluster.connect(db.name) as other:
        other.autocommit = False
        other.execute("SELECT FROM postrider.lane FOR UPDATE")
        make_dispatch(poll="50ms")
        never(lambda: endpoint.requests, "a request of the locked lane")
        other.rollback()
    until(lambda: len(endpoint.requests) == 2, "both go once it is free")
    assert [b'"n": 1' in r.body for r in endpoint.requests] == [True, False]


def test_a_lease_is_recorded_as_expired_only_once_it_is_ours(api, make_dispatch, db, endpoint):
    """The pass that takes it over goes on for a while before its commit."""
    endpoint.script("hang", 200)
    api.subscribe(endpoint.url, **FAST)
    first = make_dispatch()
    api.event({"n": 1}, asset="a")
    until(lambda: endpoint.requests, "the request is under way")
    first.kill(signal.SIGKILL)
    db.execute("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
               " $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$")
    db.execute("CREATE TRIGGER slow BEFORE UPDATE OF lease_token ON postrider.lane"
               " FOR EACH ROW WHEN (NEW.asset = 'b' AND NEW.lease_token IS NOT NULL)"
               " EXECUTE FUNCTION slow()")
    db.execute("UPDATE postrider.lane SET lease_until = now() - interval '1 hour',"
               " look_at = now()")
    api.event({"n": 2}, asset="b")
    second = make_dispatch()
    until(lambda: attempts(db) == [(1, "lease_expired"), (1, "answered"), (2, "answered")],
          "both are delivered")
    assert "lease was lost" not in second.log()


def test_a_time_out_raised_after_the_claim_does_not_outlive_the_lease(
        api, make_dispatch, db, cluster, endpoint):
    endpoint.script("hang", 200)
    api.subscribe(endpoint.url, **FAST)
    make_dispatch(lease_margin="2s", poll="100ms")
    with cluster.connect(db.name) as other:
        other.autocommit = False
        other.execute("LOCK TABLE postrider.subscription_secret")
        api.event({"n": 1})
        until(lambda: db.value("SELECT count(lease_token) FROM postrider.lane"), "it is claimed")
        db.execute("UPDATE postrider.subscription SET timeout_ms = 60000, version = version + 1")
        other.rollback()
    until(lambda: state(db) == "delivered", "it is delivered")
    assert attempts(db) == [(1, "timed_out"), (2, "answered")]


def test_a_worker_filled_by_what_it_takes_over_is_not_deaf(
        api, make_dispatch, db, make_endpoint):
    """Its only place goes to an expired lease; new work is sent all the same."""
    silent, healthy = make_endpoint(), make_endpoint()
    silent.script("hang")
    api.subscribe(silent.url, event_types=["silent"], **FAST)
    api.subscribe(healthy.url, event_types=["healthy"])
    first = make_dispatch(**LEASE, max_in_flight=1)
    api.event({}, type="silent")
    until(lambda: silent.requests, "the only place is taken")
    first.kill(signal.SIGKILL)
    silent.script(200)
    make_dispatch(lease_margin="1200ms", max_in_flight=1, poll="1h")
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") > 0, "it is taken over")
    api.event({}, type="healthy")
    until(lambda: healthy.requests, "the new event is sent")


def test_a_taken_delivery_is_not_sent_again_for_want_of_a_record(
        api, make_dispatch, db, endpoint):
    """The attempt is refused, wherever it is kept; the outcome is not, and the log says so."""
    db.execute("ALTER TABLE postrider.delivery ADD CHECK (worker IS NULL)")
    db.execute("ALTER TABLE postrider.other_attempt ADD CHECK (status <> 200)")
    api.subscribe(endpoint.url, **FAST, max_attempts=4)
    dispatch = make_dispatch(**LEASE)
    api.event({"n": 1}, asset="a")
    api.event({"n": 2}, asset="a")
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.deliveries")
          == [("delivered",)], "both are delivered")
    assert len(endpoint.requests) == 2
    assert attempts(db) == []
    assert dispatch.log().count("the record of an attempt was refused") == 2


def test_what_cannot_be_recorded_does_not_pile_up(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url, **FAST, max_attempts=50)
    db.execute("REVOKE INSERT ON postrider.other_attempt FROM postrider_dispatch")
    dispatch = make_dispatch(lease_margin="1200ms", poll="50ms", statement_timeout="600ms")
    api.event({"n": 1})
    until(lambda: endpoint.requests, "it is sent")
    until(lambda: dispatch.log().count("a transaction failed") >= 3, "records fail")
    db.execute("GRANT INSERT ON postrider.other_attempt TO postrider_dispatch")
    until(lambda: state(db) == "delivered", "it is delivered once records go through")
    assert dispatch.log().count("the lease was lost") <= 2
    assert 'delivery="0"' not in dispatch.log()


def test_a_lane_whose_delivery_is_gone_is_shown_and_goes_on(
        api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url)
    api.event({"n": 1}, asset="a")
    api.event({"n": 2}, asset="a")
    db.execute("DELETE FROM postrider.delivery WHERE id = (SELECT head_id FROM postrider.lane)")
    assert db.value("SELECT state FROM postrider.assets") == "gone"
    make_dispatch()
    until(lambda: db.rows("SELECT state FROM postrider.deliveries") == [("delivered",)],
          "what stands behind it is delivered")
    assert db.value("SELECT count(*) FROM postrider.lane") == 0


UNHURRIED = "60s"  # a statement may wait for half of it, however busy the machine
MANY = 60  # lanes: with bodies as long as they may be, far more than a socket holds


def post_large(api, *assets):
    """An event of nearly 64 KiB for each asset."""
    lines = b"\n".join(json.dumps({"type": "t", "asset": asset, "data": "." * 60000}).encode()
                       for asset in assets)
    api.call("POST", "/v1/events/batch", lines,
             {"Content-Type": "application/x-ndjson"}).expect(202)


def waiting(db, name="postrider-dispatch record%"):
    """Sessions of that name that wait for a lock: chores may, too, and are others."""
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database() AND application_name LIKE %s", [name])


def freeze_at(db, other, dispatch, table, start):
    """Stop a dispatcher whose statement waits for `table`, which is free when this returns."""
    until(lambda: db.value(  # its chores read tables, too
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'postrider-dispatch%%' AND state = 'idle'"
        " AND state_change < clock_timestamp() - interval '300 ms'") == 2, "it is at rest")
    other.execute(f"LOCK {table} IN ACCESS EXCLUSIVE MODE")
    start()
    until(lambda: waiting(db, "postrider-dispatch%") == 1, "its statement waits")
    dispatch.pause()
    other.rollback()


def test_a_dispatcher_frozen_while_it_claims_holds_no_lock(
        api, make_dispatch, db, other, endpoint):
    """Its answer does not fill the socket before the claim is committed."""
    api.subscribe(endpoint.url, max_in_flight=MANY)
    dispatch = make_dispatch(poll="1h", lease_margin=UNHURRIED)
    db.execute("UPDATE postrider.turn SET rest = 'paused', entered_at = NULL")
    post_large(api, *(f"a{n}" for n in range(MANY)))

    def resume():
        db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now()")
        db.execute("NOTIFY postrider_work")
    freeze_at(db, other, dispatch, "postrider.event", resume)
    until(lambda: db.value("SELECT count(lease_token) FROM postrider.lane") == MANY,
          "the claim is committed")
    api.event({"n": 1}, asset="a0")
    dispatch.cont()
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.delivery") == [("delivered",)],
          "all are delivered", seconds=30)


def unread(port):
    """Octets from a local port that whoever is connected to it has not read."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].split(":")[1], 16) for row in rows
               if int(row[2].split(":")[1], 16) == port)


def test_a_dispatcher_frozen_while_it_records_holds_no_lock(
        api, make_dispatch, db, cluster, other, endpoint):
    """Nor does what it is handed back.

    The first outcomes wait for `other`; all that follow come in one batch, which waits
    for `next_in_line`.
    """
    gate, answered = threading.Event(), threading.Semaphore(0)

    def answer(handler, _):
        gate.wait(20)
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        answered.release()

    endpoint.script(answer)
    api.subscribe(endpoint.url, max_in_flight=MANY, timeout_ms=30000)
    dispatch = make_dispatch(lease_margin=UNHURRIED)
    assets = [f"a{n}" for n in range(MANY)]
    post_large(api, *assets)
    until(lambda: len(endpoint.requests) == MANY, "all are under way", seconds=20)
    post_large(api, *assets)
    other.execute("LOCK postrider.replay IN ACCESS EXCLUSIVE MODE")
    gate.set()
    for _ in assets:
        assert answered.acquire(timeout=10)
    until(lambda: waiting(db) == 1, "the first outcomes wait")
    until(lambda: unread(endpoint.port) == 0, "the others are known")
    with cluster.connect(db.name) as next_in_line:
        next_in_line.autocommit = False
        thread = threading.Thread(target=next_in_line.execute,
                                  args=("LOCK postrider.replay IN ACCESS EXCLUSIVE MODE",))
        thread.start()
        until(lambda: waiting(db, "") == 1, "and somebody behind them")
        other.rollback()
        thread.join()
        until(lambda: waiting(db) == 1, "and behind that all others")
        dispatch.pause()
        next_in_line.rollback()
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") >= MANY,
          "the record is committed")
    api.event({"n": 1}, asset="a0")
    dispatch.cont()
    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.delivery") == [("delivered",)],
          "all are delivered", seconds=30)
