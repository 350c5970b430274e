"""SIGTERM lets requests finish, keeps what came of them, and gives the rest back."""

import signal
import socket
import threading

from .wait import until


def test_a_running_request_is_waited_for_and_recorded(api, make_dispatch, db, endpoint):
    answer = threading.Event()

    def wait(handler, _):
        answer.wait(20)
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    endpoint.script(wait, 200)
    api.subscribe(endpoint.url, timeout_ms=20000)
    dispatch = make_dispatch()
    api.event({"n": 1}, asset="a")
    api.event({"n": 2}, asset="a")
    until(lambda: endpoint.requests, "the first is under way")
    dispatch.kill(signal.SIGTERM)
    until(lambda: "stopping" in dispatch.log(), "it is stopping")
    answer.set()
    assert dispatch.wait() == 0
    assert db.rows("SELECT state, attempts FROM postrider.deliveries ORDER BY id") == [
        ("delivered", 1), ("pending", 0)]
    assert len(endpoint.requests) == 1
    assert db.value("SELECT count(lease_token) FROM postrider.lane") == 0


def test_a_request_that_outlives_the_grace_is_recorded_as_a_time_out(
        api, make_dispatch, db, endpoint):
    endpoint.script("hang")
    api.subscribe(endpoint.url, timeout_ms=60000)
    dispatch = make_dispatch(shutdown_grace="200ms")
    api.event({"n": 1})
    until(lambda: endpoint.requests, "it is under way")
    dispatch.stop()
    ended, reason = db.rows("SELECT ended, reason FROM postrider.attempt")[0]
    assert ended == "timed_out" and "stopped" in reason
    assert db.value("SELECT state FROM postrider.deliveries") == "retrying"


def test_what_was_claimed_and_not_sent_costs_no_attempt(api, make_dispatch, db):
    """A thousand leased, none answered: each is either on record or given back."""
    with socket.create_server(("127.0.0.1", 0), backlog=2000) as silent:
        api.subscribe(f"http://127.0.0.1:{silent.getsockname()[1]}/", ordering="none",
                      timeout_ms=60000, max_in_flight=1000)
        lines = b"\n".join(b'{"type":"t","data":%d}' % n for n in range(1000))
        api.call("POST", "/v1/events/batch", lines,
                 {"Content-Type": "application/x-ndjson"}).expect(202)
        dispatch = make_dispatch(shutdown_grace="100ms")
        until(lambda: db.value("SELECT count(lease_token) FROM postrider.lane") > 100,
              "many are claimed", seconds=20)
        dispatch.stop()
    assert db.value("SELECT count(lease_token) FROM postrider.lane") == 0
    assert db.value("SELECT count(*) FROM postrider.lane") == 1000
    assert db.value("SELECT count(*) FROM postrider.attempt") == db.value(
        "SELECT sum(attempts) FROM postrider.lane")
    assert db.rows("SELECT DISTINCT ended FROM postrider.attempt") in (
        [], [("timed_out",)])


def test_a_second_signal_ends_it_at_once(api, make_dispatch, db, endpoint):
    endpoint.script("hang")
    api.subscribe(endpoint.url, timeout_ms=60000)
    dispatch = make_dispatch(shutdown_grace="1h")
    api.event({"n": 1})
    until(lambda: endpoint.requests, "it is under way")
    dispatch.kill(signal.SIGTERM)
    until(lambda: "stopping" in dispatch.log(), "it is stopping")
    dispatch.kill(signal.SIGTERM)
    assert dispatch.wait() == 0
    assert db.value("SELECT count(lease_token) FROM postrider.lane") == 1


def test_an_idle_dispatcher_stops_at_once(make_dispatch):
    dispatch = make_dispatch(shutdown_grace="1h")
    dispatch.kill(signal.SIGTERM)
    assert dispatch.wait(seconds=5) == 0


def slow_down(db, table):
    """Let each commit of a change in `table` take half a second."""
    db.execute("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
               " $$ BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END $$")
    db.execute(f"CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON postrider.{table}"
               " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()")


def is_committing(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                    " AND datname = current_database()")


def test_a_claim_that_is_under_way_is_given_back(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url, timeout_ms=60000)
    dispatch = make_dispatch()
    slow_down(db, "lane")
    api.event({"n": 1})
    until(lambda: is_committing(db), "it is being claimed")
    dispatch.stop()
    assert endpoint.requests == []
    until(lambda: not is_committing(db), "the commits are over")
    assert db.rows("SELECT attempts, lease_token FROM postrider.lane") == [(0, None)]


def test_a_head_that_comes_back_during_the_stop_is_given_back(
        api, make_dispatch, db, endpoint):
    """The signal finds the last outcome on its way into the database."""
    api.subscribe(endpoint.url, timeout_ms=60000)
    dispatch = make_dispatch()
    slow_down(db, "delivery")
    api.call("POST", "/v1/events/batch", b'{"type":"t","asset":"a","data":1}\n' * 2,
             {"Content-Type": "application/x-ndjson"}).expect(202)
    until(lambda: is_committing(db), "the first is being recorded")
    dispatch.stop()
    assert db.rows("SELECT attempts, lease_token FROM postrider.lane") == [(0, None)]
