"""A subscription's filter: what it may say, whom it keeps out, and what it may cost."""

import json
import random
import threading

import pytest

from .wait import until

PRESSURE = "$.data.pressure > 10"


@pytest.fixture
def subscribe(api):
    """Make a subscription with this filter: its answer."""
    def make(filter, url="http://127.0.0.1:9/", **fields):
        return api.subscribe(url, filter=filter, **fields)
    return make


def path(made):
    return f"/v1/subscriptions/{made['id']}"


def got(db, made):
    """The ids of the events of its deliveries, in their order."""
    return [row[0] for row in db.rows(
        "SELECT event_id FROM postrider.deliveries WHERE subscription_id = %s ORDER BY id",
        (int(made["id"]),))]


# -- what it keeps out --

def test_only_what_matches_makes_a_delivery(api, db, subscribe):
    high, all_of_them = subscribe(PRESSURE), subscribe(None)
    assert (high["filter"], all_of_them["filter"]) == (PRESSURE, None)
    answers = [api.event({"pressure": pressure}, id=f"p{n}")["deliveries"]
               for n, pressure in enumerate((5, 15, "15", None, 10.5))]
    assert answers == [1, 2, 1, 1, 2]
    assert got(db, high) == ["p1", "p4"]
    assert got(db, all_of_them) == ["p0", "p1", "p2", "p3", "p4"]
    shown = api.get("/v1/events/p0").expect(200)
    assert (shown["fan_out"], len(shown["deliveries"])) == (1, 1)
    # The same again says what it said at first.
    again = api.post("/v1/events", {"id": "p0", "type": "test.made", "data": {"pressure": 5}})
    assert again.expect(200)["deliveries"] == 1


SAYINGS = (
    ("$.data == 1", 1, True),
    ("$.type == \"test.made\"", {}, True),
    ("$.asset starts with \"pump-\"", {}, True),
    ("$.data.a.b[1].c == true", {"a": {"b": [0, {"c": True}]}}, True),
    ("$.data.items.price >= 5", {"items": [{"price": 1}, {"price": 7}]}, True),
    ("strict $.data.items.price >= 5", {"items": [{"price": 7}]}, False),
    ("exists($.data.items[*] ? (@.unit == \"bar\" && @.value >= 2.5))",
     {"items": [{"unit": "bar", "value": 2}, {"unit": "K", "value": 300}]}, False),
    ("exists($.data.items[*] ? (@.unit == \"bar\" && @.value >= 2.5))",
     {"items": [{"unit": "bar", "value": 2.5}]}, True),
    ("!exists($.data.gone)", {}, True),
    ("!($.data.gone == 1)", {}, True),
    ("($.data.n == 1 || $.data.text == \"ä\") && $.data.n < 3", {"n": 2, "text": "ä"}, True),
    ("$.data.n == 1 || $.data.text == \"ä\" && $.data.n < 3", {"n": 1, "text": ""}, True),
    ("$.data.n > \"1\"", {"n": 2}, False),
    ("$.data.n.double() > 1", {"n": "2"}, True),
    ("$.data.n.double() > 1", {"n": "two"}, False),
    ("$.data.size() == 2", [1, 2], True),
)


def test_a_filter_says_what_sql_json_says(api, subscribe):
    made = subscribe(PRESSURE)
    for filter, data, matches in SAYINGS:
        api.patch(path(made), {"filter": filter}).expect(200)
        assert api.event(data, asset="pump-17")["deliveries"] == int(matches), filter


def test_types_are_asked_first_and_named_subscriptions_nothing(api, db, subscribe):
    made = subscribe(PRESSURE, event_types=["pump.*"])
    high, low = {"pressure": 11}, {"pressure": 9}
    assert api.event(high, type="pump.a")["deliveries"] == 1
    assert api.event(high, type="valve.a")["deliveries"] == 0
    assert api.event(low, type="valve.a", subscriptions=[made["id"]])["deliveries"] == 1
    assert db.value("SELECT count(*) FROM postrider.lane") == 2


