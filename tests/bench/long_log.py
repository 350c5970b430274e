"""A long delivery log, what is asked of it, and what an answer costs.

The benchmark asks millions of rows, the tests (tests/integration/test_log_plans.py) fewer.
"""

import re

from psycopg import sql

from bench.dispatcher import ROOT, settings, text

OURS, OTHER = 1, 2
STEP = 100_000
SETTINGS = settings()
WAITING = 1000  # the newest, each of an asset of its own: of them
IN_FLIGHT, RETRYING = 100, 100
DAYS = 30

# The newest are another subscription's; ours end a minute before them.
LOADED = """
WITH fresh AS MATERIALIZED (
    SELECT g, 2000 * g AS event_no, 2000 * g + 1000 AS id, g %% 1000 AS pump,
           now() - interval '2 minutes'
           - greatest(%(n)s - g, 0) * interval '1 day' * %(days)s / %(n)s AS accepted_at,
           %(to)s = 1 AND g > %(n)s - %(waiting)s AS is_waiting,
           CASE
               WHEN %(to)s = 1 AND g > %(n)s - %(waiting)s THEN 'pending'
               WHEN g %% 50 = 7 THEN 'dead'
               WHEN g %% 1000 = 8 THEN 'cancelled'
               ELSE 'delivered'
           END AS state
      FROM generate_series(%(first)s::bigint, %(last)s) g
), accepted AS (
    INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type, asset,
                                 fingerprint, body, accepted_at)
    SELECT event_no, %(to)s, 1, 'event-' || g,
           CASE WHEN g = 1 THEN 'once' WHEN g %% 1000 = 3 THEN 'alarm' ELSE 'reading' END,
           CASE WHEN g = 1 THEN 'lost' ELSE 'pump-' || pump END,
           sha256(g::text::bytea), '{"data": {"pressure": 4.2}}', accepted_at
      FROM fresh
), kept AS (
    INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state, status,
                                    attempts, finished_at, duration_us, worker)
    SELECT id, event_no, %(to)s, CASE WHEN is_waiting THEN id ELSE pump END, state,
           CASE state WHEN 'delivered' THEN 200 WHEN 'dead' THEN 400 END,
           CASE WHEN state = 'pending' THEN 0 ELSE 1 END,
           CASE WHEN state <> 'pending' THEN accepted_at END,
           CASE WHEN state = 'delivered' THEN 1000 END,
           CASE WHEN state = 'delivered' THEN 'a host:1:2' END
      FROM fresh
), buried AS (
    INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)
    SELECT id, %(to)s, 'HTTP status 400'
      FROM fresh
     WHERE state = 'dead'
), queued AS (
    INSERT INTO postrider.lane (id, subscription_id, asset, head_id, tail_id, head_event_no,
                                due_at, attempts)
    SELECT id, %(to)s, 'pump-' || pump, id, id, event_no, now(), 0
      FROM fresh
     WHERE is_waiting
)
INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, started_at, duration_us,
                                     ended, status, worker)
SELECT id, 1, 1, accepted_at, 1000, 'answered', 400, 'a host:1:2'
  FROM fresh
 WHERE state = 'dead'
"""


def load(db, n):
    """n deliveries of ours, and a tenth as many that are newer of another tenant's."""
    db.execute("INSERT INTO postrider.tenant (name) VALUES ('acme'), ('other')")
    db.execute("INSERT INTO postrider.subscription (tenant_id, url, max_in_flight)"
               " VALUES (1, 'https://example.com/', 10000), (2, 'https://example.com/', 100)")
    db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id) VALUES (1, 1), (2, 2)")
    for to, begin, end in (OURS, 1, n), (OTHER, n + 1, n + n // 10):
        for first in range(begin, end + 1, STEP):
            db.execute(LOADED, {"first": first, "last": min(first + STEP - 1, end), "to": to,
                                "n": n, "waiting": min(WAITING, n // 2), "days": DAYS})
    db.execute("UPDATE postrider.lane SET attempts = 3, due_at = now() + interval '1 hour'"
               " WHERE id IN (SELECT id FROM postrider.lane ORDER BY id LIMIT %s)", (RETRYING,))
    db.execute("UPDATE postrider.lane SET attempts = 1, due_at = NULL, lease_worker = 'w',"
               " lease_token = gen_random_uuid(), lease_until = now(), look_at = now(),"
               " leased_at = now() WHERE id IN"
               " (SELECT id FROM postrider.lane ORDER BY id DESC LIMIT %s)", (IN_FLIGHT,))
    db.execute("SELECT setval('postrider.position', %s)", (2000 * (n + n // 10 + 1),))


def days_ago(db, days):
    return db.value("SELECT (extract(epoch FROM now() - %s * interval '1 day') * 1000000)::bigint",
                    (days,))


def questions(db, n):
    """{what is asked for: the parameters that say so}."""
    middle = {"since": days_ago(db, DAYS * 3 / 4), "until": days_ago(db, DAYS / 4)}
    return {
        "the newest": {},
        "the next page": {"after": 2000 * (n // 2)},
        **{f"state={state}": {"state": state} for state in (
            "delivered", "dead", "cancelled", "pending", "delivering", "retrying")},
        "type=reading": {"type": "reading"},
        "type=alarm": {"type": "alarm"},
        "type=once": {"type": "once"},
        "asset=pump-17": {"asset": "pump-17"},
        "asset=lost": {"asset": "lost"},
        "event=event-1": {"event": "event-1"},
        "since, until": middle,
        "since, until, state=dead": {**middle, "state": "dead"},
        "since, until, type=once": {**middle, "type": "once"},
        "until, asset=lost": {"until": middle["until"], "asset": "lost"},
    }


class Asker:
    """Asks as ingest does, under EXPLAIN."""

    NAMES = ("state", "type", "asset", "event", "since", "until")
    LIMIT = 100
    LOOKED_AT = int(re.search(r"LOOKED_AT = (\d+)", (
        ROOT / "src/store/delivery_log.c").read_text())[1])

    def __init__(self, connection, settings=SETTINGS):
        self.connection = connection
        for name, value in settings:
            connection.execute(f"SET {name} = {value}")
        connection.execute(
            f"PREPARE delivery_list AS {(ROOT / 'sql/delivery_list.sql').read_text()}")

    def _execute(self, after=None, **asked):
        given = [1, OURS, after, *(asked.get(name) for name in self.NAMES),
                 self.LIMIT, self.LOOKED_AT]
        return sql.SQL("EXECUTE delivery_list ({})").format(
            sql.SQL(", ").join(sql.Literal(text(value)) for value in given))

    def ask(self, **asked):
        """The ids of a page, and after which to go on; None: that was all."""
        rows = self.connection.execute(self._execute(**asked)).fetchall()
        ids = [row[1] for row in rows if row[1] is not None]
        return ids, ids[-1] if len(ids) == self.LIMIT else rows[0][0] if rows else None

    def explain(self, **asked):
        """The plan, as EXPLAIN (ANALYZE, BUFFERS) has it."""
        return self.connection.execute(
            sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ")
            + self._execute(**asked)).fetchone()[0][0]

    def pages(self, **asked):
        """How many pages of the tables it touched."""
        plan = self.explain(**asked)["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
