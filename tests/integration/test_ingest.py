"""What the API of ingest takes and answers."""

import json
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from .api import Api
from .wait import until

EVENT = {"type": "order.paid", "data": {"n": 1}}
NDJSON = {"Content-Type": "application/x-ndjson"}


def lock_waits(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()")


def problem(answer, status):
    """The problem in an answer, which has to be one."""
    body = answer.expect(status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert body["status"] == status
    assert body["type"].startswith("/problems/")
    assert body["title"] and body["detail"]
    return body


def batch(api, *events):
    lines = "\n".join(json.dumps(event) for event in events) + "\n"
    return api.post("/v1/events/batch", lines.encode(), headers=NDJSON)


def make_key(cli, tenant, role):
    who = [] if role == "operator" else ["--tenant", tenant]
    return cli.json("key", "create", "--role", role, *who)


# -- events --

def test_an_accepted_event_has_all_its_deliveries(api, db, endpoint):
    for types in (["order.*"], ["*"], ["order.paid"], ["other"], ["order"]):
        api.subscribe(endpoint.url, event_types=types)
    answer = api.event({"n": 1}, type="order.paid", asset="pump-17", id="e1")
    assert answer["id"] == "e1"
    assert answer["deliveries"] == 3
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", answer["accepted_at"])
    assert db.rows("SELECT subscription_id FROM postrider.delivery ORDER BY 1") == [
        (1,), (2,), (3,)]
    assert db.value("SELECT count(*) FROM postrider.lane WHERE asset = 'pump-17'") == 3


def test_a_pattern_matches_by_whole_words(api, db, endpoint):
    for pattern in ("a.b.c", "a.b.*", "a.*", "*",
                    "a.b", "a.b.c.*", "b.*", "a.bb.*", "a", "a.b.c.d", "c"):
        api.subscribe(endpoint.url, event_types=[pattern])
    api.event(1, type="a.b.c")
    assert {row[0] for row in db.rows(
        "SELECT s.event_types[1] FROM postrider.delivery d"
        " JOIN postrider.subscription s ON s.id = d.subscription_id")} == {
            "a.b.c", "a.b.*", "a.*", "*"}


def test_an_event_without_an_id_is_given_one(api):
    first, second = api.event(1)["id"], api.event(1)["id"]
    assert re.fullmatch(r"evt_[0-9a-f]{32}", first)
    assert first != second


def test_named_subscriptions_get_the_event_whatever_their_types(api, db, endpoint):
    for _ in range(3):
        api.subscribe(endpoint.url, event_types=["other"])
    db.execute("UPDATE postrider.subscription SET state = 'disabled' WHERE id = 3")
    assert api.event(1, subscriptions=["2", "3", "2"])["deliveries"] == 1
    assert db.rows("SELECT subscription_id FROM postrider.delivery") == [(2,)]


def test_a_named_subscription_that_is_not_there_is_said(api, cli, ingest, db, endpoint):
    cli.json("tenant", "create", "other")
    stranger = Api(ingest.port, make_key(cli, "other", "admin")["key"])
    theirs = stranger.subscribe(endpoint.url)["id"]
    mine = api.subscribe(endpoint.url)["id"]
    for wrong in (theirs, "999"):
        body = problem(api.post("/v1/events", {**EVENT, "subscriptions": [mine, wrong]}), 422)
        assert body["pointer"] == "/subscriptions"
        assert f'"{wrong}"' in body["detail"]
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_a_paused_subscription_takes_events_and_a_disabled_one_none(api, db, endpoint):
    for state in ("paused", "disabled", "deleted", "active"):
        made = api.subscribe(endpoint.url)["id"]
        db.execute("UPDATE postrider.subscription SET state = %s WHERE id = %s", (state, made))
    assert api.event(1)["deliveries"] == 2


WRONG_EVENTS = [
    ({"data": 1}, 422, "/type"),
    ({"type": "t"}, 422, "/data"),
    ({"type": "a..b", "data": 1}, 422, "/type"),
    ({"type": "t", "data": 1, "id": "a.b"}, 422, "/id"),
    ({"type": "t", "data": 1, "id": "x" * 129}, 422, "/id"),
    ({"type": "t", "data": 1, "asset": "a\u0000b"}, 422, "/asset"),
    ({"type": "t", "data": 1, "subscriptions": []}, 422, "/subscriptions"),
    ({"type": "t", "data": 1, "subscriptions": [17]}, 422, "/subscriptions"),
    ({"type": "t", "data": 1, "subscriptions": [str(n) for n in range(1, 34)]}, 422,
     "/subscriptions"),
    ({"type": "t", "data": 1, "wanted": 2}, 400, ""),
    ([], 400, ""),
]


def test_an_event_that_is_wrong_is_refused_with_its_field(api, db):
    for event, status, pointer in WRONG_EVENTS:
        assert problem(api.post("/v1/events", event), status)["pointer"] == pointer, event
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_a_body_of_64_kib_is_taken_and_one_byte_more_is_not(api):
    frame = len(b'{"type":"t","data":""}')
    for size, status in ((65536, 202), (65537, 413)):
        body = b'{"type":"t","data":"' + b"x" * (size - frame) + b'"}'
        assert len(body) == size
        assert api.post("/v1/events", body).status == status


def test_an_event_is_shown_to_its_tenant_with_its_deliveries(api, cli, ingest, endpoint):
    made = api.subscribe(endpoint.url)["id"]
    api.event({"secret": "payload"}, id="e1", asset="pump-17")
    answer = api.get("/v1/events/e1")
    body = answer.expect(200)
    assert (body["id"], body["type"], body["asset"]) == ("e1", "test.made", "pump-17")
    assert [(d["subscription_id"], d["state"], d["attempts"], d["status"])
            for d in body["deliveries"]] == [(made, "pending", 0, None)]
    assert b"payload" not in answer.body
    problem(api.get("/v1/events/e2"), 404)
    cli.json("tenant", "create", "other")
    stranger = Api(ingest.port, make_key(cli, "other", "admin")["key"])
    problem(stranger.get("/v1/events/e1"), 404)


def test_an_id_in_a_path_may_be_escaped(api):
    api.event(1, id="a:b-c_1")
    assert api.get("/v1/events/a%3ab-c%5F1").expect(200)["id"] == "a:b-c_1"
    for path, status in (("/v1/events/%zz", 400), ("/v1/events/%", 400),
                         ("/v1/events/%00", 404), ("/v1/events/", 404),
                         ("/v1/events/a%2fb", 404), ("/v1/events/" + "x" * 129, 404)):
        assert api.get(path).status == status, path


def subscribe_many(db, n):
    """`n` subscriptions of the first tenant that take all events."""
    db.execute("WITH made AS (INSERT INTO postrider.subscription (tenant_id, url)"
               " SELECT min(id), 'http://127.0.0.1:1/' FROM postrider.tenant,"
               f" generate_series(1, {n}) AS g GROUP BY g RETURNING id, tenant_id),"
               " p AS (INSERT INTO postrider.subscription_pattern"
               " SELECT tenant_id, '*', id FROM made)"
               " INSERT INTO postrider.turn (subscription_id, tenant_id)"
               " SELECT id, tenant_id FROM made")


def test_a_wide_fan_out_is_parted_among_transactions(api, db, admin_key):
    """Eight events for six thousand subscriptions each: at most three at once."""
    subscribe_many(db, 6000)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: api.event(n, id=f"e{n}", asset="a"), range(8)))
    assert [event["deliveries"] for event in made] == [6000] * 8
    assert db.value("SELECT count(*) FROM postrider.delivery") == 48000
    assert db.value("SELECT max(n) FROM (SELECT count(*) AS n FROM postrider.event"
                    " GROUP BY xmin::text) x") <= 3
    body = problem(batch(api, *[EVENT] * 17), 422)
    assert "102000 deliveries" in body["detail"]


