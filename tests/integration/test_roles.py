"""Each role can do what its program does, and nothing else.

That each can do its own job is what every other test shows: the programs run
under these roles.
"""

import psycopg
import pytest

from .wait import until

TABLES = ["tenant", "api_key", "subscription", "subscription_pattern",
          "subscription_secret", "turn", "event", "delivery", "lane", "attempt",
          "dead_letter", "audit", "audit_head", "schema_migration"]
VIEWS = ["deliveries", "assets", "backlog", "dead_letters", "endpoint_health", "stuck"]

MAY_READ = {
    "postrider_reader": {"schema_migration"},
    "postrider_ingest": {"tenant", "api_key", "subscription", "subscription_pattern", "turn",
                         "event", "delivery", "lane", "attempt", "dead_letter", "audit",
                         "schema_migration"},
    "postrider_dispatch": {"subscription", "subscription_secret", "turn", "event",
                           "delivery", "lane", "attempt", "dead_letter",
                           "schema_migration"},
}

# The audit only grows, and what proves that is not the programs' to say.
AUDIT = [
    "UPDATE postrider.audit SET actor = 'x'",
    "DELETE FROM postrider.audit",
    "TRUNCATE postrider.audit",
    "INSERT INTO postrider.audit (actor, action, subject, at) VALUES ('x', 'x', 'x', now())",
    "INSERT INTO postrider.audit (actor, action, subject, number) VALUES ('x', 'x', 'x', 1)",
    "INSERT INTO postrider.audit (actor, action, subject, source) VALUES ('x', 'x', 'x', 'x')",
    "UPDATE postrider.audit_head SET number = 0",
    "SELECT postrider.audit_append(a) FROM postrider.audit a",
]

MUST_FAIL = {
    "postrider_reader": [
        "UPDATE postrider.turn SET rest = NULL, entered_at = now()",
        "SELECT id FROM postrider.subscription",
        "SELECT headers FROM postrider.subscription",
        "SELECT name FROM postrider.subscription_secret",
        "SELECT public_key FROM postrider.subscription_secret",
        "SELECT headers FROM postrider.attempt",
        "SELECT excerpt FROM postrider.attempt",
        "DELETE FROM postrider.attempt",
        "INSERT INTO postrider.audit (actor, action, subject) VALUES ('x', 'x', 'x')",
        "SELECT detail FROM postrider.audit",
    ],
    "postrider_ingest": [
        "UPDATE postrider.subscription SET tenant_id = 1",
        "DELETE FROM postrider.subscription",
        "SELECT sealed FROM postrider.subscription_secret",
        "SELECT nonce FROM postrider.subscription_secret",
        "UPDATE postrider.subscription_secret SET sealed = ''",
        "UPDATE postrider.subscription_secret SET kind = 'secret'",
        "UPDATE postrider.subscription_secret SET subscription_id = 1",
        "UPDATE postrider.turn SET tenant_id = 1",
        "UPDATE postrider.delivery SET event_no = 1",
        "DELETE FROM postrider.delivery",
        "UPDATE postrider.lane SET lease_token = NULL",
        "UPDATE postrider.lane SET subscription_id = 1",
        "UPDATE postrider.replay_job SET replayed = 1",
        "UPDATE postrider.event SET body = ''",
        "DELETE FROM postrider.event",
        "UPDATE postrider.api_key SET role = 'operator'",
        "UPDATE postrider.api_key SET hash = ''",
        "UPDATE postrider.api_key SET expires_at = NULL",
        "DELETE FROM postrider.api_key",
        "UPDATE postrider.tenant SET name = 'x'",
        "DELETE FROM postrider.tenant",
        *AUDIT,
    ],
    "postrider_dispatch": [
        "UPDATE postrider.subscription SET url = ''",
        "UPDATE postrider.subscription SET headers = '{}'",
        "UPDATE postrider.subscription SET tls_ca = NULL",
        "UPDATE postrider.subscription_secret SET expires_at = NULL",
        "DELETE FROM postrider.subscription_secret",
        "UPDATE postrider.delivery SET event_no = 1",
        "UPDATE postrider.turn SET subscription_id = 1",
        "UPDATE postrider.event SET event_id = ''",
        "INSERT INTO postrider.event (tenant_id, event_id, type, fingerprint, fan_out)"
        " VALUES (1, 'x', 'x', '', 0)",
        "UPDATE postrider.attempt SET ended = ''",
        "DELETE FROM postrider.event",
        "INSERT INTO postrider.api_key (role, name, hash) VALUES ('operator', 'x', '')",
        *AUDIT,
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
    api.subscribe(endpoint.url, headers={"x-plain": "tell-nobody"},
                  secret_headers={"x-secret": "tell-nobody"})
    api.event({"payload": "tell-nobody"})
    until(lambda: db.value("SELECT state FROM postrider.deliveries") == "delivered",
          "it is delivered")
    for view in VIEWS:
        cursor = as_role("postrider_reader", f"SELECT * FROM postrider.{view}")
        columns = {column.name for column in cursor.description}
        assert not {"body", "sealed", "hash", "nonce", "fingerprint", "headers", "tls_ca",
                    "tls_certificate", "key_id", "public_key"} & columns
        assert "tell-nobody" not in str(db.rows(f"SELECT * FROM postrider.{view}"))
    assert db.rows("SELECT * FROM postrider.deliveries")


def test_nobody_else_gets_in(db, cluster):
    db.execute("DO $$ BEGIN CREATE ROLE passer_by; EXCEPTION WHEN duplicate_object THEN"
               " NULL; END $$")
    with cluster.connect(db.name) as connection:
        connection.execute("SET ROLE passer_by")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM postrider.deliveries")
