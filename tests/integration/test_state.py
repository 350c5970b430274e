"""The state, dead letters by reason: what psql says, at a cost that does not grow with what is kept."""

import datetime
import os

import pytest
from bench.dispatcher import ROOT, settings

from .replaying import Queue
from .wait import dawdle, until

FAST = {"retry_base_ms": 10}
MANY = int(os.environ.get("POSTRIDER_TEST_ROWS", "50000"))
HOUR_MS = 3_600_000
TAKEN = "status BETWEEN 200 AND 299"
BIN = 1.43  # how far a bin of a histogram reaches, and rounding


@pytest.fixture
def operator(ingest, cli):
    return ingest.api(cli.json("key", "create", "--role", "operator")["key"])


@pytest.fixture
def stranger(ingest, cli):
    cli("tenant", "create", "globex")
    return ingest.api(cli.json("key", "create", "--tenant", "globex", "--role", "admin")["key"])


def state(api, query=""):
    return api.get(f"/v1/state{query}").expect(200)


def totals(answer):
    return {name: answer[name] for name in ("waiting", "due", "later", "held", "in_flight", "dead")}


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def test_an_idle_tenant_has_nothing(api, db):
    answer = state(api)
    assert set(totals(answer).values()) == {0}
    assert (answer["tenant"], answer["subscriptions"], answer["endpoints"]) == ("acme", 0, [])
    assert (answer["oldest_accepted_at"], answer["oldest_waiting_seconds"]) == (None, None)
    assert answer["more"] is False
    recent = answer["recent"]
    assert (recent["delivered"], recent["per_second"], recent["success"]) == (0, 0, None)
    assert recent["from"] < recent["until"] <= answer["at"] or recent["until"] > answer["at"]


def slowly(handler, _):
    """Beside this it does not matter that a delivery is counted a moment after it is over."""
    dawdle(0.2)
    handler.send_response(200)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_it_says_what_waits_and_why(api, make_dispatch, db, endpoint, make_endpoint):
    """Paused, retried and held, beside one that goes well: as psql says it."""
    fine, bad, held, paused = (make_endpoint() for _ in range(4))
    fine.script(slowly)
    bad.script(500)
    held.script(404)
    ids = {
        "fine": api.subscribe(fine.url)["id"],
        "bad": api.subscribe(bad.url, retry_base_ms=HOUR_MS, retry_cap_ms=HOUR_MS)["id"],
        "held": api.subscribe(held.url, on_dead="hold")["id"],
        "paused": api.subscribe(paused.url)["id"],
    }
    api.post(f"/v1/subscriptions/{ids['paused']}/pause").expect(200)
    first = api.event({"n": 1}, asset="a")
    make_dispatch()
    until(lambda: totals(state(api)) == {
        "waiting": 2, "due": 1, "later": 1, "held": 1, "in_flight": 0, "dead": 1}, "it settles")
    api.event({"n": 2}, asset="a")
    until(lambda: totals(state(api)) == {
        "waiting": 5, "due": 1, "later": 1, "held": 1, "in_flight": 0, "dead": 1}, "and again")
    answer = state(api)
    assert answer["oldest_accepted_at"] == first["accepted_at"]
    waited = (when(answer["at"]) - when(first["accepted_at"])).total_seconds()
    assert abs(answer["oldest_waiting_seconds"] - waited) < 0.01
    endpoints = {e["subscription_id"]: e for e in answer["endpoints"]}
    assert [e["subscription_id"] for e in answer["endpoints"]] == [
        ids["held"], ids["bad"], ids["paused"], ids["fine"]]
    assert {name: endpoints[ids[name]]["why"] for name in ids} == {
        "fine": None, "bad": "retry", "held": "held", "paused": "paused"}
    assert endpoints[ids["held"]]["dead"] == 1
    assert endpoints[ids["held"]]["last_error"] == "HTTP status 404"
    assert endpoints[ids["bad"]]["last_error"] == "HTTP status 500"
    assert endpoints[ids["bad"]]["failures"] == 1 and endpoints[ids["bad"]]["until"]
    assert as_psql_says(db) == {e["subscription_id"]: shown(e) for e in answer["endpoints"]}
    until(lambda: state(api)["recent"]["delivered"] == 2, "what was delivered is counted",
          seconds=20)
    answer = state(api)
    recent = answer["recent"]
    assert (recent["failed"], recent["dead"], recent["success"]) == (2, 1, 0.5)
    assert recent["attempt_ms"]["p50"] > 0 and recent["delivery_ms"]["p99"] > 0
    assert 0 < recent["per_second"] <= 2 / 60
    assert recent["success"] == db.value(f"SELECT (count(*) FILTER (WHERE {TAKEN}))::float"
                                         " / count(*) FROM postrider.attempt")
    for name, times in (("attempt_ms", "SELECT duration_us / 1000.0 AS ms FROM postrider.attempt"),
                        ("delivery_ms", "SELECT 1000 * extract(epoch FROM d.finished_at"
                         " - d.accepted_at) AS ms FROM postrider.attempt a JOIN"
                         f" postrider.deliveries d ON d.id = a.delivery_id WHERE a.{TAKEN}")):
        for part in 50, 95, 99:
            true = db.value(f"SELECT percentile_disc({part / 100}) WITHIN GROUP (ORDER BY ms)::float"
                            f" FROM ({times}) t")
            most = BIN if name == "attempt_ms" else BIN * BIN
            assert 1 / BIN <= recent[name][f"p{part}"] / true <= most, (name, part, true)
    hours = {e["subscription_id"]: e["last_hour"] for e in answer["endpoints"]}
    assert hours[ids["fine"]] == {"delivered": 2, "failed": 0, "dead": 0, "success": 1}
    assert hours[ids["held"]] == {"delivered": 0, "failed": 1, "dead": 1, "success": 0}
    assert hours[ids["paused"]] == {"delivered": 0, "failed": 0, "dead": 0, "success": None}


