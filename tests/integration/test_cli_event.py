"""The operator's command sends and shows events as ingest does."""

import json
import threading

import pytest

from .statement import accept_all
from .wait import until


@pytest.fixture
def data(tmp_path):
    """A file that holds this."""
    def make(content):
        path = tmp_path / "data.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)
    return make


def refused(cli, status, *args, **how):
    done = cli.run("event", *args, **how)
    assert (done.returncode, done.stdout) == (status, ""), done
    assert done.stderr.startswith("postrider: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_an_event_is_sent_as_if_it_had_been_posted(cli, api, dispatch, db, endpoint, tenant, data):
    made = api.subscribe(endpoint.url, event_types=["valve.*"])["id"]
    sent = cli.json("event", "send", data(' {"turns": 0.50}\n'), "--tenant", tenant,
                    "--type", "valve.moved", "--asset", "valve 7", "--id", "tour-1")
    assert (sent["id"], sent["deliveries"], sent["repeated"]) == ("tour-1", 1, False)
    until(lambda: endpoint.requests, "it has come")
    assert endpoint.requests[0].headers["webhook-id"] == "tour-1"
    body = endpoint.requests[0].body
    assert body.startswith(b'{"id":"tour-1","type":"valve.moved","asset":"valve 7",')
    assert body.endswith(b'"data":{"turns": 0.50}}'), "the file's bytes"
    again = api.post("/v1/events", b'{"id":"tour-1","type":"valve.moved","asset":"valve 7",'
                     b'"data":{"turns":0.50}}').expect(200)
    assert (again["id"], again["deliveries"]) == ("tour-1", 1)
    assert [row[0] for row in db.rows("SELECT subscription_id FROM postrider.delivery")] == [
        int(made)]


def test_filters_are_asked(cli, api, endpoint, tenant, data):
    api.subscribe(endpoint.url, filter="$.data.turns > 3")
    words = ("--tenant", tenant, "--type", "t")
    assert cli.json("event", "send", data('{"turns": 2}'), *words)["deliveries"] == 0
    assert cli.json("event", "send", data('{"turns": 4}'), *words)["deliveries"] == 1


def test_the_same_again_is_a_repeat_and_another_is_a_conflict(cli, api, tenant, data):
    posted = api.event({"n": 1}, id="e1", type="t")
    words = ("--tenant", tenant, "--type", "t", "--id", "e1")
    sent = cli.json("event", "send", data('{"n":1}'), *words)
    assert sent["repeated"] is True and sent["accepted_at"][:19] == posted["accepted_at"][:19]
    said = refused(cli, 1, "send", data('{"n":2}'), *words)
    assert 'another event was accepted under the id "e1"' in said


def test_it_is_told_which_id_was_made(cli, api, tenant, endpoint):
    api.subscribe(endpoint.url)
    sent = cli.json("event", "send", "-", "--tenant", tenant, "--type", "t", stdin="[1, 2]")
    assert sent["id"].startswith("evt_") and sent["deliveries"] == 1
    shown = cli.json("event", "get", sent["id"], "--tenant", tenant)
    assert shown == {**api.get(f"/v1/events/{sent['id']}").expect(200),
                     "accepted_at": shown["accepted_at"]}
    table = cli("event", "get", sent["id"], "--tenant", tenant)
    assert "fan_out" in table and "subscription_id" in table and "pending" in table


def test_one_subscription_can_be_named(cli, api, tenant, endpoint, data):
    one, _ = (api.subscribe(endpoint.url)["id"] for _ in range(2))
    sent = cli.json("event", "send", data("null"), "--tenant", tenant, "--type", "t",
                    "--subscription", one)
    assert sent["deliveries"] == 1
    shown = cli.json("event", "get", sent["id"], "--tenant", tenant)
    assert [each["subscription_id"] for each in shown["deliveries"]] == [one]
    said = refused(cli, 1, "send", data("null"), "--tenant", tenant, "--type", "t",
                   "--subscription", "7777")
    assert 'there is no subscription "7777"' in said


def test_an_event_for_nobody_is_kept_all_the_same(cli, tenant, data):
    sent = cli.json("event", "send", data("1"), "--tenant", tenant, "--type", "t")
    assert sent["deliveries"] == 0
    assert cli.json("event", "get", sent["id"], "--tenant", tenant)["deliveries"] == []
    assert "there is no such event" in refused(cli, 1, "get", "nobody", "--tenant", tenant)


WRONG = [
    ("{", (), 1, "data: "), ("", (), 1, "data: "), ('1,"asset":"b"', (), 1, "data: "),
    (b'"\xff"', (), 1, "data: "), ("1 2", (), 1, "data: "),
    (json.dumps("x" * 65536), (), 1, "more than 65536 octets"),
    (json.dumps("x" * 65520), (), 1, "an event is at most 65536 bytes"),
    ("1", ("--type", "a b"), 2, "type: must be words"),
    ("1", ("--type", ""), 2, "type: must be 1 to"),
    ("1", ("--id", "a.b"), 2, "id: may have only"),
    ("1", ("--asset", "a\x1bb"), 2, "asset: must not have control characters"),
    ("1", ("--asset", "x" * 257), 2, "asset: must be 1 to 256 bytes"),
    ("1", ("--subscription", "x"), 2, "subscriptions: "),
    ("1", ("--tenant", "no body"), 2, "a tenant's name is"),
]


def test_what_ingest_refuses_is_refused_in_the_same_words_before_a_database_is_asked(cli, data):
    elsewhere = type(cli)({"database": "host=/nowhere"})
    for content, options, status, why in WRONG:
        given = {"--tenant": "acme", "--type": "t", **dict([options] if options else [])}
        words = [word for pair in given.items() for word in pair]
        assert why in refused(elsewhere, status, "send", data(content), *words), (content, options)
    said = refused(elsewhere, 1, "send", "/nowhere", "--tenant", "acme", "--type", "t")
    assert "/nowhere: No such file" in said


def test_an_id_that_somebody_takes_meanwhile_is_asked_about_again(cli, db, other, tenant, data):
    """Between the question and the writing: the writer waits, and finds that it was quicker."""
    of = db.value("SELECT id FROM postrider.tenant WHERE name = %s", (tenant,))
    accept_all(other, of, ["e1"])
    done = []
    sender = threading.Thread(target=lambda: done.append(cli.run(
        "event", "send", data("1"), "--tenant", tenant, "--type", "t", "--id", "e1")))
    sender.start()
    until(lambda: db.value("SELECT count(*) FROM pg_locks WHERE NOT granted"), "it waits")
    other.commit()
    sender.join()
    assert done[0].returncode == 1
    assert 'another event was accepted under the id "e1"' in done[0].stderr


def test_a_tenant_that_is_not_there_is_a_failure(cli, tenant, data):
    for words in (("send", data("1"), "--type", "t"), ("get", "e1")):
        assert "there is no such tenant" in refused(cli, 1, *words, "--tenant", "nobody")
