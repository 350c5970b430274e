"""Cost stays flat: what a statement reads does not grow with what it cannot send."""

import json
import re
from pathlib import Path

import pytest

from .statement import SQL

SESSION = Path(__file__).parents[2] / "src/store/session.c"
SMALL, BIG = 1000, 20000
READY = 20  # lanes that can be sent, beside the many that are measured
TURNS = 8   # in one pass, each with a share of READY lanes
STATEMENTS = ("turn_wake", "turn_take", "lane_claim", "lane_hold", "delivery_record",
              "turn_share", "turn_settle", "turn_exclude", "turn_rest", "lane_reclaim")


def subscription(db, rest=None, wake_at=None, state="active", limit=1000):
    """One more subscription; `rest` and `wake_at` are its turn's."""
    made = db.value(
        "INSERT INTO postrider.subscription (tenant_id, url, state, max_in_flight)"
        " SELECT id, 'https://example.com/', %s, %s FROM postrider.tenant RETURNING id",
        (state, limit))
    db.execute("INSERT INTO postrider.turn (subscription_id, rest, wake_at)"
               " VALUES (%s, %s, %s)", (made, rest, wake_at))
    return made


def deliveries(db, made, n, lane_id="id", finished=False):
    """n deliveries with their events; returns the first id."""
    first = db.value("SELECT coalesce(max(id), 0) + 1 FROM postrider.delivery")
    db.execute("INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, fingerprint,"
               " body) SELECT t.id, 1, 'e' || g, 't', '\\x00', '{}' FROM postrider.tenant t,"
               " generate_series(%(a)s::bigint, %(a)s::bigint + %(n)s - 1) g", {"a": first, "n": n})
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state,"
               " finished_at) SELECT g, e.event_no, %(s)s, x.lane_id, %(state)s, %(at)s"
               " FROM generate_series(%(a)s::bigint, %(a)s::bigint + %(n)s - 1) g"
               " JOIN postrider.event e ON e.event_id = 'e' || g,"
               f" LATERAL (SELECT g AS id, {first} AS first) r,"
               f" LATERAL (SELECT r.{lane_id} AS lane_id) x",
               {"a": first, "n": n, "s": made, "at": "now" if finished else None,
                "state": "delivered" if finished else "pending"})
    return first


def lanes(db, made, n, due="now() - interval '1 minute'"):
    """n lanes of one delivery each."""
    first = deliveries(db, made, n)
    db.execute("INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id,"
               f" head_event_no, due_at, asset) SELECT id, subscription_id, id, id, event_no,"
               f" {due}, 'a' || id FROM postrider.delivery WHERE id >= %s", (first,))


def lease_one(db, made):
    db.execute("UPDATE postrider.lane SET due_at = NULL, lease_worker = 'w', lease_token ="
               " gen_random_uuid(), lease_until = now() + interval '1 hour' WHERE id ="
               " (SELECT min(id) FROM postrider.lane WHERE subscription_id = %s)", (made,))


def one_asset(db, n):
    made = subscription(db)
    first = deliveries(db, made, n, lane_id="first")
    db.execute("INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id,"
               " head_event_no, due_at, asset) SELECT id, subscription_id, id, id + %s::bigint - 1,"
               " event_no, now(), 'a' FROM postrider.delivery WHERE id = %s", (n, first))


def paused(db, n):
    lanes(db, subscription(db, "paused", state="paused"), n)


def at_its_limit(db, n):
    made = subscription(db, "limit", limit=1)
    lanes(db, made, n)
    lease_one(db, made)


def at_its_limit_in_the_round(db, n):
    made = subscription(db, limit=1)
    lanes(db, made, n)
    lease_one(db, made)


def waiting_for_a_retry(db, n):
    lanes(db, subscription(db, "idle", wake_at="tomorrow"), n, "now() + interval '1 day'")


def ready(db, n):
    lanes(db, subscription(db), n)