def test_in_a_batch_each_event_is_judged_for_itself(api, db, subscribe):
    high, low = subscribe(PRESSURE), subscribe("$.data.pressure <= 10")
    lines = "".join(json.dumps({"type": "t", "id": f"e{n:03}", "asset": f"a{n % 7}",
                                "data": {"pressure": n % 20}}) + "\n" for n in range(300))
    api.post("/v1/events/batch", lines.encode(),
             headers={"Content-Type": "application/x-ndjson"}).expect(202)
    assert sorted(got(db, high)) == [f"e{n:03}" for n in range(300) if n % 20 > 10]
    assert sorted(got(db, low)) == [f"e{n:03}" for n in range(300) if n % 20 <= 10]
    assert db.value("SELECT sum(fan_out) FROM postrider.event") == 300


def test_many_at_once_are_judged_together(api, db, subscribe):
    high, low = subscribe(PRESSURE), subscribe("!($.data.pressure > 10)")
    threads = [threading.Thread(target=api.event, args=({"pressure": n},),
                                kwargs={"id": f"e{n}"}) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got(db, high)) == sorted(f"e{n}" for n in range(11, 30))
    assert sorted(got(db, low)) == sorted(f"e{n}" for n in range(11))


def test_what_is_no_jsonb_is_delivered(api, subscribe):
    """No filter can judge it, and a delivery too many is better than one too few."""
    subscribe(PRESSURE)
    for data in (b'{"pressure": 5, "text": "\\u0000"}', b'{"pressure": 5, "far": 1e400000}'):
        answer = api.post("/v1/events", b'{"type": "t", "data": ' + data + b"}").expect(202)
        assert answer["deliveries"] == 1, data


def test_it_is_sent_byte_for_byte_all_the_same(api, dispatch, endpoint, subscribe):
    subscribe("$.data.n > 10", url=endpoint.url)
    data = b'{"n" :  12.50,"m":1.0e2, "a":"\\u0041", "a":"twice"}'
    api.post("/v1/events", b'{"type": "t", "data": ' + data + b"}").expect(202)
    until(lambda: endpoint.requests, "it is sent")
    assert endpoint.requests[0].body.endswith(b'"data":' + data + b"}")


# -- how it is changed and shown --

def test_a_filter_is_changed_taken_back_and_shown(api, cli, db, tenant, subscribe):
    made = subscribe(PRESSURE)
    low = {"pressure": 1}
    assert api.event(low)["deliveries"] == 0
    changed = api.patch(path(made), {"filter": "$.data.pressure < 5"})
    assert changed.expect(200)["filter"] == "$.data.pressure < 5"
    assert api.event(low)["deliveries"] == 1
    same = api.patch(path(made), {"filter": "$.data.pressure < 5"})
    assert same.headers["ETag"] == changed.headers["ETag"]
    kept = api.patch(path(made), {"max_attempts": 3}).expect(200)
    assert kept["filter"] == "$.data.pressure < 5"
    assert [one["filter"] for one in cli.json("subscription", "list", "--tenant", tenant)] == [
        "$.data.pressure < 5"]
    assert api.patch(path(made), {"filter": None}).expect(200)["filter"] is None
    assert api.event({"pressure": 11})["deliveries"] == 1
    assert api.get("/v1/subscriptions").expect(200)["subscriptions"][0]["filter"] is None
    assert db.rows("SELECT detail->>'filter', detail->'before'->'filter', detail->'after'"
                   " FROM postrider.audit WHERE action LIKE 'subscription.%%' ORDER BY id") == [
        (PRESSURE, None, None),
        (None, PRESSURE, {"filter": "$.data.pressure < 5"}),
        (None, None, {"max_attempts": 3}),
        (None, "$.data.pressure < 5", {"filter": None})]


def test_a_replay_asks_it_too(api, db, dispatch, endpoint, subscribe):
    made = subscribe(PRESSURE, url=endpoint.url)
    api.post(path(made) + "/disable").expect(200)
    for n in range(20):
        api.event({"pressure": n}, id=f"e{n}")
    api.event({"pressure": 1}, id="named", subscriptions=[made["id"]])
    api.post("/v1/events", b'{"id": "odd", "type": "t", "data": "\\u0000"}').expect(202)
    api.post(path(made) + "/enable").expect(200)
    job = api.post(path(made) + "/replay", {"since": "2020-01-01T00:00:00Z"}).expect(202)
    at = f"{path(made)}/replays/{job['id']}"
    until(lambda: api.get(at).expect(200)["state"] == "done", "the replay is done")
    done = api.get(at).expect(200)
    wanted = [f"e{n}" for n in range(11, 20)] + ["named", "odd"]
    assert (done["examined"], done["replayed"], done["refused"]) == (11, 11, 0)
    assert got(db, made) == wanted
    until(lambda: len(endpoint.requests) == 11, "all are sent")