HEALTH = ("circuit", "failures", "in_flight", "in_flight_limit", "later", "dead", "last_error",
          "slowed_to")
WAITS = ("why", "until", "due", "held", "first_due_at", "oldest_accepted_at")


def shown(endpoint):
    values = {name: endpoint[name] for name in (*HEALTH, *WAITS)}
    for name in "until", "first_due_at", "oldest_accepted_at":
        values[name] = when(values[name])
    return values


def as_psql_says(db):
    """The views endpoint_health and backlog, by subscription."""
    found = {}
    for subscription, *values in db.rows(
            f"SELECT h.subscription_id, {', '.join('h.' + name for name in HEALTH)}, b.why,"
            " b.until, coalesce(b.due, 0), coalesce(b.held, 0), b.first_due_at,"
            " b.oldest_accepted_at FROM postrider.endpoint_health h LEFT JOIN postrider.backlog b"
            " USING (subscription_id)"):
        found[str(subscription)] = dict(zip((*HEALTH, *WAITS), values))
    return found


def test_those_in_trouble_come_first_and_the_rest_is_told(api, db, endpoint):
    ids = [api.subscribe(endpoint.url)["id"] for _ in range(6)]
    for id, turn in ((ids[4], "circuit = 'open', failures = 20"), (ids[2], "failures = 3"),
                     (ids[3], "failures = 7"), (ids[1], "rest = 'rate', entered_at = NULL")):
        db.execute(f"UPDATE postrider.turn SET {turn} WHERE subscription_id = %s", (int(id),))
    answer = state(api, "?limit=4")
    assert [e["subscription_id"] for e in answer["endpoints"]] == [ids[4], ids[3], ids[2], ids[1]]
    assert answer["more"] is True and answer["subscriptions"] == 6
    assert state(api, "?limit=6")["more"] is False


def test_a_tenant_sees_its_own_and_an_operator_all(api, stranger, operator, endpoint):
    mine, theirs = api.subscribe(endpoint.url)["id"], stranger.subscribe(endpoint.url)["id"]
    api.event({}, asset="a")
    for n in range(2):
        stranger.event({}, asset=f"b{n}")

    def seen(who, query=""):
        answer = state(who, query)
        return (answer["tenant"], answer["due"], {e["subscription_id"] for e in
                                                  answer["endpoints"]})

    assert seen(api) == ("acme", 1, {mine})
    assert seen(stranger) == ("globex", 2, {theirs})
    assert seen(operator) == (None, 3, {mine, theirs})
    assert seen(operator, "?tenant=globex") == ("globex", 2, {theirs})
    operator.get("/v1/state?tenant=nobody").expect(404)
    api.get("/v1/state?tenant=globex").expect(400)
    for query in "?limit=0", "?limit=101", "?x=1", "?limit=1&limit=2":
        api.get(f"/v1/state{query}").expect(400)


