"""What a page of the delivery log reads does not grow with the log, whatever is asked for."""

import pytest
from bench import long_log

SMALL, BIG = 20_000, 100_000  # both are more than a page looks at
MOST, SPARE = 1.5, 200  # times the pages touched beside SMALL rows, and some more


def costs(cluster, template, n):
    """{(when, what is asked for): pages}: planned before the load, after it, after ANALYZE."""
    db = cluster.create(template)
    sessions = {}
    try:
        for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                              " WHERE schemaname = 'postrider'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")

        def plan(when, **how):
            sessions[when] = long_log.Asker(cluster.connect(db.name), **how)
            sessions[when].ask()

        plan("planned on empty tables")
        long_log.load(db, n)
        plan("loaded")
        db.execute("ANALYZE")
        plan("analyzed")
        plan("analyzed, as the command does", settings=())
        return {(when, what): session.pages(**asked) for when, session in sessions.items()
                for what, asked in long_log.questions(db, n).items()}
    finally:
        for session in sessions.values():
            session.connection.close()
        db.drop()


@pytest.fixture(scope="module")
def found(cluster, template):
    return costs(cluster, template, SMALL), costs(cluster, template, BIG)


def test_pages_touched_do_not_grow_with_the_log(found):
    small, big = found
    print({key: (small[key], big[key]) for key in small})
    assert {key: (small[key], big[key]) for key in small
            if big[key] > MOST * small[key] + SPARE} == {}


def test_what_is_not_rare_is_found_without_looking_far(found):
    for (when, what), pages in found[1].items():
        if what in ("the newest", "the next page", "state=dead", "state=delivering",
                    "event=event-1", "since, until"):
            assert pages < 4000, (when, what, pages)
