"""What people read in psql is true, names no secret, and costs a few look-ups.

Every query of sql/README.md runs here as postrider_reader, on 50,000 rows of a kind, or as many as
POSTRIDER_TEST_ROWS says: what it reads must not depend on it.
"""

import json
import os
import re
from decimal import Decimal

import psycopg
import pytest

from .statement import SQL, accept, claim, record, rest, settle

README = (SQL / "README.md").read_text()
VIEWS = ("assets", "backlog", "dead_letters", "deliveries", "endpoint_health", "stuck")
HOUR = 3_600_000_000  # microseconds
MANY = int(os.environ.get("POSTRIDER_TEST_ROWS", "50000"))
HOT_UPDATES = "SELECT pg_stat_get_xact_tuples_hot_updated('postrider.lane'::regclass)"


def questions():
    """{heading: its queries}, in the order of the page."""
    return {title: re.findall(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
            for title, text in re.findall(r"^### (.*?)\n(.*?)(?=^### |\Z)", README,
                                          re.DOTALL | re.MULTILINE)}


QUESTIONS = questions()
QUERIES = [pytest.param(query, id=f"{title} {n}") for title, queries in QUESTIONS.items()
           for n, query in enumerate(queries, 1)]


class Reader:
    """A person's psql: default settings, and the rights of postrider_reader."""

    def __init__(self, cluster, db):
        self.connection = cluster.connect(db.name)
        self.connection.execute("SET ROLE postrider_reader")

    def rows(self, query):
        """Each row as a dict."""
        cursor = self.connection.execute(query)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor.fetchall()]

    def row(self, query):
        """The only row, as a dict."""
        [row] = self.rows(query)
        return row

    def ask(self, title, n=1):
        """The rows that the nth query under a heading of the page finds."""
        return self.rows(QUESTIONS[title][n - 1])

    def buffers(self, query):
        """How many pages it touched."""
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}").fetchone()[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.fixture
def reader(cluster, db):
    person = Reader(cluster, db)
    yield person
    person.connection.close()


class Subscription:
    """One of tenant acme's, and its deliveries made step by step."""

    def __init__(self, db, **columns):
        self.db = db
        db.execute("INSERT INTO postrider.tenant (name) VALUES ('acme') ON CONFLICT DO NOTHING")
        names = ", ".join(["url", *columns])
        self.tenant = db.value("SELECT id FROM postrider.tenant WHERE name = 'acme'")
        self.id = db.value(
            f"INSERT INTO postrider.subscription (tenant_id, {names}) VALUES"
            f" ({self.tenant}, 'https://example.com/'{', %s' * len(columns)}) RETURNING id",
            list(columns.values()))
        db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id) VALUES (%s, %s)",
                   (self.id, self.tenant))

    def accept(self, event_id, asset="a"):
        """Accept an event; returns the delivery's id."""
        with self.db.connection.transaction():
            accept(self.db.connection, self.tenant, self.id, event_id, asset)
        return self.db.value("SELECT id FROM postrider.deliveries WHERE event_id = %s", (event_id,))

    def claim(self, limit=500):
        """A pass; returns {lane: token}."""
        with self.db.connection.transaction():
            leases = claim(self.db.connection, limit=limit)
            rest(self.db.connection, self.id)
        return leases

    def record(self, verdict, says, wait_us=HOUR, slows=None):
        """Claim all that is due, and record one outcome for each."""
        for lane, token in self.claim().items():
            with self.db.connection.transaction():
                record(self.db.connection, lane, token, verdict, wait_us)
                settle(self.db.connection, self.id, lane, says, slows, 0)
        with self.db.connection.transaction():
            rest(self.db.connection, self.id)

    def set(self, assignments):
        """Change all of its lanes."""
        self.db.execute(f"UPDATE postrider.lane SET {assignments} WHERE subscription_id = %s",
                        (self.id,))


@pytest.fixture
def subscription(db):
    return lambda **columns: Subscription(db, **columns)


def deliveries(reader):
    return [(row["event_id"], row["state"], row["why"]) for row in
            reader.rows("SELECT * FROM postrider.deliveries ORDER BY id")]


