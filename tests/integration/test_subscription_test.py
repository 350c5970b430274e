"""A test event is sent at once, beside the queue, and what came back is the answer."""

import base64
import hashlib
import hmac
import json
import signal
import threading
import time

import pytest

from .test_queue import waiting
from .wait import never, until

LATER = "1h"  # a dispatcher that polls no sooner acts on what it is told alone


@pytest.fixture
def subscribe(api, endpoint):
    """Make a subscription: its answer."""
    def make(**fields):
        return api.subscribe(endpoint.url, **fields)
    return make


def path(made):
    return f"/v1/subscriptions/{made['id']}"


class Asked(threading.Thread):
    """A test that is asked for while the test goes on."""

    def __init__(self, api, made):
        super().__init__(daemon=True)
        self.api, self.made, self.answer = api, made, None
        self.start()

    def run(self):
        self.answer = self.api.post(path(self.made) + "/test")

    def end(self):
        self.join(20)
        return self.answer


def is_signed(request, secret):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = ".".join((request.headers["webhook-id"], request.headers["webhook-timestamp"], ""))
    signature = hmac.new(key, signed.encode() + request.body, hashlib.sha256).digest()
    return request.headers["webhook-signature"] == "v1," + base64.b64encode(signature).decode()


def rows(db):
    return db.value("SELECT count(*) FROM postrider.subscription_test")


def test_the_example_that_a_registration_gives_verifies_it(
        api, make_dispatch, endpoint, subscribe):
    made, stranger = subscribe(), subscribe()
    make_dispatch(poll=LATER)
    api.post(path(made) + "/test").expect(200)
    [request] = endpoint.requests
    given = {}
    exec(made["verification_example"], given)  # what a reader would copy
    verify = given["verify"]
    verify(made["secret"], request.headers, request.body)
    old = {**request.headers, "webhook-timestamp": str(int(time.time()) - 301)}
    for how in ((stranger["secret"], request.headers, request.body),
                (made["secret"], request.headers, request.body + b" "),
                (made["secret"], old, request.body)):
        with pytest.raises(ValueError):
            verify(*how)


def test_it_is_sent_signed_and_what_came_back_is_the_answer(
        api, make_dispatch, db, endpoint, subscribe):
    def answer(handler, _):
        handler.send_response(418)
        handler.send_header("Content-Length", "14")
        handler.send_header("X-Request-Id", "r-1")
        handler.end_headers()
        handler.wfile.write(b"short \x1b[31mand.")

    endpoint.script(answer)
    made = subscribe(headers={"x-own": "1"}, secret_headers={"x-key": "s3cret"})
    make_dispatch(poll=LATER)
    start = time.monotonic()
    got = api.post(path(made) + "/test").expect(200)
    assert time.monotonic() - start < 5
    [request] = endpoint.requests
    assert is_signed(request, made["secret"])
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    assert (request.headers["x-own"], request.headers["x-key"]) == ("1", "s3cret")
    assert request.headers["postrider-attempt"] == "1"
    assert request.headers["postrider-position"] is None
    event = json.loads(request.body)
    assert event["type"] == "postrider.test" and event["data"]["message"]
    assert event["id"] == request.headers["webhook-id"] == got["event_id"]

    assert list(got) == ["event_id", "started_at", "duration_us", "ended", "status", "reason",
                         "remote", "dns_us", "connect_us", "tls_us", "wait_us", "receive_us",
                         "headers", "excerpt"]
    assert (got["ended"], got["status"], got["reason"]) == ("answered", 418, None)
    assert got["remote"] == f"127.0.0.1:{endpoint.port}"
    assert got["wait_us"] >= 0 and got["tls_us"] is None
    assert {"name": "x-request-id", "value": "r-1"} in got["headers"]
    assert got["excerpt"].startswith("short ") and "\x1b" not in got["excerpt"]
    # It is no event and no delivery, and nothing of the subscription changes.
    for table in ("event", "delivery", "lane", "attempt", "dead_letter"):
        assert db.value(f"SELECT count(*) FROM postrider.{table}") == 0
    assert db.rows("SELECT action, actor LIKE 'key:%%', source, detail->>'event' FROM"
                   " postrider.audit WHERE action = 'subscription.tested'") == [
        ("subscription.tested", True, "127.0.0.1", got["event_id"])]


@pytest.mark.parametrize("move", ["pause", "disable"])
def test_what_takes_no_deliveries_can_be_tested(api, make_dispatch, endpoint, subscribe, move):
    made = subscribe()
    make_dispatch(poll=LATER)
    api.post(f"{path(made)}/{move}").expect(200)
    api.event(1)
    assert api.post(path(made) + "/test").expect(200)["status"] == 200
    assert json.loads(endpoint.requests[0].body)["type"] == "postrider.test"
    never(lambda: len(endpoint.requests) > 1, "another request")


