"""The delivery log: the newest first, by state, time, type, asset and event, without payloads."""

import json
from urllib.parse import quote, urlencode

import pytest

from .replaying import Queue
from .wait import until

FAST = {"retry_base_ms": 10}
LOOKED_AT = 10_000  # deliveries, for one page


def log(api, subscription, **query):
    """A page of the log."""
    path = f"/v1/subscriptions/{subscription}/deliveries"
    return api.get(f"{path}?{urlencode(query, quote_via=quote)}" if query else path)


def listed(api, subscription, **query):
    """All of the log that fits, page by page."""
    found = []
    while True:
        page = log(api, subscription, **query).expect(200)
        found += page["deliveries"]
        if page["next_after"] is None:
            return found
        query["after"] = page["next_after"]


def events(deliveries):
    return [delivery["event_id"] for delivery in deliveries]


@pytest.fixture
def steps(db):
    """A subscription whose queue is stepped by hand."""
    return Queue(db)


@pytest.fixture
def viewer(steps, db, cli, ingest):
    """Who may read what its tenant has."""
    name = db.value("SELECT name FROM postrider.tenant WHERE id = %s", (steps.tenant,))
    return ingest.api(cli.json("key", "create", "--tenant", name, "--role", "viewer")["key"])


def at(db, event):
    """When an event was accepted, as the API writes it."""
    return db.value("SELECT to_char(accepted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
                    " || 'Z' FROM postrider.event WHERE event_id = %s", (event,))


def test_a_delivery_is_listed_as_its_detail_shows_it(api, dispatch, db, endpoint):
    endpoint.script(500, 400, 200)
    made = api.subscribe(endpoint.url, **FAST)
    accepted = api.event({"payload": "tell-nobody"}, asset="pump-17")
    other = api.event({}, asset="pump-18")
    until(lambda: db.value("SELECT count(*) FROM postrider.delivery WHERE state = 'pending'") == 0,
          "both are over")
    page = log(api, made["id"]).expect(200)
    assert page["next_after"] is None
    assert events(page["deliveries"]) == [other["id"], accepted["id"]]
    for delivery in page["deliveries"]:
        detail = api.get(f"/v1/subscriptions/{made['id']}/deliveries/{delivery['id']}").expect(200)
        tried = detail.pop("history")[-1]
        last = delivery.pop("last_status"), delivery.pop("last_error")
        assert delivery == detail
        wrong = None if tried["status"] == 200 else f"HTTP status {tried['status']}"
        assert last == (tried["status"], wrong)
    assert b"tell-nobody" not in log(api, made["id"]).body


def test_what_went_wrong_last_is_told_while_it_is_tried_again(api, dispatch, db, endpoint):
    endpoint.script("drop")
    made = api.subscribe(endpoint.url, retry_base_ms=3_600_000)
    api.event({})
    tried, = until(lambda: log(api, made["id"], state="retrying").expect(200)["deliveries"],
                   "it waits for its retry")
    assert (tried["why"], tried["attempts"], tried["status"]) == ("retry", 1, None)
    assert tried["last_status"] is None and tried["last_error"] and tried["until"]


def test_a_state_finds_what_the_view_calls_so(viewer, steps, db):
    died, given_up, again, *_ = steps.die("dead", "cancelled", "dead again", "dead too")
    steps.accept("delivered", "b")
    steps.send()
    steps.discard(given_up)
    steps.accept("retrying", "c")
    steps.send("retry", 3_600_000_000)
    steps.retry(again)
    steps.send("dead")
    steps.accept("delivering", "d")
    steps.claim()
    for event in ("pending", "pending too", "pending as well"):
        steps.accept(event, "e")
    steps.accept("not sent yet", "d")
    for state in ("pending", "delivering", "retrying", "delivered", "dead", "cancelled"):
        wanted = [row[0] for row in db.rows(
            "SELECT event_id FROM postrider.deliveries WHERE subscription_id = %s AND state = %s"
            " ORDER BY id DESC", (steps.id, state))]
        assert wanted, state
        assert events(listed(viewer, steps.id, state=state)) == wanted
        assert events(listed(viewer, steps.id, state=state, limit=1)) == wanted
    everything = listed(viewer, steps.id, limit=3)
    assert len(everything) == 11
    assert everything == listed(viewer, steps.id)
    shown = db.rows("SELECT id::text, event_id, asset, state, why, behind::text, attempts"
                    " FROM postrider.deliveries d WHERE subscription_id = %s ORDER BY d.id DESC",
                    (steps.id,))
    assert [tuple(each[name] for name in ("id", "event_id", "asset", "state", "why", "behind",
                                          "attempts")) for each in everything] == shown
    assert str(died) in [each["id"] for each in everything]


