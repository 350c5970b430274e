"""A delivery's detail: all that was tried, and what is kept of each answer."""

import json

import pytest

from .wait import until

FAST = {"retry_base_ms": 10}


def answer(status, body=b"", *headers):
    """An endpoint's word: answer with this."""
    def act(handler, _):
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return act


def echo(handler, request):
    """A receiver that sends back what it was sent, wherever it can."""
    answer(400, request.body, ("Content-Type", "text/plain"),
           ("X-Request-Id", request.body.decode()))(handler, request)


def detail(api, subscription, delivery):
    return api.get(f"/v1/subscriptions/{subscription}/deliveries/{delivery}")


def only_delivery(db):
    return db.value("SELECT id FROM postrider.deliveries")


def shown(api, db, made, state):
    """The detail of the only delivery, once it is in this state."""
    until(lambda: db.value("SELECT state FROM postrider.deliveries") == state, f"it is {state}")
    return detail(api, made["id"], only_delivery(db)).expect(200)


def test_a_delivery_is_shown_with_all_that_was_tried(api, dispatch, db, endpoint):
    endpoint.script(answer(500, b"no room", ("Content-Type", "text/plain")),
                    answer(200, b"thanks", ("X-Request-Id", "r1")))
    made = api.subscribe(endpoint.url, **FAST)
    accepted = api.event({"n": 1}, asset="pump-17")
    found = shown(api, db, made, "delivered")
    assert found["id"] == str(only_delivery(db))
    assert found["subscription_id"] == made["id"]
    assert (found["event_id"], found["type"]) == (accepted["id"], "test.made")
    assert found["asset"] == "pump-17"
    assert (found["state"], found["status"], found["attempts"]) == ("delivered", 200, 2)
    assert (found["generation"], found["replayed"]) == (1, False)
    assert (found["why"], found["until"], found["behind"]) == (None, None, None)
    assert found["accepted_at"] == accepted["accepted_at"] < found["finished_at"]
    assert found["payload_purged"] is False
    first, second = found["history"]
    assert (first["generation"], first["attempt"], first["ended"]) == (1, 1, "answered")
    assert (first["status"], first["excerpt"], first["reason"]) == (500, "no room", None)
    assert {"name": "content-type", "value": "text/plain"} in first["headers"]
    assert first["remote"] == f"127.0.0.1:{endpoint.port}"
    assert accepted["accepted_at"] < first["started_at"] < second["started_at"]
    assert (second["attempt"], second["status"], second["excerpt"]) == (2, 200, "thanks")
    assert {"name": "x-request-id", "value": "r1"} in second["headers"]