# -- batches --

def test_a_batch_is_accepted_as_a_whole_and_in_order(api, db, endpoint):
    api.subscribe(endpoint.url)
    events = [{**EVENT, "id": f"e{n}", "asset": "one"} for n in range(50)]
    body = batch(api, *events).expect(202)
    assert [e["id"] for e in body["events"]] == [e["id"] for e in events]
    assert all(e["deliveries"] == 1 and e["new"] for e in body["events"])
    kept = db.rows("SELECT e.event_id FROM postrider.delivery d"
                   " JOIN postrider.event e USING (event_no) ORDER BY d.id")
    assert [row[0] for row in kept] == [e["id"] for e in events]
    assert db.value("SELECT count(DISTINCT xmin::text) FROM postrider.event") == 1
    again = batch(api, *events).expect(200)
    assert not any(e["new"] for e in again["events"])


def test_a_batch_with_one_wrong_line_leaves_nothing(api, db, endpoint):
    api.subscribe(endpoint.url)
    api.event(1, id="known")
    good = {**EVENT, "id": "good"}
    wrong = [
        ({**EVENT, "id": "a.b"}, 422, "/id"),
        ({**EVENT, "id": "known"}, 409, "/id"),
        ({**EVENT, "subscriptions": ["77"]}, 422, "/subscriptions"),
        ({"type": "t"}, 422, "/data"),
        ({**good, "data": 2}, 409, "/id"),
        (7, 400, ""),
    ]
    for event, status, pointer in wrong:
        body = problem(batch(api, good, event), status)
        assert [(e["line"], e["pointer"]) for e in body["errors"]] == [(2, pointer)]
    assert db.value("SELECT count(*) FROM postrider.event") == 1
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1
    assert db.value("SELECT count(*) FROM pg_stat_activity"
                    " WHERE state LIKE 'idle in%' AND datname = current_database()") == 0