def test_what_can_be_sent_is_ready_and_what_stands_behind_waits_for_order(subscription, reader):
    s = subscription()
    first = s.accept("e1")
    s.accept("e2")
    assert deliveries(reader) == [("e1", "pending", "ready"), ("e2", "pending", "order")]
    assert reader.row("SELECT behind FROM postrider.deliveries WHERE event_id = 'e2'") == {
        "behind": first}
    asset = reader.row("SELECT * FROM postrider.assets")
    assert (asset["delivery_id"], asset["event_id"], asset["why"]) == (first, "e1", "ready")
    assert (asset["behind"], asset["replays"], asset["dead_reason"]) == (1, 0, None)
    waits = reader.row("SELECT * FROM postrider.backlog")
    assert (waits["why"], waits["until"], waits["due"], waits["later"]) == ("ready", None, 1, 0)
    assert waits["first_due_at"] and waits["oldest_accepted_at"] == asset["accepted_at"]
    assert reader.ask("Is anything stuck?") == []


def test_what_is_in_flight_names_its_worker(subscription, reader):
    s = subscription()
    s.accept("e1")
    s.claim()
    assert deliveries(reader) == [("e1", "delivering", "in flight")]
    [worker] = reader.ask("Who is in flight, and on which worker?")
    assert (worker["lease_worker"], worker["requests"]) == ("worker", 1)
    waits = reader.row("SELECT * FROM postrider.backlog")
    assert (waits["why"], waits["in_flight"], waits["due"]) == ("in flight", 1, 0)
    asset = reader.row("SELECT * FROM postrider.assets")
    assert asset["until"] == asset["lease_until"] == worker["first_ends"]


def test_what_is_over_waits_for_nothing(subscription, reader):
    s = subscription()
    s.accept("e1")
    s.record("delivered", 1)
    assert deliveries(reader) == [("e1", "delivered", None)]
    assert reader.rows("SELECT * FROM postrider.backlog") == []
    assert reader.rows("SELECT * FROM postrider.assets") == []
    health = reader.row("SELECT * FROM postrider.endpoint_health")
    assert (health["success"], health["failures"], health["last_error"]) == (1, 0, None)


def test_a_paused_subscription_says_so_and_is_not_stuck(subscription, reader):
    s = subscription(state="paused")
    s.accept("e1")
    s.set("due_at = now() - interval '1 hour'")
    s.claim()
    assert deliveries(reader) == [("e1", "pending", "paused")]
    assert [row["why"] for row in reader.ask("What waits, and why?", 2)] == ["paused"]
    assert reader.ask("Is anything stuck?") == []


def test_a_subscription_at_its_limit_says_so_and_is_not_stuck(subscription, reader):
    s = subscription(max_in_flight=1)
    s.accept("e1", "a")
    s.accept("e2", "b")
    s.set("due_at = now() - interval '1 hour'")
    s.claim()
    assert sorted(why for _, _, why in deliveries(reader)) == ["in flight", "limit"]
    [waits] = reader.ask("What waits, and why?", 2)
    assert (waits["why"], waits["in_flight"], waits["in_flight_limit"], waits["due"]) == (
        "limit", 1, 1, 1)
    assert reader.ask("Is anything stuck?") == []


def test_a_limit_that_nothing_in_flight_explains_is_stuck(subscription, reader):
    s = subscription(max_in_flight=1)
    s.accept("e1", "a")
    s.accept("e2", "b")
    s.claim()
    s.set("due_at = now() - interval '1 hour', leased_at = NULL, look_at = NULL,"
          " lease_until = NULL, lease_token = NULL, lease_worker = NULL")
    assert [row["why"] for row in reader.ask("Is anything stuck?")] == ["due for over a minute"]


def test_a_subscription_at_its_rate_says_until_when(db, subscription, reader):
    s = subscription(rate_per_second=0.01)
    s.accept("e1", "a")
    s.accept("e2", "b")
    s.claim()
    wake_at = db.value("SELECT wake_at FROM postrider.turn")
    [waits] = reader.ask("What waits, and why?", 2)
    assert (waits["why"], waits["until"], waits["rate_per_second"]) == ("rate", wake_at, 0.01)
    assert ("e2", "pending", "rate") in deliveries(reader)