def test_nothing_is_kept_of_an_answer_that_took_it_without_a_word(api, dispatch, db, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({})
    tried, = shown(api, db, made, "delivered")["history"]
    assert (tried["status"], tried["headers"], tried["excerpt"]) == (200, [], None)
    assert db.rows("SELECT headers, excerpt FROM postrider.attempt") == [(None, None)]


def test_the_time_of_a_try_is_told_by_its_phases(api, dispatch, db, endpoint):
    endpoint.script(500, 200)
    made = api.subscribe(endpoint.url, **FAST)
    api.event({})
    new, reused = shown(api, db, made, "delivered")["history"]
    assert new["connect_us"] > 0 and reused["connect_us"] is None, "it used the connection again"
    for tried in new, reused:
        assert tried["dns_us"] is None and tried["tls_us"] is None, "an address, without TLS"
        assert tried["wait_us"] > 0 and tried["receive_us"] >= 0
        phases = [tried[f"{p}_us"] for p in ("dns", "connect", "tls", "wait", "receive")]
        assert sum(phase or 0 for phase in phases) <= tried["duration_us"]


def test_a_try_without_an_answer_has_the_phases_that_it_came_to(api, dispatch, db, endpoint):
    endpoint.script("hang")
    made = api.subscribe(endpoint.url, timeout_ms=300, max_attempts=1)
    api.event({})
    tried, = shown(api, db, made, "dead")["history"]
    assert (tried["ended"], tried["status"]) == ("timed_out", None)
    assert "timed out" in tried["reason"]
    assert tried["wait_us"] > 200_000 and tried["receive_us"] is None
    assert (tried["headers"], tried["excerpt"]) == ([], None)


def test_a_try_that_was_not_sent_has_no_phase(api, dispatch, db):
    made = api.subscribe("http://127.0.0.1:9/", max_attempts=1)
    db.execute("UPDATE postrider.subscription SET url = 'http://10.0.0.1/'")
    api.event({})
    tried, = shown(api, db, made, "dead")["history"]
    assert tried["ended"] == "refused" and tried["reason"]
    assert [tried[f"{p}_us"] for p in ("dns", "connect", "tls", "wait", "receive")] == [None] * 5
    assert tried["remote"] is None


def test_every_generation_is_shown_in_order(api, dispatch, db, endpoint):
    endpoint.script(400)
    made = api.subscribe(endpoint.url)
    api.event({})
    shown(api, db, made, "dead")
    delivery = only_delivery(db)
    for generation in 2, 3:
        api.post(f"/v1/subscriptions/{made['id']}/deliveries/{delivery}/retry").expect(202)
        until(lambda: db.rows("SELECT state, generation FROM postrider.delivery")
              == [("dead", generation)], "it is dead again")
    found = shown(api, db, made, "dead")
    assert (found["generation"], found["replayed"], found["attempts"]) == (3, True, 1)
    assert [(t["generation"], t["attempt"]) for t in found["history"]] == [(1, 1), (2, 1), (3, 1)]


def test_a_delivery_that_waits_says_for_what(api, db, endpoint):
    made = api.subscribe(endpoint.url)
    for asset in "aa":
        api.event({}, asset=asset)
    first, second = (row[0] for row in db.rows("SELECT id FROM postrider.deliveries ORDER BY id"))
    found = detail(api, made["id"], first).expect(200)
    assert (found["state"], found["why"], found["history"]) == ("pending", "ready", [])
    assert (found["status"], found["finished_at"], found["attempts"]) == (None, None, 0)
    found = detail(api, made["id"], second).expect(200)
    assert (found["why"], found["behind"]) == ("order", str(first))


def test_a_delivery_of_others_is_as_one_that_does_not_exist(
        api, cli, ingest, db, endpoint):
    made, other = api.subscribe(endpoint.url), api.subscribe(endpoint.url, event_types=["none"])
    api.event({})
    delivery = only_delivery(db)
    cli.json("tenant", "create", "globex")
    stranger = ingest.api(cli.json("key", "create", "--tenant", "globex", "--role",
                                   "admin")["key"])
    detail(api, made["id"], delivery).expect(200)
    missing = detail(api, made["id"], 987654321)
    missing.expect(404)
    for who, subscription, asked in (
            (api, other["id"], delivery), (stranger, made["id"], delivery),
            (api, 12345, delivery), (api, "x", delivery), (api, made["id"], "x"),
            (api, made["id"], "-1"), (api, made["id"], "9" * 30)):
        found = detail(who, subscription, asked)
        assert (found.status, found.body) == (missing.status, missing.body), (subscription, asked)


def test_who_may_only_publish_sees_no_delivery(cli, ingest, api, db, tenant, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({})
    publisher = ingest.api(cli.json("key", "create", "--tenant", tenant, "--role",
                                    "publisher")["key"])
    detail(publisher, made["id"], only_delivery(db)).expect(403)
    ingest.api(None).get(f"/v1/subscriptions/{made['id']}/deliveries/1").expect(401)


def test_a_deleted_subscription_shows_none(api, dispatch, db, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({})
    shown(api, db, made, "delivered")
    api.delete(f"/v1/subscriptions/{made['id']}").expect(204)
    detail(api, made["id"], only_delivery(db)).expect(404)


@pytest.mark.parametrize("body", [
    b'"quoted" \\ and </script><b>', b"NUL \x00 and \x1b[2J bell \x07", b"caf\xe9 \xff\xfe",
    "caf\u00e9 \u2028 \u202e \ud83d\ude00".encode("utf-8", "surrogatepass"), b"\xed\xa0\xbd",
    b"line\r\nline", b"x" * 5000, "\u20ac".encode() * 2000])
def test_an_excerpt_is_safe_to_show_whatever_was_answered(
        body, api, dispatch, db, endpoint):
    endpoint.script(answer(400, body))
    made = api.subscribe(endpoint.url)
    api.event({})
    shown(api, db, made, "dead")
    raw = detail(api, made["id"], only_delivery(db)).body
    assert all(octet >= 0x20 for octet in raw), "no control character, but escaped"
    excerpt = json.loads(raw)["history"][0]["excerpt"]
    assert excerpt and len(excerpt.encode()) <= 1024
    assert not {"\x00", "\x1b", "\x07", "\u202e"} & set(excerpt)
    assert db.value("SELECT excerpt FROM postrider.attempt") == excerpt


def test_what_a_receiver_sends_back_is_seen_in_the_detail_alone(
        api, dispatch, db, cluster, endpoint):
    endpoint.script(echo)
    made = api.subscribe(endpoint.url)
    event = api.event({"payload": "tell-nobody"})
    found = shown(api, db, made, "dead")
    assert "tell-nobody" in found["history"][0]["excerpt"]
    assert "tell-nobody" not in api.get(f"/v1/events/{event['id']}").body.decode()
    with cluster.connect(db.name) as reader:
        reader.execute("SET ROLE postrider_reader")
        for relation, in db.rows("SELECT format('postrider.%I', relname) FROM pg_class"
                                 " WHERE relnamespace = 'postrider'::regnamespace"
                                 " AND relkind IN ('r', 'v')"):
            columns = ", ".join(row[0] for row in reader.execute(
                "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = %s::regclass"
                " AND attnum > 0 AND NOT attisdropped"
                " AND has_column_privilege(attrelid, attnum, 'SELECT')", (relation,)))
            if columns:
                rows = reader.execute(f"SELECT t::text FROM (SELECT {columns} FROM {relation}) t"
                                      ).fetchall()
                assert "tell-nobody" not in str(rows), relation


def test_no_payload_is_in_the_detail(api, dispatch, db, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({"payload": "tell-nobody"})
    shown(api, db, made, "delivered")
    assert b"tell-nobody" not in detail(api, made["id"], only_delivery(db)).body


def test_the_latest_of_very_many_tries_are_shown(api, db, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({})
    delivery = only_delivery(db)
    db.execute("INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, ended, worker)"
               " SELECT %s, 1 + g / 600, 1 + g %% 600, 'timed_out', 'w' FROM generate_series(0, 1499) g",
               (delivery,))
    history = detail(api, made["id"], delivery).expect(200)["history"]
    assert [(t["generation"], t["attempt"]) for t in history] == [
        (1 + g // 600, 1 + g % 600) for g in range(500, 1500)]
