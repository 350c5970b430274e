"""What telling reads does not grow with what was told, nor with what else there is."""

from .replaying import Queue
from .test_replay_plans import BIG, MOST, SMALL, SPARE, Explainer, fill

STEP = {"operation_take": (200,), "operation_dead": (1000, 60_000_000),
        "operation_backlog": (3_600_000_000, 200, 60_000_000), "operation_accept": (),
        "work_share": (), "work_ready": (), "operation_next": ()}


def measure(session):
    """A step, twice: the first clears away what earlier rollbacks left."""
    for _ in range(2):
        session.connection.execute("BEGIN")
        for name, literals in STEP.items():
            session.call("told", name, *literals)
        told = session.connection.execute(
            "SELECT current_setting('postrider.told')::bigint[]").fetchone()[0]
        session.connection.execute("ROLLBACK")
    return told


def much_that_was_told(db, queue, n):
    """And many types that others subscribed to, in subscriptions with long backlogs."""
    busy = queue.subscribe()
    fill(db, queue, n, "dead", "no::text", "id")
    db.execute("SET session_replication_role = replica")
    db.execute("INSERT INTO postrider.audit (number, actor, action, subject, source, hash)"
               " SELECT g, 'cli', 'subscription.disabled', '1', 'x',"
               " sha256(int4send(g)) FROM generate_series(1, %s) g", (n,))
    db.execute("UPDATE postrider.audit_head SET number = %s", (n,))
    db.execute("INSERT INTO postrider.subscription_pattern (tenant_id, pattern,"
               " subscription_id) SELECT %s, 'p' || g, %s FROM generate_series(1, %s) g",
               (queue.tenant, busy, n))
    db.execute("INSERT INTO postrider.operation_backlog (subscription_id)"
               " SELECT 1000000 + g FROM generate_series(1, %s) g", (n,))
    for leased in (False, True):
        db.execute(f"""
            INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id, head_event_no,
                                        asset, due_at, lease_token, lease_until, lease_worker,
                                        look_at, leased_at)
            SELECT id, {busy}, id, id, id, id,
                   {"NULL, gen_random_uuid(), now(), 'w', now(), now()" if leased
                    else "now() - g * interval '1 second', NULL, NULL, NULL, NULL, NULL"}
              FROM (SELECT nextval('postrider.position') AS id, g
                      FROM generate_series(1, {n}) g) x""")
    db.execute("SET session_replication_role = origin")
    db.execute("UPDATE postrider.operation SET audit_number = %s, died_in ="
               " pg_current_xact_id(), dead_id = 9223372036854775807", (n,))


def something_to_tell(db, queue):
    taker = queue.subscribe()
    db.execute("INSERT INTO postrider.subscription_pattern VALUES (%s, 'postrider.*', %s)",
               (queue.tenant, taker))
    queue.die("dies")
    queue.accept("waits")
    db.execute("UPDATE postrider.event SET accepted_at = now() - interval '1 day'"
               " WHERE event_id = 'waits'")
    db.execute("INSERT INTO postrider.audit (actor, tenant_id, action, subject)"
               " VALUES ('cli', %s, 'subscription.disabled', %s)", (queue.tenant, str(queue.id)))
    return taker


def costs(cluster, template, n):
    """{(when, of, statement): pages}: nobody to tell, loaded, and after ANALYZE."""
    db = cluster.create(template)
    found = {}

    def keep(when, session):
        found.update({(when, *key): pages for key, pages in session.touched.items()})

    try:
        for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                              " WHERE schemaname = 'postrider'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        early, loaded = (Explainer(cluster.connect(db.name), STEP) for _ in range(2))
        measure(early)
        queue = Queue(db)
        much_that_was_told(db, queue, n)
        assert measure(early) == []
        keep("nobody listens", early)
        taker = something_to_tell(db, queue)
        for when, session in (("planned on empty tables", early), ("loaded", loaded)):
            assert measure(session) == [taker]
            keep(when, session)
        db.execute("ANALYZE")
        analyzed = Explainer(cluster.connect(db.name), STEP)
        assert measure(analyzed) == [taker]
        keep("analyzed", analyzed)
        for session in (early, loaded, analyzed):
            session.connection.close()
        return found
    finally:
        db.drop()


def test_a_step_touches_no_more_pages_beside_much_that_was_told(cluster, template):
    small = costs(cluster, template, SMALL)
    big = costs(cluster, template, BIG)
    print({key: (small[key], big[key]) for key in small})
    assert {key: (small[key], big[key]) for key in small
            if big[key] > MOST * small[key] + SPARE} == {}