def test_neither_an_open_circuit_nor_a_limit_nor_a_rate_holds_it_up_or_learns_of_it(
        api, make_dispatch, db, endpoint, subscribe):
    endpoint.script(503)
    made = subscribe(circuit_after=1, retry_base_ms=60000, max_in_flight=1, rate_per_second=0.01)
    make_dispatch(poll=LATER)
    api.event(1)
    turn = "SELECT circuit, failures, slowed_to, rate_at::text, rest FROM postrider.turn"
    until(lambda: db.rows(turn)[0][0] == "open", "the circuit is open")
    until(lambda: db.rows(turn)[0][4] is not None, "the turn rests")
    before = db.rows(turn)
    endpoint.script(410)
    assert api.post(path(made) + "/test").expect(200)["status"] == 410
    assert db.rows(turn) == before
    assert api.get(path(made)).expect(200)["state"] == "active"


def test_no_answer_is_told_in_the_words_of_attempts(api, make_dispatch, endpoint, subscribe):
    endpoint.script("hang")
    made = subscribe(timeout_ms=300)
    make_dispatch(poll=LATER)
    got = api.post(path(made) + "/test").expect(200)
    assert (got["ended"], got["status"], got["excerpt"]) == ("timed_out", None, None)
    assert got["reason"] and 250000 < got["duration_us"] < 5000000


def test_it_goes_nowhere_where_a_delivery_may_not(api, make_dispatch, endpoint, subscribe):
    """Ingest is in development here, and lets such a URL be registered; dispatch sends."""
    made = subscribe()
    make_dispatch(poll=LATER, development=False)
    got = api.post(path(made) + "/test").expect(200)
    assert (got["ended"], got["remote"]) == ("refused", None)
    assert got["reason"]
    assert not endpoint.requests


def test_one_at_a_time(api, make_dispatch, db, endpoint, subscribe):
    gate = threading.Event()

    def answer(handler, _):
        gate.wait(20)
        handler.send_response(204)
        handler.end_headers()

    endpoint.script(answer)
    made = subscribe()
    make_dispatch(poll=LATER)
    first = Asked(api, made)
    until(lambda: endpoint.requests, "the first is under way")
    db.execute("UPDATE postrider.subscription_test SET asked_at = asked_at - interval '1 h'")
    refused = api.post(path(made) + "/test")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert refused.json["type"].endswith("/too-many")
    gate.set()
    assert first.end().expect(200)["status"] == 204
    # Nor more than one a second.
    db.execute("UPDATE postrider.subscription_test SET asked_at = now()")
    assert api.post(path(made) + "/test").status == 429
    assert len(endpoint.requests) == 1
    db.execute("UPDATE postrider.subscription_test SET asked_at = asked_at - interval '2 s'")
    second = api.post(path(made) + "/test").expect(200)
    assert second["event_id"] != first.answer.json["event_id"]
    assert db.value("SELECT count(*) FROM postrider.audit"
                    " WHERE action = 'subscription.tested'") == 2


def test_a_tenant_has_no_more_than_eight_under_way(api, db, ingest, cli, subscribe):
    made = [subscribe() for _ in range(10)]
    waiting = [Asked(api, one) for one in made[:8]]
    until(lambda: rows(db) == 8, "eight are asked for")
    assert api.post(path(made[8]) + "/test").status == 429
    # Another tenant's are its own.
    cli("tenant", "create", "other")
    other = ingest.api(cli.json("key", "create", "--tenant", "other", "--role", "admin")["key"])
    waiting.append(Asked(other, other.subscribe("http://127.0.0.1:9/")))
    until(lambda: rows(db) == 9, "the other's is asked for")
    db.execute("UPDATE postrider.subscription_test SET expires_at = now() - interval '1 s'")
    for one in waiting:
        one.end().expect(503)
    Asked(api, made[8])
    until(lambda: rows(db) == 10, "there is room again")
    db.execute("UPDATE postrider.subscription_test SET expires_at = now() - interval '1 s'")


def test_without_a_dispatcher_it_says_so(api, db, endpoint, make_dispatch, subscribe):
    made = subscribe()
    asked = Asked(api, made)
    until(lambda: rows(db) == 1, "it is asked for")
    db.execute("UPDATE postrider.subscription_test SET expires_at = now()")
    answer = asked.end()
    answer.expect(503)
    assert "no dispatcher" in answer.json["detail"]
    # Nobody sends what nobody waits for any more.
    make_dispatch(poll="50ms")
    never(lambda: endpoint.requests, "a request")