def test_an_endpoint_that_asks_for_less_is_shown_and_is_not_stuck(db, subscription, reader):
    s = subscription(max_in_flight=10)
    for asset in "abcd":
        s.accept(f"e-{asset}", asset)
    s.record("retry", -1, slows=2 * HOUR)
    s.accept("e-e", "e")
    wake_at = db.value("SELECT wake_at FROM postrider.turn")
    assert {why for _, _, why in deliveries(reader)} == {"slowed"}
    assert {row["until"] for row in reader.rows("SELECT until FROM postrider.assets")} == {wake_at}
    [waits] = reader.ask("What waits, and why?", 2)
    assert (waits["why"], waits["until"], waits["in_flight_limit"]) == ("slowed", wake_at, 1)
    [asks] = reader.ask("Which endpoints ask for less?")
    assert (asks["slowed_to"], asks["slowed_until"], asks["in_flight_limit"]) == (1, wake_at, 1)
    assert reader.ask("Is anything stuck?") == []
    s.set("due_at = now() - interval '2 minutes'")
    assert reader.ask("Is anything stuck?") == []
    db.execute("UPDATE postrider.turn SET wake_at = now() - interval '2 minutes'")
    assert [row["count"] for row in reader.ask("Is anything stuck?")] == [5]


def test_a_lower_limit_is_the_one_that_is_shown(db, subscription, reader):
    s = subscription(max_in_flight=10)
    s.accept("e1")
    db.execute("UPDATE postrider.turn SET slowed_to = 3.9")
    assert reader.row("SELECT in_flight_limit FROM postrider.backlog")["in_flight_limit"] == 3
    [asks] = reader.ask("Which endpoints ask for less?")
    assert (asks["slowed_to"], asks["slowed_until"], asks["in_flight_limit"]) == (3, None, 3)
    db.execute("UPDATE postrider.turn SET circuit = 'open'")
    assert reader.row("SELECT in_flight_limit FROM postrider.backlog")["in_flight_limit"] == 1


def test_an_open_circuit_says_when_it_is_tried_and_what_the_error_was(db, subscription, reader):
    s = subscription(circuit_after=2, retry_base_ms=60000)
    for asset in ("a", "b"):
        s.accept(f"e-{asset}", asset)
    s.record("retry", -1)
    s.accept("e-c", "c")
    wake_at = db.value("SELECT wake_at FROM postrider.turn")
    [health] = reader.ask("Which endpoints fail, and with what?")
    assert (health["circuit"], health["probe_at"], health["failures"]) == ("open", wake_at, 2)
    assert (health["success"], health["last_error"]) == (0, "HTTP status 200")
    assert reader.ask("Which endpoints fail, and with what?", 2)[0]["later"] == 2
    assert {why for _, _, why in deliveries(reader)} == {"circuit"}
    [waits] = reader.ask("What waits, and why?", 2)
    assert (waits["why"], waits["until"], waits["due"], waits["later"]) == (
        "circuit", wake_at, 1, 2)
    db.execute("UPDATE postrider.turn SET wake_at = now() - interval '2 minutes'")
    s.set("due_at = now() - interval '2 minutes'")
    assert [row["count"] for row in reader.ask("Is anything stuck?")] == [3]


def test_what_is_retried_says_when(subscription, reader):
    s = subscription()
    s.accept("e1")
    s.record("retry", -1)
    s.accept("e2")
    assert deliveries(reader) == [("e1", "retrying", "retry"), ("e2", "pending", "order")]
    asset = reader.row("SELECT * FROM postrider.assets")
    assert (asset["state"], asset["attempts"], asset["until"]) == ("retrying", 1, asset["due_at"])
    [waits] = reader.ask("What waits, and why?", 2)
    assert (waits["why"], waits["until"], waits["later"]) == ("retry", asset["due_at"], 1)


