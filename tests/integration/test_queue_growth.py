"""What a statement does grows with its batch: not with its square, nor with others' work."""

import re
from pathlib import Path

import pytest

from . import statement
from .statement import MARGIN, SQL

SESSION = Path(__file__).parents[2] / "src/store/session.c"
MANY = 100


class Session:
    """A dispatcher's settings; says what each statement passed by."""

    def __init__(self, connection):
        self.connection = connection
        for name, value in re.findall(r'\{ "(\w+)", "(\w+)" \}', SESSION.read_text()):
            connection.execute(f"SET {name} = {value}")
        connection.execute("SET postrider.taken = '{}'")
        for name, parameters in (("turn_take", 3), ("lane_claim", 5), ("delivery_record", 21),
                                 ("turn_settle", 5), ("turn_rest", 1)):
            connection.execute(f"PREPARE {name} AS {(SQL / f'{name}.sql').read_text()}")
            # The plan is made once, now.
            connection.execute(f"EXPLAIN EXECUTE {name} ({', '.join(['NULL'] * parameters)})")

    def most(self, name, *literals):
        """Most rows that one step of the plan had in hand."""
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {name} ({', '.join(literals)})"
        ).fetchone()[0][0]["Plan"]
        return self._most(plan)

    def _most(self, node):
        here = sum(node.get(key, 0) for key in (
            "Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter",
            "Rows Removed by Index Recheck")) * node["Actual Loops"]
        return max([here] + [self._most(child) for child in node.get("Plans", [])])


def array(values):
    return "'{" + ",".join(map(str, values)) + "}'"


@pytest.fixture
def crowd(db, cluster):
    """Many subscriptions with a due lane each, and no replay."""
    tenant = db.value("INSERT INTO postrider.tenant (name) VALUES ('acme') RETURNING id")
    db.execute("INSERT INTO postrider.subscription (tenant_id, url, circuit_after) SELECT %s,"
               " 'https://example.com/', 1000 FROM generate_series(1, %s)", (tenant, MANY))
    db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id, rest, entered_at)"
               " SELECT id, tenant_id, NULL, now() FROM postrider.subscription")
    db.execute("INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id, head_event_no,"
               " due_at, asset) SELECT id, id, id, id, id, now(), 'a' FROM postrider.subscription")
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id)"
               " SELECT id, id, id, id FROM postrider.lane")
    db.execute("VACUUM ANALYZE")
    with cluster.connect(db.name) as connection:
        yield Session(connection)


def claim(db, cluster):
    """Lease all; returns subscriptions, lanes and tokens."""
    with cluster.connect(db.name) as connection, connection.transaction():
        statement.claim(connection)
    rows = db.rows("SELECT subscription_id, id, lease_token FROM postrider.lane"
                   " WHERE lease_token IS NOT NULL")
    assert len(rows) == MANY
    return [array(column) for column in zip(*rows)]


def outcomes(lanes, tokens, verdict):
    each = [array([value] * MANY) for value in (1, verdict, 60_000_000, "answered", 500, 1,
                                                "NULL", "NULL", "false")]
    kept = [array([value] * MANY) for value in (1, 2, 3, 4, 5, "headers", "excerpt", 1)]
    return lanes, tokens, *each, array(["true"] * MANY), str(MARGIN), *kept


def test_a_claim_grows_with_its_turns(crowd):
    crowd.connection.execute("BEGIN")
    crowd.connection.execute(f"EXECUTE turn_take ({MANY}, '{{}}', NULL)")
    assert crowd.most("lane_claim", "500", "'w'", str(MARGIN), "100000", "0") <= 5 * MANY


def test_a_settlement_grows_with_its_outcomes(db, cluster, crowd):
    subscriptions, *leases = claim(db, cluster)
    db.execute("UPDATE postrider.turn SET rest = 'idle', entered_at = NULL")
    crowd.connection.execute("BEGIN")
    crowd.connection.execute(
        f"EXECUTE delivery_record ({', '.join(outcomes(*leases, 'retry'))})")
    assert crowd.most("turn_settle", subscriptions, leases[0], array([-1] * MANY),
                      array([5_000_000] * MANY), array([1000] * MANY)) <= 5 * MANY


def test_a_rest_grows_with_its_turns(db, crowd):
    """All are due, in somebody else's hands."""
    turns = [row[0] for row in db.rows("SELECT subscription_id FROM postrider.turn")]
    crowd.connection.execute("BEGIN")
    statement.statement(crowd.connection, "turn_exclude", turns)
    assert crowd.most("turn_rest", array(turns)) <= 5 * MANY


def test_a_record_passes_by_the_replays_of_other_lanes(db, cluster, crowd):
    _, *leases = claim(db, cluster)
    db.execute("INSERT INTO postrider.replay SELECT 5, g FROM generate_series(1, 5000) g")
    assert crowd.most("delivery_record", *outcomes(*leases, "delivered")) <= 5 * MANY
