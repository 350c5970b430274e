"""One id is one event, however often and in whatever form it is posted."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor

from .wait import until


def lock_waits(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()")


def post(api, text):
    return api.post("/v1/events", text.encode() if isinstance(text, str) else text)


SAME = [
    ('{"id":"x","type":"t","data":{"a":1,"b":2}}', '{"type":"t","data":{"b":2,"a":1},"id":"x"}'),
    ('{"id":"x","type":"t","data":"\u00e9"}', '{"id":"x","type":"t","data":"\\u00E9"}'),
    ('{"id":"x","type":"t","data":[1, 2]}', '{ "id" : "x","type":"t","data":[1,2]}\n'),
    ('{"id":"x","type":"t","data":1}', '{"id":"x","type":"t","data":1,"asset":null}'),
    ('{"id":"x","type":"t","data":1,"subscriptions":["1","2"]}',
     '{"id":"x","type":"t","data":1,"subscriptions":["2","1","2"]}'),
]


def test_the_same_content_is_answered_with_the_first_acceptance(api, db, endpoint):
    api.subscribe(endpoint.url)
    api.subscribe(endpoint.url)
    for n, (first, second) in enumerate(SAME):
        first, second = (text.replace('"x"', f'"x{n}"') for text in (first, second))
        accepted = post(api, first).expect(202)
        body = db.value("SELECT body FROM postrider.event WHERE event_id = %s", (f"x{n}",))
        assert post(api, second).expect(200) == accepted
        assert body == db.value(
            "SELECT body FROM postrider.event WHERE event_id = %s", (f"x{n}",))
    assert db.value("SELECT count(*) FROM postrider.delivery") == 2 * len(SAME)


OTHER = [
    {"data": {"a": 1.0}}, {"data": {"a": "1"}}, {"type": "u"}, {"asset": "pump"},
    {"data": {"a": 1, "b": 1}}, {"subscriptions": ["1"]}, {"data": [1, 2]},
]


def test_other_content_is_a_conflict(api, db, endpoint):
    api.subscribe(endpoint.url)
    first = {"id": "x", "type": "t", "data": {"a": 1}}
    api.post("/v1/events", first).expect(202)
    for change in OTHER:
        body = api.post("/v1/events", {**first, **change}).expect(409)
        assert body["pointer"] == "/id", change
    assert db.value("SELECT count(*) FROM postrider.event") == 1
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1
    api.post("/v1/events", first).expect(200)


def test_two_hundred_parallel_posts_of_one_id_make_one_event(api, db, endpoint):
    api.subscribe(endpoint.url)
    event = {"id": "x", "type": "t", "asset": "a", "data": 1}
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: api.post("/v1/events", event), range(200)))
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200] * 199 + [202]
    assert len({answer.body for answer in answers}) == 1
    assert db.value("SELECT count(*) FROM postrider.event") == 1
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1


def test_parallel_posts_of_one_id_with_many_contents_have_one_winner(api, db, endpoint):
    api.subscribe(endpoint.url)

    def contend(n):
        return n % 4, api.post("/v1/events", {"id": "x", "type": "t", "data": n % 4})

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(contend, range(200)))
    winner = next(n for n, answer in answers if answer.status == 202)
    for n, answer in answers:
        assert answer.status in ((200, 202) if n == winner else (409,))
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1


def test_an_id_of_one_tenant_is_free_for_another(api, cli, ingest, db):
    cli.json("tenant", "create", "other")
    key = cli.json("key", "create", "--tenant", "other", "--role", "admin")["key"]
    api.event(1, id="x")
    ingest.api(key).event(2, id="x")
    assert db.value("SELECT count(*) FROM postrider.event") == 2


def test_a_repeat_waits_for_the_first_to_be_committed(api, db, admin_key, make_ingest):
    """Another process is inserting the same id, and has not committed yet."""
    event = {"id": "x", "type": "t", "data": 1}
    answers = []

    def race(rollback):
        with db.cluster.connect(db.name) as other:
            other.execute("BEGIN")
            other.execute(
                "INSERT INTO postrider.event (tenant_id, event_id, type, fan_out, fingerprint)"
                " VALUES (1, 'x', 't', 0, '\\x00')")
            thread = threading.Thread(
                target=lambda: answers.append(api.post("/v1/events", event)))
            thread.start()
            until(lambda: lock_waits(db), "the post waits for the other transaction")
            other.execute("ROLLBACK" if rollback else "COMMIT")
            thread.join()
        return answers.pop().status

    assert race(rollback=True) == 202
    db.execute("DELETE FROM postrider.event")
    assert race(rollback=False) == 409


def test_a_repeat_is_known_after_its_payload_was_purged(api, db, endpoint):
    api.subscribe(endpoint.url)
    accepted = api.event({"n": 1}, id="x")
    db.execute("UPDATE postrider.event SET body = NULL")
    again = api.post("/v1/events", {"id": "x", "type": "test.made", "data": {"n": 1}})
    assert again.expect(200) == accepted


def test_an_id_twice_in_a_batch_is_one_event(api, db, endpoint):
    api.subscribe(endpoint.url)
    line = json.dumps({"id": "x", "type": "t", "data": 1})
    body = api.post("/v1/events/batch", f"{line}\n{line}\n".encode(),
                    headers={"Content-Type": "application/x-ndjson"}).expect(202)
    assert [event["new"] for event in body["events"]] == [True, False]
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1


def test_a_batch_and_a_single_event_know_each_other(api, db):
    line = b'{"id":"x","type":"t","data":1}\n{"id":"y","type":"t","data":1}'
    kind = {"Content-Type": "application/x-ndjson"}
    accepted = api.event(1, id="x", type="t")
    body = api.post("/v1/events/batch", line, headers=kind).expect(202)
    assert [event["new"] for event in body["events"]] == [False, True]
    assert body["events"][0]["accepted_at"] == accepted["accepted_at"]
    post(api, '{"id":"y","type":"t","data":1}').expect(200)
    assert db.value("SELECT count(*) FROM postrider.event") == 2


def test_one_bad_event_never_fails_its_neighbours(api, db, endpoint):
    """The database refuses one row: the others of its batch are kept."""
    api.subscribe(endpoint.url)
    db.execute("ALTER TABLE postrider.event ADD CHECK (event_id NOT LIKE 'bad%')")
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(
            lambda n: (n, api.post("/v1/events", {
                "id": f"{'bad' if n % 10 == 0 else 'good'}{n}", "type": "t", "data": n})),
            range(200)))
    for n, answer in answers:
        assert answer.status == (422 if n % 10 == 0 else 202)
    assert db.value("SELECT count(*) FROM postrider.delivery") == 180


def test_a_deadlock_is_tried_again(api, db, endpoint):
    """Somebody else's transaction and the batch wait for each other."""
    made = api.subscribe(endpoint.url)["id"]
    with db.cluster.connect(db.name) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SET deadlock_timeout = '1h'")  # so that the batch is the victim
        other.execute("BEGIN")
        other.execute("SELECT FROM postrider.turn WHERE subscription_id = %s FOR UPDATE",
                      (made,))
        posted = pool.submit(api.post, "/v1/events",
                             {"id": "x", "type": "t", "asset": "a", "data": 1})
        until(lambda: lock_waits(db), "the batch waits for the turn")
        other.execute(
            "INSERT INTO postrider.event (tenant_id, event_id, type, fan_out, fingerprint)"
            " VALUES (1, 'x', 't', 0, '\\x00') ON CONFLICT DO NOTHING")
        other.execute("ROLLBACK")
        posted.result().expect(202)
    # Once as the deadlock's victim; or by its deadline, if it looked too early.
    assert re.search(r"batches_failed_total [1-9]", api.get("/metrics").body.decode())
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1


