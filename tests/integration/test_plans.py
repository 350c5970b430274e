"""Cost stays flat: what a statement reads does not grow with what it cannot send.

As the benchmark of flat cost does with a million rows and a clock, with fewer and
by the pages that each statement touches.
"""

from contextlib import nullcontext

import pytest
from psycopg import sql

from bench import shapes
from bench.dispatcher import Dispatcher, text

SMALL, BIG = 1000, 50000
MOST, SPARE = 1.5, 100  # times the pages touched beside SMALL rows, and some more
DEEPER = {"lane_hold": 2 * shapes.SENDABLE}  # an index is one page deeper for each look-up


class Explainer(Dispatcher):
    """Runs each statement under EXPLAIN, all in one transaction that is not kept."""

    def __init__(self, connection, worker="w"):
        super().__init__(connection, worker)
        self.touched = {}  # pages, by statement

    def transaction(self):
        return nullcontext()

    def run(self, name, *values):
        given = sql.SQL(", ").join(sql.Literal(text(value)) for value in values)
        execute = sql.SQL("EXECUTE {} ({})" if values else "EXECUTE {}{}")
        plan = self.connection.execute(
            sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ")
            + execute.format(sql.Identifier(name), given)).fetchone()[0][0]["Plan"]
        self.touched[name] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return []

    def claim(self, room, sweeps=False):
        super().claim(room, sweeps)
        return self.connection.execute(
            "SELECT current_setting('postrider.taken')::bigint[]").fetchone()[0]

    def _once(self):
        self.connection.execute("BEGIN")
        taken = self.claim(shapes.SENDABLE)
        leases = self.leases()
        self.rest(taken)
        if leases:
            self.record(leases, shapes.verdicts(leases))
        self.connection.execute("ROLLBACK")
        self.connection.execute("BEGIN")
        self.claim(shapes.SENDABLE)
        self.connection.execute("UPDATE postrider.lane SET look_at = now(), lease_until = now()"
                                " WHERE lease_worker = %s", (self.worker,))
        self.reclaim()
        self.connection.execute("ROLLBACK")
        self.connection.execute("BEGIN")
        self.claim(shapes.SENDABLE)
        if leases:
            self.taken_one(self.leases()[0])
            self.taken(self.leases(), goes_on=False)
        self.connection.execute("ROLLBACK")
        return len(leases)

    def measure(self):
        """All that a dispatcher does; returns the number of lanes claimed."""
        self.look_from = self.connection.execute(
            "SELECT (extract(epoch FROM now()) * 1000000)::bigint").fetchone()[0]
        self.entered_from = self.look_from
        for row in self.connection.execute("SELECT tenant_id, subscription_id FROM postrider.turn"
                                           " WHERE rest IS NULL ORDER BY entered_at"):
            self.rota.add(*row)
        self._once()  # and clear away what earlier rollbacks left
        return self._once()


def costs(cluster, template, shape, n):
    """{(when, statement): pages}: planned before the load, after it, after ANALYZE."""
    db = cluster.create(template)
    sessions = []

    def session():
        sessions.append(Explainer(cluster.connect(db.name)))
        return sessions[-1]

    try:
        for table, in db.rows("SELECT format('postrider.%I', tablename) FROM pg_tables"
                              " WHERE schemaname = 'postrider'"):
            db.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        early = session()
        early.measure()
        shapes.found(db)
        shape.load(db, n)
        shape.state(db)
        old = cluster.connect(db.name)
        if shape.churns:
            shapes.hold_back_vacuum(old)
            shapes.churn(Dispatcher(cluster.connect(db.name), "churn"))
        shapes.offer(db)
        found = {}
        for when, one in (("planned on empty tables", early), ("loaded", session())):
            assert one.measure() >= shapes.SENDABLE // 2
            found[when] = one.touched
        db.execute("ANALYZE")
        analyzed = session()
        analyzed.measure()
        found["analyzed"] = analyzed.touched
        return {(when, name): pages for when, touched in found.items()
                for name, pages in touched.items()}
    finally:
        for one in sessions:
            one.connection.close()
        db.drop()


@pytest.mark.parametrize("shape", shapes.SHAPES, ids=lambda shape: shape.name)
def test_pages_touched_do_not_grow_with(shape, cluster, template):
    small = costs(cluster, template, shape, SMALL)
    big = costs(cluster, template, shape, BIG)
    print({key: (small[key], big[key]) for key in small})
    grown = {key: (small[key], big[key]) for key in small
             if big[key] > MOST * small[key] + SPARE + DEEPER.get(key[1], 0)}
    assert grown == {}