def test_type_asset_and_event_are_looked_for_as_they_are_and_together(api, endpoint):
    made = api.subscribe(endpoint.url)["id"]
    names = ("pump 17", "Pümpe+1", "a&b=c", "100%", None)
    ids = {}
    for asset in names:
        for type in ("valve.moved", "valve"):
            ids[asset, type] = api.event({}, type=type, asset=asset)["id"]
    for asset in names[:4]:
        wanted = [ids[asset, "valve"], ids[asset, "valve.moved"]]
        assert events(listed(api, made, asset=asset)) == wanted
        assert events(listed(api, made, asset=asset, type="valve")) == wanted[:1]
    assert events(listed(api, made, type="valve")) == [
        ids[asset, "valve"] for asset in reversed(names)]
    one = ids[None, "valve"]
    assert events(listed(api, made, event=one)) == [one]
    assert events(listed(api, made, event=one, state="pending", type="valve")) == [one]
    for nothing in ({"event": one, "state": "dead"}, {"event": one, "type": "valve.moved"},
                    {"event": "nobody"}, {"asset": "PUMP 17"}, {"type": "valve.*"}):
        assert listed(api, made, **nothing) == []


def test_times_are_of_acceptance_and_until_is_not_included(viewer, steps, db):
    for event in "abcde":
        steps.accept(event, event)
    assert events(listed(viewer, steps.id, since=at(db, "b"), until=at(db, "d"))) == ["c", "b"]
    assert events(listed(viewer, steps.id, since=at(db, "d"))) == ["e", "d"]
    assert events(listed(viewer, steps.id, until=at(db, "b"))) == ["a"]
    assert listed(viewer, steps.id, since="2099-01-01T00:00:00Z") == []
    assert listed(viewer, steps.id, until="2001-01-01T00:00:00Z") == []
    steps.send("dead")
    assert events(listed(viewer, steps.id, since=at(db, "b"), until=at(db, "d"), state="dead")) == [
        "c", "b"]
    assert events(listed(viewer, steps.id, since=at(db, "b"), event="b")) == ["b"]
    assert listed(viewer, steps.id, since=at(db, "c"), event="b") == []


def test_what_overtook_on_the_way_to_the_commit_is_found_by_its_time(viewer, steps, db):
    """Numbers and times differ in order, by almost a minute."""
    db.execute("INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type,"
               " fingerprint, accepted_at) SELECT 2000 * n, %s, 1, 'e' || n, 't', '',"
               " now() - (1000 - n) * interval '7 s' - n * 31 %% 59 * interval '1 s'"
               " FROM generate_series(1, 1000) n", (steps.tenant,))
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, state)"
               " SELECT event_no + 1000, event_no, %s, 'delivered' FROM postrider.event",
               (steps.id,))
    ordered = [row[0] for row in db.rows(
        "SELECT event_id FROM postrider.event ORDER BY accepted_at, event_no")]
    assert ordered != [f"e{n}" for n in range(1, 1001)]
    for first, end in ((0, 40), (300, 340), (500, 501), (960, 999)):
        wanted = set(db.value(
            "SELECT array_agg(event_id) FROM postrider.event WHERE accepted_at >= "
            "(SELECT accepted_at FROM postrider.event WHERE event_id = %s) AND accepted_at < "
            "(SELECT accepted_at FROM postrider.event WHERE event_id = %s)",
            (ordered[first], ordered[end])))
        found = listed(viewer, steps.id, since=at(db, ordered[first]), until=at(db, ordered[end]))
        assert set(events(found)) == wanted and len(found) == len(wanted)


def test_a_delivery_that_was_made_later_stands_where_its_event_does(viewer, steps, db):
    steps.accept("first")
    steps.accept_for_nobody("between")
    steps.accept("last", "b")
    steps.start("events")
    while steps.step()["did"]:
        pass
    assert events(listed(viewer, steps.id)) == ["last", "between", "first"]
    assert events(listed(viewer, steps.id, since=at(db, "between"), until=at(db, "last"))) == [
        "between"]


def finished(db, subscription, tenant, n):
    """n more that were delivered; the oldest one's event is of a type of its own."""
    db.execute("INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, asset, fingerprint)"
               " SELECT %s, 1, 'many-' || n, CASE n WHEN 1 THEN 'once' ELSE 't' END, 'a', ''"
               " FROM generate_series(1, %s) n", (tenant, n))
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, state)"
               " SELECT event_no + 1, event_no, %s, 'delivered' FROM postrider.event"
               " ORDER BY event_no", (subscription,))