def test_a_held_asset_names_the_dead_letter_that_holds_it(subscription, reader):
    s = subscription(on_dead="hold")
    dead = s.accept("e1")
    s.record("dead", 0)
    s.accept("e2")
    assert deliveries(reader) == [("e1", "dead", None), ("e2", "pending", "order")]
    asset = reader.row("SELECT * FROM postrider.assets")
    assert (asset["delivery_id"], asset["why"], asset["dead_reason"], asset["behind"]) == (
        dead, "held", "HTTP status 200", 1)
    [stuck] = reader.ask("Is anything stuck?")
    letter = reader.row("SELECT * FROM postrider.dead_letters")
    assert (stuck["why"], stuck["since"]) == ("held by a dead letter", letter["died_at"])
    [waits] = reader.ask("What waits, and why?", 2)
    assert (waits["why"], waits["held"]) == ("held", 1)
    [died] = reader.ask("What died in the last hour?")
    assert (died["reason"], died["count"]) == ("HTTP status 200", 1)


def test_a_lease_that_ran_out_is_stuck(subscription, reader):
    s = subscription()
    s.accept("e1")
    s.claim()
    s.set("look_at = now() - interval '1 minute'")
    assert reader.ask("Is anything stuck?") == []  # it was renewed since
    s.set("lease_until = now() - interval '1 minute'")
    assert [row["why"] for row in reader.ask("Is anything stuck?")] == ["its lease ran out"]


@pytest.mark.parametrize("turn", [
    "rest = NULL, entered_at = now(), wake_at = NULL",
    "rest = 'idle', entered_at = NULL, wake_at = NULL",
    "rest = 'idle', entered_at = NULL, wake_at = 'tomorrow'"])
def test_what_nobody_sends_is_stuck(db, subscription, reader, turn):
    s = subscription()
    for n in range(12):
        s.accept(f"e{n}", f"a{n}")
    db.execute(f"UPDATE postrider.turn SET {turn}")
    s.set("due_at = now() - interval '50 seconds'")
    assert reader.ask("Is anything stuck?") == []
    s.set("due_at = now() - interval '2 minutes'")
    [stuck] = reader.ask("Is anything stuck?")
    assert (stuck["why"], stuck["count"]) == ("due for over a minute", 10)
    assert stuck["for_example"] == s.id


def test_a_replay_that_waits_is_shown_with_what_it_is_behind(db, subscription, reader):
    s = subscription()
    dead = s.accept("e1")
    s.record("dead", 0)
    head = s.accept("e2")
    s.claim()
    db.execute("UPDATE postrider.delivery SET state = 'pending', generation = 2, attempts = 0,"
               " lane_id = (SELECT id FROM postrider.lane) WHERE id = %s", (dead,))
    db.execute("DELETE FROM postrider.dead_letter")
    db.execute("INSERT INTO postrider.replay SELECT id, %s FROM postrider.lane", (dead,))
    [replay] = reader.ask("Which replays wait, and how far is a background one?")
    assert (replay["id"], replay["generation"], replay["behind"]) == (dead, 2, head)
    assert reader.row("SELECT replays FROM postrider.assets") == {"replays": 1}


def test_a_head_that_gave_way_is_still_being_retried(db, subscription, reader):
    s = subscription()
    s.accept("e1")
    s.record("retry", -1)
    late = s.accept("e2")
    # As a replay of the first leaves them: the second was tried before it.
    db.execute("UPDATE postrider.delivery SET attempts = 2 WHERE id = %s", (late,))
    db.execute("UPDATE postrider.lane SET resume_id = %s", (late,))
    assert deliveries(reader)[1] == ("e2", "retrying", "order")
    assert reader.row("SELECT behind FROM postrider.assets") == {"behind": 1}


def test_a_deleted_delivery_leaves_its_asset_in_sight(db, subscription, reader):
    s = subscription()
    s.accept("e1")
    db.execute("DELETE FROM postrider.delivery")
    assert reader.row("SELECT state FROM postrider.assets") == {"state": "gone"}