def test_a_violation_that_stays_is_not_asked_about_for_ever(api, db, endpoint):
    """An id that nobody has is taken all the same: some other key is in the way."""
    api.subscribe(endpoint.url)
    db.execute("ALTER TABLE postrider.event ADD data_key integer GENERATED ALWAYS AS"
               " (CASE WHEN event_id LIKE 'bad%' THEN 1 END) STORED UNIQUE")
    api.post("/v1/events", {"id": "bad", "type": "t", "data": 0}).expect(202)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(
            lambda n: (n, api.post("/v1/events", {
                "id": f"{'bad' if n % 20 == 0 else 'good'}{n}", "type": "t", "data": n})),
            range(100)))
    for n, answer in answers:
        assert answer.status == (422 if n % 20 == 0 else 202)
    # Each bad one: six times among others, once alone.
    failed = int(re.search(r"batches_failed_total (\d+)",
                           api.get("/metrics").body.decode()).group(1))
    assert 5 <= failed <= 5 * 7


def test_a_lost_answer_to_commit_is_said_and_repeating_tells(api, db, endpoint):
    """The commit waits for a standby that is not there; then the connection is cut."""
    api.subscribe(endpoint.url)
    db.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    db.execute("SELECT pg_reload_conf()")
    waits = ("FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
             " AND datname = current_database()")
    single, kind = {"type": "t", "data": 1}, {"Content-Type": "application/x-ndjson"}

    def wait_for_the_standby(pool, path, make_body, headers):
        """A post whose commit waits.  The setting takes a moment: some go through before."""
        for n in range(1000):
            posted = pool.submit(api.post, path, make_body(n), headers=headers)
            until(lambda: posted.done() or db.value(f"SELECT count(*) {waits}"),
                  "the commit waits, or has gone through")
            if not posted.done():
                return posted
        raise AssertionError("no commit waits")

    try:
        with ThreadPoolExecutor(1) as pool:
            for path, make_body, headers in (
                    ("/v1/events", lambda _: json.dumps(single).encode(), {}),
                    ("/v1/events/batch",
                     lambda n: b'{"id":"x%d","type":"t","data":1}' % n, kind)):
                posted = wait_for_the_standby(pool, path, make_body, headers)
                db.rows(f"SELECT pg_terminate_backend(pid) {waits}")
                lost = posted.result().expect(504)
                ids = lost["ids"] if "ids" in lost else [lost["id"]]
                assert db.value("SELECT count(*) FROM postrider.event WHERE event_id = %s",
                                (ids[0],)) == 1
                db.execute("ALTER SYSTEM RESET synchronous_standby_names")
                db.execute("SELECT pg_reload_conf()")
                until(lambda: api.post("/v1/events", {**single, "id": ids[0]}).status == 200,
                      "repeating the id tells that it was accepted")
                db.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
                db.execute("SELECT pg_reload_conf()")
    finally:
        db.execute("ALTER SYSTEM RESET synchronous_standby_names")
        db.execute("SELECT pg_reload_conf()")
