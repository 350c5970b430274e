"""What tests and filters read does not grow with how many subscriptions there are."""

from bench.dispatcher import ROOT, settings

SMALL, BIG = 1000, 30000
MOST, SPARE = 1.5, 40  # times the pages touched beside SMALL rows, and some more

CALLS = {
    "subscription_test_ask": "NULL, 7, 'fresh', '{}', 'x'",
    "subscription_test_take": "'worker', 16",
    "subscription_test_look": "7, 'fresh'",
    "subscription_test_record": "7, 'fresh', 'answered', 200, 1, '', '', 1, 1, 1, 1, 1, '', ''",
    "event_filter": "ARRAY['{\"data\":1}', '{\"data\":2}']::bytea[], '{1,4}', '{3,4}',"
                    " '{7,9,11,13}'",
    "subscription_match": "'{0,0}', '{1,1}', '{t7,*}'",
}


def fill(db, n):
    """n subscriptions of a tenant, each with a type of its own, a filter, and an old test."""
    db.execute("INSERT INTO postrider.tenant (name) VALUES ('acme')")
    db.execute("INSERT INTO postrider.subscription (id, tenant_id, url, event_types, filter,"
               " filter_weight) SELECT g, 1, 'https://a/', ARRAY['t' || g], '$.data == 1', 11"
               " FROM generate_series(1, %s) g", (n,))
    db.execute("INSERT INTO postrider.subscription_pattern SELECT 1, event_types[1], id"
               " FROM postrider.subscription")
    db.execute("INSERT INTO postrider.subscription_test (subscription_id, tenant_id, event_id,"
               " body, asked_at, expires_at, taken_by, finished_at, ended)"
               " SELECT g, 1, 'old', 'x', now() - interval '2 s', now(), 'w', now(), 'answered'"
               " FROM generate_series(1, %s) g", (n,))


class Explainer:
    """Runs the calls under EXPLAIN, in one transaction that is not kept."""

    def __init__(self, connection):
        self.connection = connection
        self.touched = {}
        for name, value in settings():
            connection.execute(f"SET {name} = {value}")
        for name in CALLS:
            text = (ROOT / "sql" / f"{name}.sql").read_text()
            connection.execute(f"PREPARE {name} AS {text}".encode())

    def once(self):
        self.connection.execute("BEGIN")
        for name, values in CALLS.items():
            plan = self.connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({values})".encode())
            plan = plan.fetchone()[0][0]["Plan"]
            self.touched[name] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        found = self.connection.execute("SELECT finished_at IS NOT NULL FROM"
                                        " postrider.subscription_test WHERE event_id = 'fresh'")
        assert found.fetchall() in ([(True,)], [])
        self.connection.execute("ROLLBACK")


def costs(cluster, template, n):
    """{(when, statement): pages}: planned before the load, after it, after ANALYZE."""
    db = cluster.create(template)
    sessions = {}
    try:
        sessions["planned on empty tables"] = Explainer(cluster.connect(db.name))
        sessions["planned on empty tables"].once()
        fill(db, n)
        sessions["loaded"] = Explainer(cluster.connect(db.name))
        for session in list(sessions.values()):
            session.once()
        db.execute("ANALYZE")
        sessions["analyzed"] = Explainer(cluster.connect(db.name))
        for session in sessions.values():
            session.once()  # and clear away what earlier rollbacks left
            session.once()
        return {(when, name): pages for when, session in sessions.items()
                for name, pages in session.touched.items()}
    finally:
        for session in sessions.values():
            session.connection.close()
        db.drop()


def test_pages_touched_do_not_grow_with_subscriptions(cluster, template):
    small, big = costs(cluster, template, SMALL), costs(cluster, template, BIG)
    print({key: (small[key], big[key]) for key in small})
    assert {key: (small[key], big[key]) for key in small
            if big[key] > MOST * small[key] + SPARE} == {}