def test_a_page_looks_at_so_many_and_says_where_to_go_on(viewer, steps, db):
    finished(db, steps.id, steps.tenant, 2 * LOOKED_AT + 500)
    seen, after = [], {}
    for _ in range(3):
        page = log(viewer, steps.id, type="once", **after).expect(200)
        seen.append((events(page["deliveries"]), page["next_after"] is not None))
        after = {"after": page["next_after"]}
    assert seen == [([], True), ([], True), (["many-1"], False)]
    assert events(listed(viewer, steps.id, type="once")) == ["many-1"]
    assert len(listed(viewer, steps.id, limit=200)) == 2 * LOOKED_AT + 500
    assert listed(viewer, steps.id, state="cancelled") == []


SENSELESS = {
    "colour=red": "the query may have after, limit, state, type, asset, event, since and until",
    "state=dead&state=dead": "each once",
    "state=": "state: want pending, delivering, retrying, delivered, dead or cancelled",
    "state=gone": "state: want pending",
    "limit=0": "limit: want a number from 1 to 200",
    "limit=201": "limit: want a number",
    "after=x": "after: want a number",
    "since=yesterday": "since: want a time",
    "until=2026-01-01": "until: want a time",
    "event=a%20b": "event: there can be no such value",
    "type=caf%c3%a9": "type: there can be no such value",
    "type": "type: a value is missing",
    "asset=%ff": "asset: want UTF-8",
    "asset=%c3": "asset: want UTF-8",
    "asset=a%00": "asset: there can be no such value",
    "asset=%1b%5b2J": "asset: there can be no such value",
    "asset=" + "x" * 257: "asset: too long",
}


def test_a_query_that_makes_no_sense_is_refused(api, endpoint):
    made = api.subscribe(endpoint.url)["id"]
    for query, why in SENSELESS.items():
        problem = api.get(f"/v1/subscriptions/{made}/deliveries?{query}").expect(400)
        assert why in problem["detail"], query


def test_there_is_no_log_of_no_subscription(api):
    for asked in ("7777777", "x", "-1", "9" * 30):
        assert "no such subscription" in log(api, asked).expect(404)["detail"], asked


def test_a_deleted_subscription_has_no_log(api, endpoint):
    made = api.subscribe(endpoint.url)["id"]
    api.event({})
    assert len(listed(api, made)) == 1
    api.delete(f"/v1/subscriptions/{made}").expect(204)
    log(api, made).expect(404)


def test_the_command_lists_the_same(cli, api, dispatch, db, endpoint):
    endpoint.script(400, 200)
    made = api.subscribe(endpoint.url)["id"]
    for asset in ("b", "pump 17", "c"):
        api.event({"payload": "tell-nobody"}, asset=asset)
    until(lambda: db.value("SELECT count(*) FROM postrider.delivery WHERE state = 'pending'") == 0,
          "all are over")
    shown = listed(api, made)
    found = cli.json("deliveries", made)
    assert [{**each, "accepted_at": None, "finished_at": None} for each in found] == [
        {**{name: value for name, value in each.items()
            if name not in ("subscription_id", "replayed")},
         "accepted_at": None, "finished_at": None} for each in shown]
    assert [each["accepted_at"][:19] for each in found] == [
        each["accepted_at"][:19] for each in shown]
    for query in ({"state": "dead"}, {"asset": "pump 17"}, {"type": "test.made"},
                  {"event": shown[1]["event_id"]}, {"since": shown[1]["accepted_at"]},
                  {"until": shown[1]["accepted_at"]}):
        options = [word for name, value in query.items() for word in (f"--{name}", value)]
        assert events(cli.json("deliveries", made, *options)) == events(listed(api, made, **query))
    assert len(cli.json("deliveries", made, "--limit", "2")) == 2
    table = cli("deliveries", made).splitlines()
    assert table[0].split()[:5] == ["id", "event_id", "type", "asset", "state"]
    assert len(table) == 4 and "tell-nobody" not in "".join(table)


def test_the_command_goes_through_all_pages(cli, viewer, steps, db):
    finished(db, steps.id, steps.tenant, LOOKED_AT + 500)
    assert events(cli.json("deliveries", str(steps.id), "--type", "once")) == ["many-1"]
    assert len(cli.json("deliveries", str(steps.id), "--limit", "1200")) == 1200


def test_the_command_says_what_is_wrong(cli):
    for args, status, why in (
            (("1", "--state", "gone"), 2, "state: want pending"),
            (("1", "--limit", "0"), 2, "--limit is a number from 1 to 1000000"),
            (("1", "--since", "now"), 2, "a time is written as"), (("x",), 2, "an id is a number"),
            (("1",), 1, "there is no such subscription")):
        done = cli.run("deliveries", *args)
        assert (done.returncode, done.stdout) == (status, "") and why in done.stderr
    assert json.loads(cli("tenant", "list", "--json")) == []