# -- what it may say --

REFUSED = (
    ("$.data.a == $.data.b", "at octet 12: compare it with a constant"),
    ("exists($.data[*] ? (@ < $.data[*]))", "compare it with a constant"),
    ("$.** == 1", ".** is not taken"),
    ("$[0,0][0,0][0,0] == 1", "one index"),
    ("$.data like_regex \"(a*)*b\"", "like_regex is not taken"),
    ("$.data * $.data > 1", "arithmetic is not taken"),
    ("$.data ? (@ > 1)", "want a comparison"),
    ("$.data >", "want a string"),
    ("", "want a string"),
    ("$.data == \"" + "x" * 1024 + "\"", "1024"),
    (7, "must be a string"),
    ("$.data == 1\0", "control characters"),
)


def test_what_is_no_predicate_or_has_no_bound_is_refused(api, subscribe):
    made = subscribe(PRESSURE)
    for filter, why in REFUSED:
        for answer in (api.post("/v1/subscriptions", {"url": "http://127.0.0.1:9/",
                                                      "filter": filter}),
                       api.patch(path(made), {"filter": filter})):
            assert (answer.status, answer.json["pointer"]) == (422, "/filter"), filter
            assert why in answer.json["detail"]
    assert api.get(path(made)).expect(200)["filter"] == PRESSURE


class Grammar:
    """Filters by chance, as core/filter.h has them."""

    KEYS = ("a", "b_1", "_", "type", "size", "last", "to", "exists", "is", "true", "null",
            "strict", "with", "unknown", "flag", "like_regex", "datetime", "keyvalue", "Data")
    CHARACTERS = ("a", "ä", '\\"', "\\\\", "\\/", "\\n", "\\b", " ", "$", "@", "(", "*/", "☃")

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def space(self):
        return self.one("", "", " ", "  ", "\n", "\t")

    def string(self):
        return '"' + "".join(self.one(*self.CHARACTERS)
                             for _ in range(self.random.randint(0, 3))) + '"'

    def literal(self):
        number = self.one("", "-") + self.one("0", "12", "0.25", "1e3", "2E-3", "9" * 30, "1e999")
        return self.one(self.string(), number, "true", "false", "null")

    def step(self, depth):
        steps = [self.space() + "." + self.space() + self.one(*self.KEYS, self.string()), ".*",
                 self.space() + "[" + self.space() + "*" + self.space() + "]",
                 "[" + self.one("0", "3 ", "last", "last - 1", "last-2", "99999999999") + "]",
                 "." + self.one("abs", "ceiling", "double", "floor", "size", "type")
                 + self.space() + "()"]
        if depth > 0:
            steps.append(self.space() + "?" + self.space() + "(" + self.any(True, depth - 1) + ")")
        return self.one(*steps)

    def path(self, in_item, depth):
        return ("@" if in_item else "$") + "".join(
            self.step(depth) for _ in range(self.random.randint(0, 4)))

    def comparison(self, in_item, depth):
        sides = [self.path(in_item, depth), self.literal()]
        if self.random.random() < 0.3:
            sides.reverse()
        operator = self.one("==", "!=", "<>", "<", "<=", ">", ">=")
        return sides[0] + self.space() + operator + self.space() + sides[1]

    def test(self, in_item, depth):
        kind = self.random.randint(0, 6 if depth > 0 else 2)
        if kind <= 1:
            return self.comparison(in_item, depth)
        if kind == 2:
            return self.path(in_item, depth) + " starts with" + self.space() + self.string()
        if kind == 3:
            return self.one("", "!") + "exists" + self.space() + "(" + self.path(
                in_item, depth - 1) + ")"
        inner = "(" + self.any(in_item, depth - 1) + ")"
        return {4: inner, 5: "!" + self.space() + inner, 6: inner + " is unknown"}[kind]

    def any(self, in_item=False, depth=3):
        return "||".join("&&".join(self.test(in_item, depth)
                                   for _ in range(self.one(1, 1, 2, 3)))
                         for _ in range(self.one(1, 1, 2)))