def many_subscriptions(db, n):
    for _ in range(n // 50):
        lanes(db, subscription(db), 50)


def finished(db, n):
    deliveries(db, subscription(db, "idle"), n, finished=True)


KINDS = (one_asset, paused, at_its_limit, at_its_limit_in_the_round, waiting_for_a_retry,
         ready, many_subscriptions, finished)


class Session:
    """A dispatcher's session: its settings and statements."""

    def __init__(self, cluster, db):
        self.connection = cluster.connect(db.name)
        for name, value in re.findall(r'\{ "(\w+)", "(\w+)" \}', SESSION.read_text()):
            self.connection.execute(f"SET {name} = {value}")
        for name in STATEMENTS:
            self.connection.execute(f"PREPARE {name} AS {(SQL / f'{name}.sql').read_text()}")
        self.buffers = {}

    def call(self, name, *literals):
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}"
            + (f" ({', '.join(literals)})" if literals else "")).fetchone()[0][0]["Plan"]
        self.buffers[name] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    def leases(self, made):
        """The leased lanes as literals: lanes, tokens; and how many."""
        rows = self.connection.execute(
            "SELECT id, lease_token FROM postrider.lane WHERE subscription_id = %s"
            " AND lease_token IS NOT NULL ORDER BY id", (made,)).fetchall()
        return (*("'{" + ",".join(str(row[i]) for row in rows) + "}'" for i in (0, 1)),
                len(rows))

    def measure(self, made):
        """All that a dispatcher does with the lanes of `made`; nothing is kept."""
        self.connection.execute("BEGIN")
        # The first look clears away what the last rollback left.
        self.call("turn_wake", "1000")
        self.call("turn_wake", "1000")
        self.call("turn_take", str(TURNS))
        self.call("lane_claim", str(TURNS * READY), "'w'", "5000000")
        ids, tokens, n = self.leases(made)
        subscriptions = "'{" + ",".join([str(made)] * max(n, 1)) + "}'"
        self.call("turn_exclude", subscriptions)
        self.call("turn_rest", subscriptions)

        def each(value):
            return "'{" + ",".join([value] * n) + "}'"
        self.call("lane_hold", ids)
        self.call("delivery_record", ids, tokens, each("delivered"), each("0"),
                  each("answered"), each("200"), each("1000"), each("NULL"), each("NULL"),
                  each("false"), "true", "5000000")
        self.call("turn_share", subscriptions)
        self.call("turn_settle", subscriptions)
        self.connection.execute("ROLLBACK")
        self.connection.execute("BEGIN")
        self.connection.execute(
            "UPDATE postrider.lane SET due_at = NULL, lease_worker = 'gone', lease_token ="
            " gen_random_uuid(), lease_until = now() - interval '1 hour'"
            " WHERE subscription_id = %s", (made,))
        self.call("lane_reclaim", "'w'", "200", "5000000")
        self.connection.execute("ROLLBACK")
        return dict(self.buffers), n


def costs(cluster, template, kind, n):
    """{(when, statement): buffers}: planned before the load, after it, after ANALYZE."""
    db = cluster.create(template)
    try:
        db.execute("INSERT INTO postrider.tenant (name) VALUES ('acme')")
        for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                              " WHERE schemaname = 'postrider'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        found = {}
        stale = Session(cluster, db)
        stale.measure(0)
        made = subscription(db)
        lanes(db, made, READY)
        kind(db, n)
        sessions = [("planned on empty tables", stale), ("loaded", Session(cluster, db))]
        for when, session in sessions:
            found[when], claimed = session.measure(made)
            assert claimed == READY
        db.execute("ANALYZE")
        sessions.append(("analyzed", Session(cluster, db)))
        found["analyzed"], _ = sessions[-1][1].measure(made)
        for _, session in sessions:
            session.connection.close()
        return {(when, name): buffers for when, all_of in found.items()
                for name, buffers in all_of.items()}
    finally:
        db.drop()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_cost_does_not_grow_with(kind, cluster, template):
    small = costs(cluster, template, kind, SMALL)
    big = costs(cluster, template, kind, BIG)
    print({key: (small[key], big[key]) for key in small})
    grown = {key: (small[key], big[key]) for key in small
             if big[key] > 1.5 * small[key] + 40}
    assert grown == {}