def test_a_dispatcher_that_vanishes_is_told_and_nothing_is_sent_again(
        api, db, endpoint, make_dispatch, subscribe):
    endpoint.script("hang", 200)
    made = subscribe()
    dispatch = make_dispatch(poll=LATER)
    asked = Asked(api, made)
    until(lambda: endpoint.requests, "it is under way")
    dispatch.kill()
    make_dispatch(poll="50ms")
    db.execute("UPDATE postrider.subscription_test SET expires_at = now()")
    answer = asked.end()
    answer.expect(504)
    assert "the dispatcher" in answer.json["detail"]
    never(lambda: len(endpoint.requests) > 1, "another request")


def test_a_test_that_cannot_be_recorded_holds_up_others_for_a_while_only(
        api, db, make_dispatch, make_endpoint, subscribe):
    other = make_endpoint()
    made, next_one = subscribe(timeout_ms=100), api.subscribe(other.url)
    db.execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
               " $$ BEGIN RAISE 'it may not be'; END $$")
    db.execute("CREATE TRIGGER refuse BEFORE UPDATE OF finished_at ON postrider.subscription_test"
               f" FOR EACH ROW WHEN (new.subscription_id = {made['id']}"
               " AND new.finished_at IS NOT NULL) EXECUTE FUNCTION refuse()")
    dispatch = make_dispatch(poll="50ms")
    asked = Asked(api, made)
    until(lambda: "it may not be" in dispatch.log(), "it was refused")
    asked.end().expect(504)
    until(lambda: api.post(path(next_one) + "/test").status == 200, "the other is sent", seconds=30)
    assert "a test was dropped" in dispatch.log()


def test_whoever_waits_is_told_when_ingest_stops(api, ingest, db, subscribe):
    asked = Asked(api, subscribe())
    until(lambda: rows(db) == 1, "it is asked for")
    ingest.stop()
    asked.end().expect(503)


def test_whoever_is_being_looked_for_when_ingest_stops_is_told_too(
        api, ingest, db, other, subscribe):
    asked = Asked(api, subscribe())
    until(lambda: rows(db) == 1, "it is asked for")
    other.execute("LOCK TABLE postrider.subscription_test IN ACCESS EXCLUSIVE MODE")
    until(lambda: waiting(db), "ingest looks")
    ingest.kill(signal.SIGTERM)
    until(lambda: "stopping" in ingest.log(), "it is stopping")
    other.rollback()
    asked.end().expect(503)
    assert ingest.wait() == 0


def test_a_dispatcher_that_stops_does_not_wait_for_it(
        api, db, endpoint, make_dispatch, subscribe):
    endpoint.script("hang")
    made = subscribe()
    dispatch = make_dispatch(poll=LATER)
    asked = Asked(api, made)
    until(lambda: endpoint.requests, "it is under way")
    dispatch.stop()
    db.execute("UPDATE postrider.subscription_test SET expires_at = now()")
    asked.end().expect(504)


def test_what_is_over_is_forgotten(api, db, make_dispatch, subscribe):
    made, other = subscribe(), subscribe()
    make_dispatch(poll="50ms")
    api.post(path(made) + "/test").expect(200)
    api.post(path(other) + "/test").expect(200)
    never(lambda: rows(db) < 2, "one is forgotten")
    db.execute("UPDATE postrider.subscription_test SET expires_at = now() - interval '61 s'"
               " WHERE subscription_id = %s", (int(made["id"]),))
    until(lambda: rows(db) == 1, "the old one is forgotten")


def test_many_at_once_each_get_their_own_answer(api, make_dispatch, endpoint, subscribe):
    made = [subscribe() for _ in range(6)]
    make_dispatch(poll=LATER)
    answers = [one.end().expect(200) for one in [Asked(api, each) for each in made]]
    sent = {request.headers["webhook-id"]: request for request in endpoint.requests}
    assert len(sent) == 6
    for each, answer in zip(made, answers):
        assert is_signed(sent[answer["event_id"]], each["secret"])


def test_of_several_dispatchers_one_sends_it(api, make_dispatch, endpoint, subscribe):
    made = [subscribe() for _ in range(4)]
    for _ in range(3):
        make_dispatch(poll="50ms")
    for one in [Asked(api, each) for each in made]:
        one.end().expect(200)
    never(lambda: len(endpoint.requests) > 4, "one is sent twice")


def test_the_command_does_the_same(cli, api, make_dispatch, db, endpoint, subscribe):
    made = subscribe()
    make_dispatch(poll=LATER)
    got = cli.json("subscription", "test", made["id"])
    assert (got["ended"], got["status"]) == ("answered", 200)
    assert got["event_id"] == endpoint.requests[0].headers["webhook-id"]
    assert db.rows("SELECT actor, tenant_id IS NOT NULL FROM postrider.audit"
                   " WHERE action = 'subscription.tested'") == [("cli", True)]
    assert "under way" in cli.run("subscription", "test", made["id"]).stderr
    api.delete(path(made)).expect(204)
    gone = cli.run("subscription", "test", made["id"])
    assert (gone.returncode, "no such subscription" in gone.stderr) == (1, True)
