"""What is accepted reaches its subscribers: signed, whole, and to the right ones."""

import base64
import hashlib
import hmac
import json
import time

from .wait import never, until

FAST = {"retry_base_ms": 50, "retry_cap_ms": 200, "timeout_ms": 1000}


def signature(secret, request, scheme="standard"):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    at = request.headers["webhook-timestamp"].encode()
    if scheme == "older":
        return "v1=" + hmac.new(key, at + b"." + request.body, hashlib.sha256).hexdigest()
    signed = request.headers["webhook-id"].encode() + b"." + at + b"." + request.body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def states(db):
    return dict(db.rows("SELECT state, count(*) FROM postrider.deliveries GROUP BY 1"))


def test_an_event_is_delivered_signed_and_says_where_it_stands(api, dispatch, db, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({"n": 1.0}, id="evt-1", asset="pump-17", type="pump.inspected")

    until(lambda: states(db) == {"delivered": 1}, "it is delivered")
    [request] = endpoint.requests
    body = json.loads(request.body)
    assert (body["id"], body["type"], body["asset"]) == ("evt-1", "pump.inspected", "pump-17")
    assert request.body.endswith(b'"data":{"n": 1.0}}')
    assert request.headers["webhook-id"] == "evt-1"
    assert request.headers["webhook-signature"] == signature(made["secret"], request)
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    assert request.headers["postrider-attempt"] == "1"
    assert int(request.headers["postrider-position"]) == db.value(
        "SELECT id FROM postrider.delivery")
    assert request.headers["content-type"] == "application/json"
    assert "x-event-id" not in request.headers


def test_the_older_scheme_is_there_for_those_who_ask(api, dispatch, endpoint):
    made = api.subscribe(endpoint.url, older_signature=True)
    event = api.event({"n": 1})

    until(lambda: endpoint.requests, "it arrives")
    request = endpoint.requests[0]
    assert request.headers["x-event-id"] == event["id"]
    assert request.headers["x-webhook-timestamp"] == request.headers["webhook-timestamp"]
    assert request.headers["x-webhook-signature"] == signature(made["secret"], request, "older")
    assert request.headers["webhook-signature"] == signature(made["secret"], request)


def test_events_go_to_those_whose_types_match(api, dispatch, db, make_endpoint):
    exact, prefix, everything, other = [make_endpoint() for _ in range(4)]
    api.subscribe(exact.url, event_types=["pump.failed"])
    api.subscribe(prefix.url, event_types=["pump.*", "pump.failed"])
    api.subscribe(everything.url)
    api.subscribe(other.url, event_types=["pumpkin.*", "pump"])
    for type in ("pump.failed", "pump.failed.twice", "pump", "valve.failed"):
        api.event({}, type=type)

    until(lambda: states(db) == {"delivered": 8}, "all are delivered")

    def types(endpoint):
        return sorted(json.loads(r.body)["type"] for r in endpoint.requests)

    assert types(exact) == ["pump.failed"]
    assert types(prefix) == ["pump.failed", "pump.failed.twice"]
    assert types(everything) == ["pump", "pump.failed", "pump.failed.twice", "valve.failed"]
    assert types(other) == ["pump"]


def test_an_event_may_name_its_subscriptions(api, dispatch, db, make_endpoint):
    first, second = make_endpoint(), make_endpoint()
    api.subscribe(first.url)
    named = api.subscribe(second.url, event_types=["something.else"])
    api.event({}, subscriptions=[named["id"]])

    until(lambda: states(db) == {"delivered": 1}, "it is delivered")
    assert (len(first.requests), len(second.requests)) == (0, 1)


def test_every_attempt_has_the_same_id_and_bytes_and_its_own_time(
        api, make_dispatch, db, endpoint):
    endpoint.script(503, "drop", 200)
    made = api.subscribe(endpoint.url, **{**FAST, "retry_base_ms": 1100, "retry_cap_ms": 1100})
    make_dispatch(retry_jitter=False)
    api.event({"n": 1})

    until(lambda: states(db) == {"delivered": 1}, "the third attempt is taken")
    requests = endpoint.requests
    assert [r.headers["postrider-attempt"] for r in requests] == ["1", "2", "3"]
    assert len({r.headers["webhook-id"] for r in requests}) == 1
    assert len({r.body for r in requests}) == 1
    times = [int(r.headers["webhook-timestamp"]) for r in requests]
    assert times[0] < times[1] < times[2]
    assert all(r.headers["webhook-signature"] == signature(made["secret"], r)
               for r in requests)
    assert db.rows("SELECT attempt, ended, status FROM postrider.attempt ORDER BY attempt") == [
        (1, "answered", 503), (2, "broken", None), (3, "answered", 200)]


def test_without_order_nothing_waits_for_anything(api, dispatch, db, make_endpoint):
    slow, free = make_endpoint(), make_endpoint()
    slow.script("hang", 200)
    free.script("hang", 200)
    api.subscribe(slow.url, ordering="none", timeout_ms=60000, event_types=["a"])
    api.subscribe(free.url, timeout_ms=60000, event_types=["b"])
    for n in range(5):
        api.event({"n": n}, type="a", asset="same")
        api.event({"n": n}, type="b")
    until(lambda: states(db) == {"delivered": 8, "delivering": 2},
          "all but the two that hang are delivered")


def test_with_order_the_second_waits_for_the_first(api, dispatch, db, endpoint):
    endpoint.script("hang", 200)
    api.subscribe(endpoint.url, timeout_ms=60000)
    for n in range(3):
        api.event({"n": n}, asset="same")
    until(lambda: endpoint.requests, "the first is under way")
    never(lambda: len(endpoint.requests) > 1, "a second request of the lane")
    assert states(db) == {"delivering": 1, "pending": 2}


def test_a_dispatcher_without_subscriptions_runs_no_query(dispatch, ingest, admin_key, db,
                                                          endpoint):
    def activity():
        return db.rows("SELECT pid, query_start, state_change FROM pg_stat_activity"
                       " WHERE application_name LIKE 'postrider-dispatch%%'"
                       "   AND datname = current_database() ORDER BY pid")

    until(lambda: len(activity()) == 2, "it is connected")
    # What it asks at its start is over as soon as two looks agree.
    until(lambda: activity() == activity(), "it is quiet")
    quiet = activity()
    never(lambda: activity() != quiet, "a query", seconds=1.5)

    api = ingest.api(admin_key)
    api.subscribe(endpoint.url)
    api.event({"n": 1})
    until(lambda: endpoint.requests, "the first subscription wakes it", seconds=3)


def test_a_hint_that_was_lost_is_made_good_by_the_poll(api, make_dispatch, db, endpoint):
    make_dispatch(poll="300ms")
    api.subscribe(endpoint.url)
    api.event({"n": 1})
    until(lambda: states(db) == {"delivered": 1}, "the first is delivered")
    # As if the wake-up had been committed and its notification lost.
    until(lambda: db.value("SELECT rest FROM postrider.turn") == "idle", "it rests")
    db.execute(
        "WITH e AS (INSERT INTO postrider.event (tenant_id, event_id, type, fingerprint,"
        " body, fan_out) SELECT tenant_id, 'late', type, fingerprint, body, 1"
        " FROM postrider.event RETURNING event_no), d AS (INSERT INTO postrider.delivery"
        " (id, event_no, subscription_id) SELECT 900000, event_no,"
        " (SELECT subscription_id FROM postrider.turn) FROM e)"
        " INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id, head_event_no,"
        " due_at) SELECT 900000, (SELECT subscription_id FROM postrider.turn), 900000,"
        " 900000, event_no, now() FROM e")
    db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now()")
    until(lambda: states(db) == {"delivered": 2}, "the poll finds it", seconds=5)


def test_what_came_into_the_round_behind_a_look_is_found_by_the_sweep(
        api, make_dispatch, db, endpoint):
    """As if it had taken a minute to be committed."""
    make_dispatch(poll="100ms")
    api.subscribe(endpoint.url)
    api.event({"n": 1})
    until(lambda: states(db) == {"delivered": 1}, "the first is delivered")
    until(lambda: db.value("SELECT rest FROM postrider.turn") == "idle", "it rests")
    db.execute("UPDATE postrider.turn SET rest = NULL,"
               " entered_at = now() - interval '1 minute'")
    until(lambda: db.value("SELECT rest FROM postrider.turn") == "idle", "it is seen",
          seconds=15)


def test_a_rest_that_a_crash_has_undone_is_noticed_once_the_database_is_back(
        api, make_dispatch, db, endpoint):
    """Rests are not flushed.  Who accepts more finds the turn in the round, and tells nobody."""
    make_dispatch()
    api.subscribe(endpoint.url)
    api.event({"n": 1})
    until(lambda: states(db) == {"delivered": 1}, "the first is delivered")
    until(lambda: db.value("SELECT rest FROM postrider.turn") == "idle", "it rests")
    db.execute("WITH undone AS (UPDATE postrider.turn SET rest = NULL, wake_at = NULL,"
               " entered_at = now() - interval '1 minute')"
               " SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
               " WHERE application_name LIKE 'postrider-dispatch%'")
    api.event({"n": 2})
    until(lambda: states(db) == {"delivered": 2}, "the second is delivered", seconds=5)


def test_a_rotated_secret_counts_from_the_next_attempt(api, make_dispatch, db, endpoint):
    """No cache of secrets or addresses outlives a change of the subscription."""
    made = api.subscribe(endpoint.url, **FAST)
    make_dispatch()
    api.event({"n": 1})
    until(lambda: len(endpoint.requests) == 1, "the first arrives")
    db.execute("UPDATE postrider.subscription SET url = url || 'moved', version = version + 1"
               " WHERE id = %s", (made["id"],))
    api.event({"n": 2})
    until(lambda: len(endpoint.requests) == 2, "the second arrives")
    assert [r.path for r in endpoint.requests] == ["/", "/moved"]


def test_a_purged_payload_is_a_dead_letter_that_says_so(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url)
    api.event({"n": 1})
    db.execute("UPDATE postrider.event SET body = NULL")
    make_dispatch()
    until(lambda: states(db) == {"dead": 1}, "it is set aside")
    assert "purged" in db.value("SELECT reason FROM postrider.dead_letters")
    assert endpoint.requests == []


def test_a_secret_that_does_not_open_is_set_aside_and_others_flow(
        api, make_dispatch, db, make_endpoint):
    poisoned, fine = make_endpoint(), make_endpoint()
    bad = api.subscribe(poisoned.url)
    api.subscribe(fine.url)
    db.execute("UPDATE postrider.subscription_secret SET sealed = sealed || '\\x00'"
               " WHERE subscription_id = %s", (bad["id"],))
    dispatch = make_dispatch()
    api.event({"n": 1})
    until(lambda: states(db) == {"dead": 1, "delivered": 1}, "both have ended")
    assert "secret" in db.value("SELECT reason FROM postrider.dead_letters")
    assert poisoned.requests == [] and len(fine.requests) == 1
    assert bad["secret"] not in dispatch.log()


def test_no_secret_is_logged_or_shown(api, dispatch, ingest, db, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({"n": 1})
    until(lambda: states(db) == {"delivered": 1}, "it is delivered")
    secret = made["secret"].removeprefix("whsec_")
    for text in (dispatch.log(), ingest.log(),
                 str(api.get(f"/v1/subscriptions/{made['id']}").expect(200)),
                 str(api.get("/v1/subscriptions").expect(200))):
        assert secret not in text
    assert not db.value("SELECT EXISTS (SELECT FROM postrider.subscription_secret"
                        " WHERE position(%s IN sealed) > 0)", (base64.b64decode(secret),))