def test_what_we_take_postgresql_takes(api, subscribe):
    made = subscribe(PRESSURE)
    grammar = Grammar(1)
    taken = 0
    while taken < 150:
        filter = grammar.one("", "", "lax ", "strict ") + grammar.any()
        if len(filter.encode()) > 1024:
            continue
        answer = api.patch(path(made), {"filter": filter})
        assert answer.status == 200, (filter, answer)
        assert answer.json["filter"] == filter
        taken += 1
    api.event({"a": [1, {"b_1": 2}]})


# -- what it may cost --

# As heavy as they come: each octet makes work for each value.
HEAVY = "exists($.data[*]?(" + "||".join(["@>1"] * 195) + "))"
ONES = b'{"type":"t","data":[' + b",".join([b"1"] * 30000) + b"]}"


def evaluated(db):
    """How often PostgreSQL has read a body for a filter."""
    db.execute("SELECT pg_stat_force_next_flush()")
    return db.value("SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions"
                    " WHERE funcname = 'event_payload'")


@pytest.fixture
def counted(db):
    db.execute(f"ALTER DATABASE {db.name} SET track_functions = 'all'")
    return db


def test_what_would_be_too_much_work_is_not_judged_and_delivered(counted, api, subscribe):
    """10 seconds are what a transaction may take; neighbours must not wait for that."""
    subscribe(HEAVY)
    small = b'{"type":"t","data":[' + b",".join([b"1"] * 500) + b"]}"
    assert api.post("/v1/events", small).expect(202)["deliveries"] == 0
    assert api.post("/v1/events", ONES).expect(202)["deliveries"] == 1


def test_many_heavy_filters_are_no_heavier_than_one(api, db, subscribe):
    made = [subscribe(HEAVY) for _ in range(30)]
    body = b'{"id":"e","type":"t","data":[' + b",".join([b"1"] * 500) + b"]}"
    weight = db.value("SELECT filter_weight FROM postrider.subscription LIMIT 1")
    values = db.value("SELECT postrider.event_values(%s)", (
        body.replace(b'"type":"t"', b'"type":"t","timestamp":"2026-01-01T00:00:00.000Z"'),))
    judged = 2097152 // (weight * values)
    assert 0 < judged < 30
    assert api.post("/v1/events", body).expect(202)["deliveries"] == 30 - judged
    # The first are asked; which they are does not change from event to event.
    assert got(db, made[0]) == got(db, made[judged - 1]) == []
    assert got(db, made[judged]) == got(db, made[-1]) == ["e"]


def test_the_heaviest_that_is_judged_ends_soon(db, cluster):
    """By the work that PostgreSQL does for it, not by the clock of a busy machine."""
    with cluster.connect(db.name) as connection:
        pid = connection.execute("SELECT pg_backend_pid()").fetchone()[0]

        def spent():
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[0]) / 1e9

        weight = 13 + 10 * 195
        body = b'{"data":[' + b",".join([b"1"] * (2097152 // weight - 5)) + b"]}"
        before = spent()
        found = connection.execute(
            "SELECT postrider.event_payload(%s) @@ %s::text::jsonpath", (body, HEAVY)).fetchone()
        assert found == (False,)
        assert spent() - before < 1


def test_ingest_goes_on_beside_a_hostile_filter(api, ingest, cli, db, subscribe):
    """What no filter may be: one that keeps its tenant's, or all, events from being kept."""
    for _ in range(20):
        subscribe(HEAVY)
    cli("tenant", "create", "other")
    other = ingest.api(cli.json("key", "create", "--tenant", "other", "--role", "publisher")["key"])
    threads = [threading.Thread(target=api.post, args=("/v1/events", ONES)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for n in range(5):
        assert other.event(n)["deliveries"] == 0
    for thread in threads:
        thread.join()
    assert db.value("SELECT count(*) FROM postrider.event") == 15
    assert db.value("SELECT count(*) FROM postrider.delivery") == 200


def test_without_a_filter_nothing_is_read(counted, api, subscribe):
    subscribe(None)
    api.event({"pressure": 1})
    assert evaluated(counted) == 0
    subscribe(PRESSURE)
    subscribe("$.data.pressure < 3")
    assert api.event({"pressure": 1})["deliveries"] == 2
    # Once, however many filters ask.
    until(lambda: evaluated(counted) == 1, "it is counted")