def test_success_is_seen_behind_a_backlog(db, subscription, reader):
    s = subscription()
    over = [s.accept(f"over-{n}") for n in range(40)]
    db.execute("UPDATE postrider.delivery SET finished_at = now(),"
               " state = CASE WHEN id = ANY (%s) THEN 'dead' ELSE 'delivered' END", (over[:10],))
    db.execute("DELETE FROM postrider.lane")
    for n in range(60):
        s.accept(f"waiting-{n}")
    assert reader.row("SELECT success FROM postrider.endpoint_health")["success"] == Decimal("0.75")


def test_handing_a_lane_back_still_writes_no_index(db, subscription):
    s = subscription()
    for n in range(3):
        s.accept(f"e{n}")
    for lane, token in s.claim().items():
        with db.connection.transaction():
            before = db.value(HOT_UPDATES)
            record(db.connection, lane, token, "delivered")
            assert db.value(HOT_UPDATES) == before + 1


def test_no_view_has_a_column_for_a_secret_or_a_payload(db):
    columns = {name for name, in db.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'postrider'"
        "   AND table_name = ANY (%s)", (list(VIEWS),))}
    assert {"event_id", "why"} <= columns
    assert not {name for name in columns
                if re.search("body|seal|secret|nonce|hash|fingerprint|token|key|header|excerpt",
                             name)}


