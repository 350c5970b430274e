"""Each role can do what its program does, and nothing else.

That each can do its own job is what every other test shows: the programs run
under these roles.
"""

import psycopg
import pytest

from .wait import until

TABLES = ["tenant", "api_key", "subscription", "subscription_pattern",
          "subscription_secret", "turn", "event", "delivery", "lane", "attempt",
          "dead_letter", "audit", "schema_migration"]
VIEWS = ["deliveries", "backlog", "dead_letters", "endpoint_health", "stuck"]

MAY_READ = {
    "postrider_reader": {"attempt", "schema_migration"},
    "postrider_ingest": {"tenant", "api_key", "subscription", "subscription_pattern", "turn",
                         "event", "delivery", "lane", "dead_letter", "schema_migration"},
    "postrider_dispatch": {"subscription", "subscription_secret", "turn", "event",
                           "delivery", "lane", "attempt", "dead_letter",
                           "schema_migration"},
}

MUST_FAIL = {
    "postrider_reader": [
        "UPDATE postrider.turn SET rest = NULL, entered_at = now()",
        "DELETE FROM postrider.attempt",
        "INSERT INTO postrider.audit (actor, action, subject) VALUES ('x', 'x', 'x')",
    ],
    "postrider_ingest": [
        "UPDATE postrider.subscription SET tenant_id = 1",
        "DELETE FROM postrider.subscription",
        "SELECT sealed FROM postrider.subscription_secret",
        "UPDATE postrider.turn SET tenant_id = 1",
        "UPDATE postrider.delivery SET event_no = 1",
        "DELETE FROM postrider.delivery",
        "UPDATE postrider.lane SET lease_token = NULL",
        "UPDATE postrider.lane SET subscription_id = 1",
        "UPDATE postrider.replay_job SET replayed = 1",
        "UPDATE postrider.event SET body = ''",
        "DELETE FROM postrider.event",
        "INSERT INTO postrider.api_key (role, name, hash) VALUES ('operator', 'x', '')",
        "UPDATE postrider.audit SET actor = 'x'",
        "DELETE FROM postrider.audit",
    ],
    "postrider_dispatch": [
        "UPDATE postrider.subscription SET url = ''",
        "UPDATE postrider.delivery SET event_no = 1",
        "UPDATE postrider.turn SET subscription_id = 1",
        "UPDATE postrider.event SET event_id = ''",
        "INSERT INTO postrider.event (tenant_id, event_id, type, fingerprint, fan_out)"
        " VALUES (1, 'x', 'x', '', 0)",
        "UPDATE postrider.attempt SET ended = ''",
        "DELETE FROM postrider.event",
        "UPDATE postrider.audit SET actor = 'x'",
        "DELETE FROM postrider.audit",
    ],
}


@pytest.fixture
def as_role(db, cluster):
    """Run a statement as a role, in a session of its own."""
    def run(role, statement):
        with cluster.connect(db.name) as connection:
            connection.execute(f"SET ROLE {role}")
            return connection.execute(statement)
    return run


def is_refused(as_role, role, statement):
    try:
        as_role(role, statement)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_each_role_reads_what_it_needs_and_no_more(as_role):
    for role, readable in MAY_READ.items():
        found = {table for table in TABLES
                 if not is_refused(as_role, role, f"SELECT * FROM postrider.{table}")}
        assert found == readable, role


def test_each_role_is_refused_what_is_not_its_job(as_role):
    for role, statements in MUST_FAIL.items():
        for statement in statements:
            assert is_refused(as_role, role, statement), f"{role}: {statement}"


def test_the_reader_sees_the_views_and_no_secret_or_payload_in_them(
        api, dispatch, db, as_role, endpoint):
    api.subscribe(endpoint.url)
    api.event({"payload": "tell-nobody"})
    until(lambda: db.value("SELECT state FROM postrider.deliveries") == "delivered",
          "it is delivered")
    for view in VIEWS:
        columns = [column.name for column in
                   as_role("postrider_reader", f"SELECT * FROM postrider.{view}").description]
        assert not {"body", "sealed", "hash", "nonce", "fingerprint"} & set(columns)
    seen = db.rows("SELECT * FROM postrider.deliveries")
    assert seen and "tell-nobody" not in str(seen)


def test_nobody_else_gets_in(db, cluster):
    db.execute("DO $$ BEGIN CREATE ROLE stranger; EXCEPTION WHEN duplicate_object THEN"
               " NULL; END $$")
    with cluster.connect(db.name) as connection:
        connection.execute("SET ROLE stranger")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM postrider.deliveries")