def test_a_deleted_subscription_is_not_shown(api, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({}, asset="a")
    api.delete(f"/v1/subscriptions/{made['id']}")
    answer = state(api)
    assert (answer["subscriptions"], answer["waiting"], answer["endpoints"]) == (0, 0, [])


# -- dead letters --

def groups(api, query=""):
    answer = api.get(f"/v1/dead-letters{query}").expect(200)
    return [(g["subscription_id"], g["reason"], g["count"]) for g in answer["groups"]]


def test_dead_letters_are_grouped_by_subscription_and_reason(
        api, stranger, dispatch, db, endpoint, make_endpoint):
    endpoint.script(404, 404, 400)
    other = make_endpoint()
    other.script(302)
    first, second = api.subscribe(endpoint.url)["id"], api.subscribe(other.url)["id"]
    for _ in range(3):
        api.event({}, asset="a")
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letter") == 6, "all are dead")
    redirected = db.value("SELECT reason FROM postrider.dead_letters WHERE status = 302 LIMIT 1")
    assert groups(api) == [(second, redirected, 3), (first, "HTTP status 404", 2),
                           (first, "HTTP status 400", 1)]
    assert sorted(db.rows("SELECT subscription_id::text, reason, count(*) FROM"
                          " postrider.dead_letters GROUP BY 1, 2")) == sorted(groups(api))
    assert groups(api, f"?subscription={first}") == [(first, "HTTP status 404", 2),
                                                     (first, "HTTP status 400", 1)]
    assert groups(api, "?reason=HTTP%20status%20404") == [(first, "HTTP status 404", 2)]
    answer = api.get(f"/v1/dead-letters?subscription={first}").expect(200)
    assert (answer["examined"], answer["is_complete"]) == (3, True)
    group = answer["groups"][0]
    assert db.rows("SELECT min(died_at), max(died_at), max(delivery_id) FROM"
                   " postrider.dead_letters WHERE status = 404") == [
        (when(group["oldest_died_at"]), when(group["newest_died_at"]),
         int(group["newest_delivery_id"]))]
    assert group["url"] == endpoint.url
    # Another tenant's are none of its business.
    assert groups(stranger) == []
    theirs = stranger.get(f"/v1/dead-letters?subscription={first}")
    nobody = stranger.get("/v1/dead-letters?subscription=987654")
    assert (theirs.status, theirs.body) == (nobody.status, nobody.body) == (404, theirs.body)
    for query in "?subscription=x", "?why=x", "?reason=%ff":
        api.get(f"/v1/dead-letters{query}").expect(400)


def test_more_dead_letters_than_are_looked_at_are_admitted(api, db, endpoint):
    made = int(api.subscribe(endpoint.url)["id"])
    bury(db, made, 1500)
    answer = api.get("/v1/dead-letters").expect(200)
    assert (answer["examined"], answer["is_complete"]) == (1000, False)
    answer = api.get(f"/v1/dead-letters?subscription={made}").expect(200)
    assert (answer["examined"], answer["is_complete"]) == (1500, True)
    assert sum(g["count"] for g in answer["groups"]) == 1500


def bury(db, subscription, n, first=10 ** 12):
    db.execute("INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)"
               " SELECT %s + g, %s, 'HTTP status ' || 400 + g %% 2 FROM generate_series(1, %s) g",
               (first, subscription, n))


# -- what it costs --

STATEMENTS = ("state_totals", "state_recent", "state_endpoints", "status_totals",
              "dead_letter_groups", "asset_lanes")


class Explainer:
    """Runs statements under EXPLAIN, as the programs plan them."""

    def __init__(self, connection):
        self.connection = connection
        for name, value in settings():
            connection.execute(f"SET {name} = {value}")
        for name in STATEMENTS:
            connection.execute(
                f"PREPARE {name} AS {(ROOT / 'sql' / f'{name}.sql').read_text()}")
        self.measure(1, 1)

    def call(self, name, *literals):
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}"
            f" ({', '.join(map(str, literals))})").fetchone()[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    def measure(self, tenant, subscription):
        return {
            "totals": self.call("state_totals", tenant, "NULL", 200),
            "all": self.call("state_totals", "NULL", "NULL", 200),
            "recent": self.call("state_recent", tenant, "NULL"),
            "for operators": self.call("status_totals", 200),
            "endpoints": self.call("state_endpoints", tenant, "NULL", 20),
            "all endpoints": self.call("state_endpoints", "NULL", "NULL", 20),
            "dead letters": self.call("dead_letter_groups", tenant, "NULL", "NULL", 100, 200, 50),
            "dead letters of one": self.call("dead_letter_groups", tenant, subscription, "NULL",
                                             200, 200, 50),
            "asset": self.call("asset_lanes", tenant, "'a'", "NULL", 100, 20, 5),
            "asset of one": self.call("asset_lanes", tenant, "'a'", subscription, 100, 20, 5),
        }


def fill(db, queue, n):
    """Of the subscription: n assets due, waiting, in flight and held; a lane with n behind its
    head and n before it; n delivered; n dead letters; n attempts at the newest."""
    first = db.value("SELECT nextval('postrider.position')")
    for k, (columns, values) in enumerate((
            ("due_at", "now() - g * interval '1 ms'"), ("due_at", "now() + g * interval '1 h'"),
            ("look_at, leased_at, lease_until, lease_token, lease_worker",
             "now(), now(), now(), gen_random_uuid(), 'w'"), ("asset", "'h' || g"))):
        of = "asset, " if "asset" not in columns else ""
        asset = f"'{k}-' || g, " if of else ""
        some = min(n, 3000) if "leased_at" in columns else n  # in flight there is a limit
        db.execute(
            f"INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id, head_event_no,"
            f" {of}{columns}) SELECT {first} + {k} * {n} + g, {queue.id}, {first} + {k} * {n} + g,"
            f" {first} + {k} * {n} + g, {first} + g, {asset}{values} FROM generate_series(1, {some}) g")
    lane = db.value("SELECT id FROM postrider.lane WHERE asset = 'a'")
    head = db.value("SELECT head_id FROM postrider.lane WHERE asset = 'a'")
    db.execute(f"INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type, asset,"
               f" fingerprint) SELECT {first} + g, {queue.tenant}, 1, g::text, 't', 'a', '\\x00'"
               f" FROM generate_series(1, {n}) g")
    db.execute(f"INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state)"
               f" SELECT {head} + s * g, {first} + g + s * 100000000, {queue.id}, {lane}, CASE s"
               f" WHEN 1 THEN 'pending' ELSE 'delivered' END"
               f" FROM generate_series(1, {n}) g, (VALUES (1), (-1)) v (s)")
    db.execute(f"UPDATE postrider.lane SET tail_id = head_id + {n} WHERE id = {lane}")
    db.execute("INSERT INTO postrider.other_attempt"
               " (delivery_id, generation, attempt, ended, worker)"
               f" SELECT {head}, 1, g, 'answered', 'w' FROM generate_series(1, {n}) g")
    db.execute("INSERT INTO postrider.history_count SELECT g / 100 + 100, 60,"
               " date_trunc('minute', now()) - g % 100 * interval '1 minute', 1, 1, 0, 0, '{1}',"
               f" '{{1}}' FROM generate_series(1, {n}) g")
    bury(db, queue.id, n)


def costs(cluster, template, n):
    db = cluster.create(template)
    explainers = []
    try:
        def measure(queue, when, one):
            for key, pages in one.measure(queue.tenant, queue.id).items():
                found[when, key] = pages

        for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                              " WHERE schemaname = 'postrider'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        explainers.append(Explainer(cluster.connect(db.name)))
        found = {}
        queue = Queue(db)
        db.value("SELECT setval('postrider.position', 1000000000)")
        queue.accept("e", "a")
        fill(db, queue, n)
        measure(queue, "planned on empty tables", explainers[0])
        explainers.append(Explainer(cluster.connect(db.name)))
        measure(queue, "loaded", explainers[1])
        db.execute("ANALYZE")
        explainers.append(Explainer(cluster.connect(db.name)))
        measure(queue, "analyzed", explainers[2])
        return found
    finally:
        for one in explainers:
            one.connection.close()
        db.drop()


def test_what_it_reads_does_not_grow(cluster, template):
    small, big = costs(cluster, template, 3000), costs(cluster, template, MANY)
    print({key: (small[key], big[key]) for key in small})
    grown = {key: (small[key], big[key]) for key in small if big[key] > 1.5 * small[key] + 100}
    assert grown == {}