def test_the_lines_of_a_batch_are_counted_as_they_came(api):
    lines = b'\r\n{"type":"t","data":1}\r\n\n{"type":"t"}\n{"type":"t","data":1}'
    body = problem(api.post("/v1/events/batch", lines, headers=NDJSON), 422)
    assert [e["line"] for e in body["errors"]] == [4]


def test_a_batch_has_limits(api):
    problem(api.post("/v1/events/batch", b"\n \n", headers=NDJSON), 400)
    lines = b'{"type":"t","data":1}\n'
    assert api.post("/v1/events/batch", lines * 1000, headers=NDJSON).status == 202
    problem(api.post("/v1/events/batch", lines * 1001, headers=NDJSON), 413)
    long = b'{"type":"t","data":"' + b"x" * 65536 + b'"}\n'
    body = problem(api.post("/v1/events/batch", lines + long, headers=NDJSON), 413)
    assert [e["line"] for e in body["errors"]] == [2]
    problem(api.post("/v1/events/batch", b"x" * 9_000_000, headers=NDJSON), 413)


# -- keys --

def test_a_key_is_asked_for(ingest, admin_key):
    paths = ["/v1/events", "/v1/events/batch", "/v1/subscriptions"]
    for value in (None, "Bearer", "Bearer ", "Basic x", "Bearer wrong", admin_key,
                  f"Bearer {admin_key}x", f"Bearer {'x' * 300}", f"Bearer {admin_key} x"):
        headers = {} if value is None else {"Authorization": value}
        for path in paths:
            kind = NDJSON if path.endswith("batch") else {}
            answer = Api(ingest.port).post(path, b"{}", headers={**kind, **headers})
            problem(answer, 401)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert admin_key not in ingest.log()


def test_what_a_key_may_do_is_its_role(api, cli, ingest, tenant, endpoint):
    api.event(1, id="e1")
    publisher = Api(ingest.port, make_key(cli, tenant, "publisher")["key"])
    publisher.event(1)
    publisher.get("/v1/events/e1").expect(200)
    problem(publisher.post("/v1/subscriptions", {"url": endpoint.url}), 403)
    problem(publisher.get("/v1/subscriptions"), 403)
    operator = Api(ingest.port, make_key(cli, tenant, "operator")["key"])
    for answer in (operator.post("/v1/events", EVENT), operator.get("/v1/events/e1"),
                   batch(operator, EVENT), operator.get("/v1/subscriptions")):
        assert "tenant" in problem(answer, 403)["detail"]