def test_the_reader_reads_what_the_page_names_and_nothing_below(reader):
    for table in ("lane", "delivery", "event", "turn", "subscription",
                  "subscription_secret", "api_key"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.rows(f"SELECT * FROM postrider.{table}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.rows("SELECT excerpt FROM postrider.attempt")
    reader.rows("SELECT attempt, reason, dns_us, receive_us FROM postrider.attempt")
    assert "`attempt`" in README
    for view in (*VIEWS, "replay", "replay_job", "cancelling", "retention_late"):
        assert f"`{view}`" in README
        assert reader.rows(f"SELECT * FROM postrider.{view}") == []
    assert len(reader.rows("SELECT what FROM postrider.retention")) == 2


def test_every_reason_to_wait_is_explained(db):
    written = " ".join(text for text, in db.rows(
        "SELECT pg_get_functiondef('postrider.why'::regproc)"))
    words = set(re.findall(r"(?:THEN|ELSE) '([a-z ]+)'::text", written)) | {
        "order", "paused", "disabled", "deleted", "limit", "rate", "slowed"}
    explained = set(re.findall(r"`([a-z ]+)`", README))
    assert len(words) == 12 and words - explained == set()


def test_the_doctor_misses_a_right_of_the_reader(db, cli):
    db.execute("REVOKE SELECT ON postrider.stuck, postrider.replay FROM postrider_reader")
    said = cli.run("doctor").stdout
    for relation in ("stuck", "replay"):
        assert f"`GRANT SELECT ON postrider.{relation} TO postrider_reader`" in said


@pytest.mark.parametrize("query", QUERIES)
def test_the_page_can_be_run_as_it_stands(subscription, reader, query):
    s = subscription(on_dead="hold")
    s.accept("order-4711-paid", "pump-17")
    s.record("retry", -1)
    s.accept("order-4712-paid", "pump-17")
    reader.rows(query)


def test_the_page_finds_its_own_examples(db, subscription, reader):
    s = subscription()
    s.accept("order-4711-paid", "pump-17")
    s.record("retry", -1)
    assert reader.ask("Where is this event?")[0]["why"] == "retry"
    assert reader.ask("Where is this asset, and what is it waiting for?")[0]["why"] == "retry"
    assert len(reader.ask("Where is this asset, and what is it waiting for?", 2)) == s.id
    [oldest] = reader.ask("How old is the oldest waiting event?", 2)
    assert oldest["why"] == "retry"
    db.execute("UPDATE postrider.other_attempt SET delivery_id = 1000")
    assert [row["attempt"] for row in reader.ask("What happened to this delivery?")] == [1]
    assert all(row["age"] for row in reader.ask("What is retention doing?"))


def test_a_try_says_what_it_is_wherever_it_is_kept(db):
    meanings = ("SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute a"
                " WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped"
                " ORDER BY 1")
    shown, kept = (db.rows(meanings, (f"postrider.{name}",)) for name in (
        "attempt", "other_attempt"))
    assert shown == kept
    assert dict(shown)["connect_us"] == "NULL, as tls_us, on a connection that was used again"


# -- What it costs --

def fill(db, n):
    """Subscription 1: n that are over, a tenth of them dead.  2: n of one asset.  3: n assets.
    500 more with twenty assets each, every fourth of them to be retried tomorrow.  504: n assets,
    each held by a dead letter.  n replays wait for the asset of 2, n events for retention."""
    for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                          " WHERE schemaname = 'postrider'"):
        db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    for statement_text in FILL.split(";\n"):
        db.execute(statement_text.replace(":n", f"{n}::bigint"))


FILL = """
INSERT INTO postrider.tenant (name) VALUES ('acme');
INSERT INTO postrider.subscription (id, tenant_id, url)
SELECT s, t.id, 'https://example.com/' FROM generate_series(1, 504) s, postrider.tenant t;
INSERT INTO postrider.turn (subscription_id, tenant_id, rest, entered_at)
SELECT id, tenant_id, NULL, now() FROM postrider.subscription;
CREATE TEMPORARY TABLE made (id, subscription_id, lane_id, state, attempts) AS
SELECT g * 1000, 1, g * 1000, CASE g % 10 WHEN 0 THEN 'dead' ELSE 'delivered' END, 1
  FROM generate_series(1, :n) g
 UNION ALL
SELECT (:n + g) * 1000, 2, (:n + 1) * 1000, 'pending', 0 FROM generate_series(1, :n) g
 UNION ALL
SELECT (2 * :n + g) * 1000, 3, (2 * :n + g) * 1000, 'pending', 0 FROM generate_series(1, :n) g
 UNION ALL
SELECT (3 * :n + g) * 1000, 4 + g % 500, (3 * :n + g) * 1000, 'pending', (g % 4 = 0)::integer
  FROM generate_series(1, 10000) g
 UNION ALL
SELECT (3 * :n + 10000 + g) * 1000, 504, (3 * :n + 10000 + g) * 1000, 'dead', 1
  FROM generate_series(1, :n) g;
INSERT INTO postrider.event (event_no, tenant_id, accepted_at, fan_out, event_id, type, asset,
                             fingerprint, body)
SELECT m.id, t.id, now() - interval '1 hour', 1, 'e' || m.id, 't', 'a' || lane_id, '', ''
  FROM made m, postrider.tenant t ORDER BY m.id;
INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state, finished_at)
SELECT id, id, subscription_id, lane_id, state, CASE WHEN state <> 'pending' THEN now() END
  FROM made ORDER BY id;
INSERT INTO postrider.lane (id, subscription_id, asset, head_id, tail_id, head_event_no,
                            attempts, due_at)
SELECT lane_id, subscription_id, 'a' || lane_id, min(id), max(id), min(id), max(attempts),
       CASE WHEN subscription_id = 504 THEN NULL
            WHEN max(attempts) = 0 THEN now() - interval '1 hour'
            ELSE now() + interval '1 day' END
  FROM made WHERE state = 'pending' OR subscription_id = 504 GROUP BY lane_id, subscription_id ORDER BY lane_id;
INSERT INTO postrider.dead_letter (delivery_id, subscription_id, died_at, reason)
SELECT id, subscription_id, now() - CASE subscription_id
                                         WHEN 1 THEN (:n * 1000 - id) * interval '1 s'
                                         ELSE interval '1 minute' END, 'HTTP status 422'
  FROM made WHERE state = 'dead';
INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, status, ended, worker,
                                     started_at)
SELECT id, 1, 1, 503, 'answered', 'w', now() FROM made WHERE attempts = 1;
UPDATE postrider.turn SET failures = subscription_id % 20 WHERE subscription_id > 3;
UPDATE postrider.turn SET slowed_to = 5 WHERE subscription_id % 20 = 1;
UPDATE postrider.lane
   SET due_at = NULL, leased_at = now(), look_at = now() + interval '1 hour',
       lease_until = now() + interval '1 hour', lease_token = gen_random_uuid(), lease_worker = 'w'
 WHERE subscription_id BETWEEN 10 AND 19;
INSERT INTO postrider.replay (lane_id, delivery_id)
SELECT lane_id, id FROM made WHERE subscription_id = 2 AND id > lane_id;
INSERT INTO postrider.retention_late (what, due_at, event_no)
SELECT 'log', now() + interval '1 day', id FROM made WHERE subscription_id = 504"""


@pytest.fixture(scope="module", params=["before ANALYZE", "before ANALYZE, as if larger",
                                        "after ANALYZE"])
def many(request, cluster, template):
    """A reader of a database with many rows of every kind.

    Where many more are, bitmaps look cheaper than they are; here they do if pages are dear.
    """
    db = cluster.create(template)
    fill(db, MANY)
    if request.param == "after ANALYZE":
        db.execute("ANALYZE")
    person = Reader(cluster, db)
    if request.param.endswith("larger"):
        person.connection.execute("SET random_page_cost = 20")
    yield person
    person.connection.close()
    db.drop()


# A condition, or the newest of all: pages touched, however many rows there are.
FEW = (
    "SELECT * FROM postrider.deliveries WHERE id = 1000",
    "SELECT * FROM postrider.deliveries ORDER BY id DESC LIMIT 20",
    "SELECT * FROM postrider.deliveries WHERE subscription_id BETWEEN 2 AND 2"
    " ORDER BY subscription_id DESC, id DESC LIMIT 20",
    "SELECT * FROM postrider.deliveries WHERE tenant = 'acme' AND event_id = 'e1000'",
    f"SELECT * FROM postrider.assets WHERE subscription_id = 3 AND asset = 'a{3 * MANY * 1000}'",
    *(f"SELECT * FROM postrider.assets WHERE subscription_id = {s} LIMIT 20" for s in (3, 504)),
    "SELECT * FROM postrider.dead_letters ORDER BY died_at DESC LIMIT 20",
    "SELECT * FROM postrider.dead_letters ORDER BY delivery_id DESC LIMIT 20",
    *(f"SELECT * FROM postrider.stuck WHERE subscription_id = {s}" for s in (3, 504)),
    "SELECT * FROM postrider.stuck LIMIT 20",
    "SELECT * FROM postrider.endpoint_health ORDER BY subscription_id LIMIT 1",
    "SELECT * FROM postrider.backlog ORDER BY subscription_id LIMIT 1",
    *(f"SELECT * FROM postrider.{view} WHERE subscription_id = {s}"
      for view in ("backlog", "endpoint_health") for s in (1, 2, 3, 4, 10, 504)),
)


@pytest.mark.parametrize("query", FEW)
def test_a_condition_or_the_newest_reach_an_index(many, query):
    assert many.rows(query) or "backlog" in query
    assert many.buffers(query) < 1500  # of which 1000 are for counting so far


def test_counts_stop_where_the_columns_say(many):
    one = {s: many.row(f"SELECT * FROM postrider.backlog WHERE subscription_id = {s}")
           for s in (3, 4, 504)}
    assert (one[3]["due"], one[3]["later"]) == (1000, 0)
    assert (one[4]["due"], one[4]["later"]) == (0, 20)
    assert (one[504]["why"], one[504]["held"]) == ("held", 1000)
    assert many.row("SELECT behind FROM postrider.assets WHERE subscription_id = 2") == {
        "behind": 100}
    assert many.row("SELECT dead FROM postrider.endpoint_health WHERE subscription_id = 1") == {
        "dead": 1000}


@pytest.mark.parametrize("query", QUERIES)
def test_no_question_of_the_page_scans(many, query):
    assert many.buffers(query) < 40 * 504  # a few look-ups for each subscription


def test_the_newest_dead_letters_of_one_are_found_once_there_are_statistics(many):
    query = ("SELECT * FROM postrider.dead_letters WHERE subscription_id = 1"
             " ORDER BY delivery_id DESC LIMIT 20")
    many.connection.execute("RESET ROLE")
    many.connection.execute("ANALYZE postrider.dead_letter")
    many.connection.execute("RESET random_page_cost")
    many.connection.execute("SET ROLE postrider_reader")
    assert many.buffers(query) < 500
