"""What a replay reads does not grow with what else there is."""

import pytest
from bench.dispatcher import ROOT, settings

from .replaying import Queue

SMALL, BIG = 3000, 50000
MOST, SPARE = 1.5, 40  # times the pages touched beside SMALL rows, and some more

READY = ("work_share", "work_ready")
RETRY = ("replay_one", "replay_hold", "replay_place", *READY, "replay_answer")
DISCARD = ("discard_hold", "delivery_discard", *READY, "replay_answer")
STEP = ("replay_pick", "replay_look", "replay_hold", "replay_place", *READY, "replay_next")
STATEMENTS = sorted({*RETRY, *DISCARD, *STEP, "replay_start"})


def fill(db, queue, n, state="delivered", asset="'many'", lane="1", tenant=None):
    """n more events with a delivery each; returns the first of their numbers."""
    first = db.value("SELECT nextval('postrider.position')")
    db.execute(f"""
        WITH fresh AS (
            SELECT {first} + 1000 * g AS no, {first} + 1000 * g + 1 AS id
              FROM generate_series(1, {n}) g
        ), accepted AS (
            INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type, asset,
                                         fingerprint, body)
            SELECT no, {tenant or queue.tenant}, 1, no::text, 't', {asset}, '\\x00', '{{}}'
              FROM fresh
        ), buried AS (
            INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)
            SELECT id, {queue.id}, 'x' FROM fresh WHERE '{state}' = 'dead'
        )
        INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state,
                                        finished_at)
        SELECT id, no, {queue.id if tenant is None else -1}, {lane}, '{state}', now()
          FROM fresh""")
    db.value(f"SELECT setval('postrider.position', {first} + 1000 * {n + 1})")
    return first


def many_dead(db, queue, n):
    """Of assets of their own."""
    fill(db, queue, n, "dead", "no::text", "id")


def many_dead_of_one_asset(db, queue, n):
    fill(db, queue, n, "dead", "'a'", "2")


def many_delivered(db, queue, n):
    """In the very lane that the dead letter was in."""
    lane = db.value("SELECT lane_id FROM postrider.delivery WHERE state = 'dead'")
    fill(db, queue, n, "delivered", "'a'", str(lane))


def many_waiting(db, queue, n):
    """In the lane that the dead letter goes back to, behind its head."""
    head = queue.accept("head")
    lane = db.value("SELECT id FROM postrider.lane")
    fill(db, queue, n, "pending", "'a'", str(lane))
    db.execute("UPDATE postrider.lane SET tail_id = (SELECT max(id) FROM postrider.delivery)"
               " WHERE head_id = %s", (head,))


def many_replays(db, queue, n):
    """That wait for the head of the lane."""
    many_waiting(db, queue, n)
    db.execute("UPDATE postrider.lane SET due_at = NULL, lease_worker = 'w', look_at = now(),"
               " lease_token = gen_random_uuid(), lease_until = now(), leased_at = now(),"
               " resume_id = tail_id + 1, tail_id = tail_id + 1")
    db.execute("INSERT INTO postrider.replay SELECT lane_id, id FROM postrider.delivery"
               " WHERE state = 'pending' AND id > (SELECT head_id FROM postrider.lane)")


def many_events_of_another(db, queue, n):
    stranger = db.value("INSERT INTO postrider.tenant (name) VALUES ('noisy') RETURNING id")
    fill(db, queue, n, tenant=stranger)


def many_jobs(db, queue, n):
    db.execute("INSERT INTO postrider.replay_job (subscription_id, what, state, created_by)"
               " SELECT %s, 'dead', 'done', 'x' FROM generate_series(1, %s)", (queue.id, n))


def much_of_all(db, queue, n):
    for kind in (many_delivered, many_replays, many_dead, many_dead_of_one_asset,
                 many_events_of_another, many_jobs):
        kind(db, queue, n)


KINDS = (many_waiting, much_of_all)


class Explainer:
    """Runs statements under EXPLAIN, in transactions that are not kept."""

    def __init__(self, connection, statements=STATEMENTS):
        self.connection = connection
        self.touched = {}  # pages, by transaction and statement
        for name, value in settings():
            connection.execute(f"SET {name} = {value}")
        for name in statements:
            connection.execute(
                f"PREPARE {name} AS {(ROOT / 'sql' / f'{name}.sql').read_text()}")

    def call(self, of, name, *literals):
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}"
            + (f" ({', '.join(map(str, literals))})" if literals else "")).fetchone()[0][0]["Plan"]
        self.touched[of, name] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    def _transaction(self, of, calls, job=None):
        self.connection.execute("BEGIN")
        if job:
            self.call(of, "replay_start", *job)
            self.connection.execute("UPDATE postrider.replay_job SET created_at ="
                                    " now() + interval '1 second', created_in = '3'")
        for name, literals in calls:
            self.call(of, name, *literals)
        self.connection.execute("ROLLBACK")

    def _once(self, queue, dead):
        ids = ("NULL", queue.id, dead)
        given = {"replay_one": ids, "replay_answer": (*ids, "'x'", "'x'"),
                 "discard_hold": ids, "delivery_discard": ids}
        for of, names in (("retry", RETRY), ("discard", DISCARD)):
            self._transaction(of, [(name, given.get(name, ())) for name in names])
        for what in ("dead", "events"):
            self._transaction(what, [(name, ()) for name in STEP],
                              ("NULL", queue.id, f"'{what}'", 0, "NULL", 100, "'x'"))

    def measure(self, queue, dead):
        self._once(queue, dead)  # and clear away what earlier rollbacks left
        self._once(queue, dead)


def costs(cluster, template, kind, n):
    """{(when, transaction, statement): pages}: loaded, and after ANALYZE."""
    db = cluster.create(template)
    try:
        for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                              " WHERE schemaname = 'postrider'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        early = Explainer(cluster.connect(db.name))
        early.measure(Queue(db), 0)
        queue = Queue(db)
        dead, = queue.die("one")
        kind(db, queue, n)
        loaded = Explainer(cluster.connect(db.name))
        for session in (early, loaded):
            session.measure(queue, dead)
        db.execute("ANALYZE")
        analyzed = Explainer(cluster.connect(db.name))
        analyzed.measure(queue, dead)
        sessions = {"planned on empty tables": early, "loaded": loaded, "analyzed": analyzed}
        for session in sessions.values():
            session.connection.close()
        return {(when, *key): pages for when, session in sessions.items()
                for key, pages in session.touched.items()}
    finally:
        db.drop()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_replay_touches_no_more_pages_beside(kind, cluster, template):
    small = costs(cluster, template, kind, SMALL)
    big = costs(cluster, template, kind, BIG)
    print({key: (small[key], big[key]) for key in small})
    grown = {key: (small[key], big[key]) for key in small
             if big[key] > MOST * small[key] + SPARE}
    assert grown == {}