def test_a_revoked_key_opens_nothing_from_now_on(cli, ingest, tenant, db):
    made = make_key(cli, tenant, "admin")
    client = Api(ingest.port, made["key"])
    client.event(1)
    client.get("/v1/subscriptions").expect(200)
    cli("key", "revoke", made["id"])
    problem(client.post("/v1/events", EVENT), 401)
    problem(batch(client, EVENT), 401)
    problem(client.get("/v1/subscriptions"), 401)
    problem(client.get("/v1/events/x"), 401)
    assert db.value("SELECT count(*) FROM postrider.event") == 1


# -- subscriptions --

def test_a_subscription_is_made_with_what_was_left_out(api, endpoint):
    answer = api.post("/v1/subscriptions", {"url": endpoint.url})
    made = answer.expect(201)
    assert answer.headers["Location"] == f"/v1/subscriptions/{made['id']}"
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", made["secret"])
    assert "five minutes" in made["signing"]
    assert {k: made[k] for k in ("state", "event_types", "ordering", "on_dead",
                                 "max_attempts", "timeout_ms", "retry_base_ms")} == {
        "state": "active", "event_types": ["*"], "ordering": "asset", "on_dead": "skip",
        "max_attempts": 12, "timeout_ms": 10000, "retry_base_ms": 5000}


def test_a_subscription_is_made_as_it_was_asked_for(api, endpoint):
    wanted = {"url": endpoint.url, "event_types": ["a.b", "c.*"], "ordering": "none",
              "on_dead": "hold", "older_signature": True, "max_attempts": 2147483647,
              "max_in_flight": 10000, "retry_base_ms": 1, "retry_cap_ms": 86400000,
              "timeout_ms": 100}
    made = api.post("/v1/subscriptions", wanted).expect(201)
    assert {k: made[k] for k in wanted} == wanted
    assert {**api.get(f"/v1/subscriptions/{made['id']}").expect(200),
            **{k: made[k] for k in ("secret", "signing", "verification_example")}} == made


def test_the_secret_is_shown_once_and_kept_sealed(api, db, ingest, endpoint):
    given = "whsec_" + "QUJD" * 8
    made = api.subscribe(endpoint.url, secret=given)
    assert made["secret"] == given
    for path in ("/v1/subscriptions", f"/v1/subscriptions/{made['id']}"):
        assert b'"secret"' not in api.get(path).body
    sealed = db.value("SELECT sealed FROM postrider.subscription_secret")
    assert b"ABC" not in sealed and b"QUJD" not in sealed
    assert given not in ingest.log() and made["secret"] not in ingest.log()


WRONG_SUBSCRIPTIONS = [
    ({"url": None}, "/url"),
    ({"url": "http://10.0.0.1/"}, "/url"),
    ({"url": "https://169.254.169.254/"}, "/url"),
    ({"url": "https://user@example.com/"}, "/url"),
    ({"url": "https://example.com/" + "x" * 8192}, "/url"),
    ({"url": 7}, "/url"),
    ({"event_types": []}, "/event_types"),
    ({"event_types": "*"}, "/event_types"),
    ({"event_types": ["a.*.b"]}, "/event_types"),
    ({"event_types": ["a*"]}, "/event_types"),
    ({"event_types": [""]}, "/event_types"),
    ({"event_types": ["a\u0000"]}, "/event_types"),
    ({"event_types": ["a." * 128 + "b"]}, "/event_types"),
    ({"event_types": [f"t{n}" for n in range(101)]}, "/event_types"),
    ({"ordering": "type"}, "/ordering"),
    ({"on_dead": None}, "/on_dead"),
    ({"older_signature": 1}, "/older_signature"),
    ({"max_attempts": 0}, "/max_attempts"),
    ({"max_attempts": 2147483648}, "/max_attempts"),
    ({"max_attempts": "3"}, "/max_attempts"),
    ({"max_in_flight": 10001}, "/max_in_flight"),
    ({"retry_base_ms": -1}, "/retry_base_ms"),
    ({"retry_base_ms": 1.0}, "/retry_base_ms"),
    ({"retry_base_ms": 10, "retry_cap_ms": 9}, "/retry_base_ms"),
    ({"retry_cap_ms": 86400001}, "/retry_cap_ms"),
    ({"timeout_ms": 99}, "/timeout_ms"),
    ({"timeout_ms": 60001}, "/timeout_ms"),
    ({"secret": "whsec_short"}, "/secret"),
    ({"secret": "!" * 40}, "/secret"),
]


def test_a_subscription_that_is_wrong_is_refused_with_its_field(api, db, endpoint):
    for change, pointer in WRONG_SUBSCRIPTIONS:
        body = problem(api.post("/v1/subscriptions", {"url": endpoint.url, **change}), 422)
        assert body["pointer"] == pointer, change
    assert db.value("SELECT count(*) FROM postrider.subscription") == 0


def test_the_longest_url_is_taken(api):
    url = "https://example.com/"
    made = api.subscribe(url + "x" * (8192 - len(url)))
    assert len(made["url"]) == 8192


def test_a_subscription_that_cannot_be_read_is_refused(api):
    for text in (b"", b"{", b"[]", b'{"url":"http://127.0.0.1:1/","URL":1}',
                 b'{"url":"http://127.0.0.1:1/","url\\u0000":1}', b"{'url':'x'}"):
        assert problem(api.post("/v1/subscriptions", text), 400)["pointer"] == "", text


def test_a_repeated_field_is_refused(api, endpoint):
    text = f'{{"url":"{endpoint.url}","on_dead":"skip","on_dead":"hold"}}'.encode()
    assert problem(api.post("/v1/subscriptions", text), 422)["pointer"] == "/on_dead"


def test_a_short_cap_and_a_long_base_each_stand_alone(api, endpoint):
    assert api.subscribe(endpoint.url, retry_cap_ms=100)["retry_base_ms"] == 100
    made = api.subscribe(endpoint.url, retry_base_ms=7200000)
    assert made["retry_cap_ms"] == 7200000


def test_the_list_comes_in_pages(api, endpoint):
    made = [api.subscribe(endpoint.url)["id"] for _ in range(5)]
    seen, after = [], "0"
    while after is not None:
        page = api.get(f"/v1/subscriptions?limit=2&after={after}").expect(200)
        seen += [s["id"] for s in page["subscriptions"]]
        after = page["next_after"]
    assert seen == made
    for query in ("limit=0", "limit=201", "limit=2000000000", "limit=x", "after=-1",
                  "after=99999999999999999999", "page=2", "limit"):
        problem(api.get(f"/v1/subscriptions?{query}"), 400)


def test_a_subscription_of_another_tenant_is_not_there(api, cli, ingest, endpoint):
    made = api.subscribe(endpoint.url)["id"]
    cli.json("tenant", "create", "other")
    stranger = Api(ingest.port, make_key(cli, "other", "admin")["key"])
    problem(stranger.get(f"/v1/subscriptions/{made}"), 404)
    assert stranger.get("/v1/subscriptions").expect(200)["subscriptions"] == []
    for wrong in ("0", "99", "x", "-1", "99999999999999999999"):
        problem(api.get(f"/v1/subscriptions/{wrong}"), 404)


# -- the ways of HTTP --

def test_what_is_not_there_and_what_does_not_fit(api):
    problem(api.get("/"), 404)
    problem(api.get("/v1/events/a/b"), 404)
    for method, path, allow in (("DELETE", "/v1/events", "POST"),
                                ("PUT", "/v1/events/x", "GET, HEAD"),
                                ("PATCH", "/v1/subscriptions", "GET, HEAD, POST"),
                                ("POST", "/healthz", "GET, HEAD")):
        answer = api.call(method, path)
        problem(answer, 405)
        assert answer.headers["Allow"] == allow


def test_a_body_is_json_and_says_so(api):
    for kind in ("text/plain", "application/jsonp", "application/x-www-form-urlencoded"):
        problem(api.post("/v1/events", EVENT, headers={"Content-Type": kind}), 415)
    problem(api.post("/v1/events", EVENT, headers={"Content-Encoding": "gzip"}), 415)
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        api.post("/v1/events", EVENT, headers={"Content-Type": kind}).expect(202)


def test_health_and_metrics_need_no_key(api, ingest, endpoint):
    stranger = Api(ingest.port)
    stranger.get("/healthz").expect(200)
    stranger.get("/readyz").expect(200)
    api.subscribe(endpoint.url)
    api.event(1, id="e1")
    api.post("/v1/events", {"type": "test.made", "data": 1, "id": "e1"}).expect(200)
    text = stranger.get("/metrics").body.decode()
    for line in ('requests_total{method="POST",route="/v1/events",status="202"} 1',
                 "events_accepted_total 1", "events_repeated_total 1",
                 "deliveries_made_total 1", "queued_events 0", "queued_bytes 0",
                 "database_connections 3"):
        assert f"postrider_ingest_{line}\n" in text


# -- its life --

def test_events_that_come_together_share_transactions(api, db, endpoint):
    api.subscribe(endpoint.url)
    threads = [threading.Thread(
        target=lambda n=n: [api.event(1, id=f"e{n}-{k}") for k in range(10)])
        for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.value("SELECT count(*) FROM postrider.delivery") == 320
    assert db.value("SELECT count(DISTINCT xmin::text) FROM postrider.event") < 320


def test_a_batch_that_hangs_holds_up_no_other(make_ingest, admin_key, db):
    """Ids that other transactions are inserting hold batches up, one of two events at last."""
    api = make_ingest(statement_timeout="60s").api(admin_key)

    def hold(blocker, *ids):
        blocker.execute("BEGIN")
        for event_id in ids:
            blocker.execute(
                "INSERT INTO postrider.event (tenant_id, event_id, type, fan_out, fingerprint)"
                " VALUES (1, %s, 't', 0, '\\x00')", [event_id])

    def queued(n):
        return f"postrider_ingest_queued_events {n}\n" in api.get("/metrics").body.decode()

    with ThreadPoolExecutor(7) as pool, db.cluster.connect(db.name) as first, \
            db.cluster.connect(db.name) as second:
        def post(event_id):
            posted.append(pool.submit(api.event, 1, id=event_id))
            return posted[-1]

        posted = []
        hold(first, "a1", "a2")
        hold(second, "b1", "b2")
        for n, event_id in enumerate(("a1", "a2"), 1):
            post(event_id)
            until(lambda n=n: lock_waits(db) == n, "as many as the other has: it begins")
        for n, event_id in enumerate(("b1", "b2"), 1):
            post(event_id)
            until(lambda n=n: queued(n), "both connections are busy")
        first.execute("ROLLBACK")
        until(lambda: lock_waits(db) == 1 and queued(0), "one carries two, one is idle")

        for event_id in ("c1", "c2", "c3"):
            post(event_id).result(timeout=10)
        assert lock_waits(db) == 1
        second.execute("ROLLBACK")
        for future in posted:
            future.result(timeout=10)
    assert db.value("SELECT count(*) FROM postrider.event") == 7


def test_without_the_database_the_answer_is_quick_and_it_comes_back(
        cluster, ingest, api, endpoint):
    api.subscribe(endpoint.url)
    api.event(1)
    cluster.stop()
    try:
        until(lambda: api.get("/readyz").status == 503, "it is not ready", seconds=5)
        for answer in (Api(ingest.port, api.key, seconds=1).post("/v1/events", EVENT),
                       batch(api, EVENT), api.get("/v1/subscriptions")):
            problem(answer, 503)
            assert answer.headers["Retry-After"] == "1"
        api.get("/healthz").expect(200)
    finally:
        cluster.start()
    until(lambda: api.get("/readyz").status == 200, "it is ready again", seconds=20)
    until(lambda: "the database is back" in ingest.log(), "it says so")
    api.event(1)
    assert ingest.log().count("the database is away") == 1
    assert ingest.log().count("the database is back") == 1


def test_it_starts_while_the_database_is_away(cluster, api, make_ingest, admin_key):
    cluster.stop()
    try:
        late = make_ingest(start=False).launch()
        until(lambda: "is away" in late.log(), "it says that it tries again")
        assert "READY=1" not in late.notices.drain()
    finally:
        cluster.start()
    until(lambda: "READY=1" in late.notices.drain(), "it is ready", seconds=20)
    late.api(admin_key).event(1)


def test_a_hung_database_is_given_up_on(make_ingest, admin_key, db, endpoint):
    ingest = make_ingest(statement_timeout="500ms")
    api = ingest.api(admin_key)
    api.subscribe(endpoint.url)
    with db.cluster.connect(db.name) as blocker:
        blocker.execute("BEGIN; LOCK TABLE postrider.event")
        problem(api.post("/v1/events", {**EVENT, "id": "e1"}), 503)
        blocker.execute("ROLLBACK")
    until(lambda: api.post("/v1/events", {**EVENT, "id": "e1"}).status == 202,
          "events are taken again")


def test_what_waits_is_bounded(make_ingest, admin_key, db):
    """Two transactions hang, a thousand events wait: more are turned away."""
    ingest = make_ingest(max_queued_events=1000, statement_timeout="60s")
    api = ingest.api(admin_key)
    api.event(1)

    def lines():
        return batch(api, *[{"type": "t", "data": 1}] * 1000)

    with db.cluster.connect(db.name) as blocker, ThreadPoolExecutor(3) as pool:
        blocker.execute("BEGIN; LOCK TABLE postrider.event")
        posted = []
        for waiting in ("queued_events 0", "queued_events 0", "queued_events 1000"):
            posted.append(pool.submit(lines))
            until(lambda n=len(posted): lock_waits(db) == min(n, 2),
                  "a transaction waits for the lock")
            until(lambda text=waiting: f"{text}\n" in api.get("/metrics").body.decode(),
                  waiting)
        answer = api.post("/v1/events", EVENT)
        problem(answer, 503)
        assert answer.headers["Retry-After"] == "1"
        blocker.execute("ROLLBACK")
        assert [future.result().status for future in posted] == [202, 202, 202]
    api.event(1)
    assert db.value("SELECT count(*) FROM postrider.event") == 3002


def test_a_signal_lets_what_is_in_hand_be_answered(make_ingest, admin_key, db):
    ingest = make_ingest()
    api = ingest.api(admin_key)
    answers = []
    with db.cluster.connect(db.name) as blocker:
        blocker.execute("BEGIN; LOCK TABLE postrider.event")
        thread = threading.Thread(
            target=lambda: answers.append(api.post("/v1/events", EVENT)))
        thread.start()
        until(lambda: lock_waits(db), "the event waits for the lock")
        ingest.kill(signal.SIGTERM)
        until(lambda: "stopping" in ingest.log(), "it is stopping")
        blocker.execute("ROLLBACK")
    assert ingest.wait() == 0
    thread.join()
    answers[0].expect(202)
    assert db.value("SELECT count(*) FROM postrider.event") == 1


def test_a_schema_that_is_not_ours_is_refused(make_ingest, empty_db, db):
    strange = make_ingest(start=False, database=empty_db.conninfo).launch()
    assert strange.wait() == 1
    assert "postrider migrate" in strange.log()
    db.execute("INSERT INTO postrider.schema_migration VALUES (999, 'later', 'x')")
    older = make_ingest(start=False).launch()
    assert older.wait() == 1
    assert "cannot go on" in older.log()


def test_settings_are_checked(make_ingest):
    assert make_ingest(start=False).launch("-n").wait() == 0
    assert make_ingest(start=False, secret_key_file="").launch().wait() == 2
    assert make_ingest(start=False, writers=0).launch().wait() == 2
    assert make_ingest(start=False).launch("--nonsense=1").wait() == 2
