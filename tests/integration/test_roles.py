"""Each role can do what its program does, and nothing else; rights.py says what that is.

That each can do its own job is what every other test shows: the programs run
under these roles.
"""

import base64

import psycopg
import pytest

from . import rights
from .wait import until

ROLES = ("postrider_ingest", "postrider_dispatch", "postrider_reader")


@pytest.fixture(scope="module")
def db(cluster, template):
    """One database for all: what is tried is not kept."""
    database = cluster.create(template)
    yield database
    database.drop()


@pytest.fixture
def as_role(db, cluster):
    """Run a statement as a role, in a transaction that is not kept."""
    with cluster.connect(db.name) as connection:
        connection.autocommit = False

        def run(role, statement):
            try:
                connection.execute(f"SET LOCAL ROLE {role}")
                cursor = connection.execute(statement)
                return cursor.fetchall() if cursor.description else []
            finally:
                connection.rollback()

        yield run


@pytest.fixture
def may(as_role):
    """Whether a role is let do it, whatever comes of it."""
    def ask(role, statement):
        try:
            as_role(role, statement)
        except psycopg.errors.InsufficientPrivilege:
            return False
        except psycopg.Error:
            return True
        return True
    return ask


# -- what was granted --

def test_every_column_is_written_down(db):
    assert dict(db.rows("""
        SELECT c.relname, string_agg(a.attname, ' ' ORDER BY a.attnum)
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relnamespace = 'postrider'::regnamespace AND c.relkind NOT IN ('i', 'S')
           AND a.attnum > 0 AND NOT a.attisdropped
         GROUP BY c.relname""")) == rights.COLUMNS


def test_every_grant_is_written_down(db):
    """On a table as on each of its columns; to PUBLIC, whose number is 0, as to a role."""
    granted = set(db.rows("""
        SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE a.grantee::regrole::text END,
               a.privilege_type, c.relname, t.attname
          FROM pg_class c
          JOIN pg_attribute t ON t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped
         CROSS JOIN LATERAL (SELECT * FROM aclexplode(c.relacl) UNION
                             SELECT * FROM aclexplode(t.attacl)) a
         WHERE c.relnamespace = 'postrider'::regnamespace AND c.relkind <> 'S'
           AND a.grantee <> c.relowner"""))
    assert granted == rights.expected()


def test_every_right_to_draw_or_call_is_written_down(db):
    for table, name, space, owner, acl, kind, written in (
            ("pg_class", "relname", "relnamespace", "relowner", "relacl", "relkind = 'S'",
             rights.SEQUENCES),
            ("pg_proc", "proname", "pronamespace", "proowner",
             "coalesce(proacl, acldefault('f', proowner))", "true", rights.FUNCTIONS)):
        found = {}
        for one, grantee, privilege in db.rows(f"""
                SELECT {name}, CASE a.grantee WHEN 0 THEN 'public'
                                              ELSE a.grantee::regrole::text END,
                       a.privilege_type
                  FROM {table} LEFT JOIN LATERAL (
                       SELECT * FROM aclexplode({acl}) x WHERE x.grantee <> {owner}) a ON true
                 WHERE {space} = 'postrider'::regnamespace AND {kind}"""):
            found.setdefault(one, set())
            if privilege:
                assert privilege in ("USAGE", "EXECUTE")
                found[one].add(grantee)
        assert found == written


def test_the_schema_is_for_use_and_nobody_s_but_the_owner_s_to_add_to(db):
    assert set(db.rows("""
        SELECT a.grantee::regrole::text, a.privilege_type
          FROM pg_namespace n, aclexplode(n.nspacl) a
         WHERE n.nspname = 'postrider' AND a.grantee <> n.nspowner""")) == {
             (role, "USAGE") for role in ROLES}
    assert db.rows("SELECT * FROM pg_default_acl") == []
    assert set(db.rows("""
        SELECT relowner::regrole::text FROM pg_class
         WHERE relnamespace = 'postrider'::regnamespace UNION
        SELECT proowner::regrole::text FROM pg_proc
         WHERE pronamespace = 'postrider'::regnamespace UNION
        SELECT nspowner::regrole::text FROM pg_namespace
         WHERE nspname = 'postrider'""")) == {("postrider_owner",)}


def test_the_roles_are_nothing_else(db):
    """None logs in by itself, is another, or stands above grants."""
    assert db.rows("SELECT rolname FROM pg_roles WHERE rolname LIKE 'postrider%%' AND (rolsuper"
                   " OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication"
                   " OR rolbypassrls)") == []
    assert db.rows("SELECT roleid::regrole FROM pg_auth_members"
                   " WHERE member::regrole::text LIKE 'postrider%%'") == []


def test_who_calls_a_function_of_the_owner_cannot_lend_it_tables(db):
    found = db.rows("SELECT proname, proconfig FROM pg_proc"
                    " WHERE pronamespace = 'postrider'::regnamespace AND prosecdef")
    assert {name for name, _ in found} == rights.AS_OWNER
    for name, settings in found:
        assert "search_path=pg_catalog, pg_temp" in settings, name


# -- what each can really do --

def statements(db):
    """(privilege, table, column, a statement that needs that right and changes nothing)."""
    for table, column, type, identity in db.rows("""
            SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attidentity <> ''
              FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
             WHERE c.relnamespace = 'postrider'::regnamespace AND c.relkind IN ('r', 'v')
               AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''"""):
        yield "SELECT", table, column, f'SELECT "{column}" FROM postrider.{table} LIMIT 0'
        if table in rights.VIEWS:
            continue
        yield ("INSERT", table, column,
               f'INSERT INTO postrider.{table} ("{column}")'
               f' {"OVERRIDING SYSTEM VALUE" if identity else ""}'
               f" SELECT NULL::{type} WHERE false")
        yield ("UPDATE", table, column,
               f'UPDATE postrider.{table} SET "{column}" = DEFAULT WHERE false')
        yield "DELETE", table, column, f"DELETE FROM postrider.{table} WHERE false"


@pytest.mark.parametrize("role", ROLES)
def test_each_role_can_do_with_each_column_what_is_written_down(role, db, may):
    wrong = [(privilege, table, column) for privilege, table, column, statement in statements(db)
             if may(role, statement) != (column in rights.columns(role, table, privilege))]
    assert wrong == []


@pytest.mark.parametrize("role", ROLES)
def test_no_role_can_do_what_is_nobody_s(role, db, may):
    tried = [f"TRUNCATE postrider.{table}" for table in rights.COLUMNS
             if table not in rights.VIEWS]
    tried += [f"CREATE TRIGGER t BEFORE INSERT ON postrider.{table} FOR EACH ROW"
              " EXECUTE FUNCTION suppress_redundant_updates_trigger()"
              for table in ("event", "audit")]
    tried += ["CREATE TABLE postrider.mine ()", "CREATE VIEW postrider.mine AS SELECT 1",
              "CREATE FUNCTION postrider.now() RETURNS integer LANGUAGE sql RETURN 1",
              "ALTER TABLE postrider.audit DISABLE TRIGGER ALL",
              "DROP TABLE postrider.audit", "DROP TRIGGER audit_stays ON postrider.audit",
              "SET session_replication_role = replica", "CREATE ROLE mine",
              "GRANT postrider_owner TO CURRENT_USER",
              "SELECT pg_read_file('PG_VERSION')", "COPY postrider.tenant TO PROGRAM 'cat'"]
    assert [statement for statement in tried if may(role, statement)] == []


@pytest.mark.parametrize("role", ROLES)
def test_each_role_can_draw_and_call_what_is_written_down(role, db, may):
    for sequence, who in rights.SEQUENCES.items():
        assert may(role, f"SELECT nextval('postrider.{sequence}')") == (role in who), sequence
        assert not may(role, f"SELECT setval('postrider.{sequence}', 1)"), sequence
    for function, types in db.rows("SELECT proname, oidvectortypes(proargtypes) FROM pg_proc"
                                   " WHERE pronamespace = 'postrider'::regnamespace"):
        # Of a constant a planner may know what comes of it, and not ask for the right.
        nulls = ", ".join(f"(SELECT NULL::{type.replace('anyelement', 'text')})"
                          for type in types.split(", ") if type)
        assert may(role, f"SELECT postrider.{function}({nulls})") \
            == (role in rights.FUNCTIONS[function]), function


def test_a_dispatcher_makes_no_event_but_an_operational_one(as_role):
    call = "SELECT postrider.operation_event(1, 'x', {}, now(), '{{}}', 0)"
    for kind in ("'order.paid'", "'postrider'", "NULL"):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            as_role("postrider_dispatch", call.format(kind))
    [(number,)] = as_role("postrider_dispatch", call.format("'postrider.delivery.dead'"))
    assert number > 0


def test_a_dispatcher_may_forget_what_was_sent_and_not_change_it(db, as_role):
    db.execute("INSERT INTO postrider.event (tenant_id, event_id, type, fingerprint, fan_out,"
               " body) VALUES (1, 'one', 't', '', 0, '{}')")
    as_role("postrider_dispatch", "UPDATE postrider.event SET body = NULL")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("postrider_dispatch", "UPDATE postrider.event SET body = '[]'")
    db.execute("DELETE FROM postrider.event")


# -- what a reader sees --

class TestReader:
    @pytest.fixture
    def db(self, cluster, template):
        """One of its own: the programs run on it."""
        database = cluster.create(template)
        yield database
        database.drop()

    def test_no_secret_and_no_payload_is_in_anything_that_it_may_read(
            self, api, make_dispatch, db, as_role, endpoint, client_certificate, admin_key):
        certificate, key = client_certificate
        endpoint.script(404)
        made = api.subscribe(endpoint.url, headers={"x-plain": "tell-nobody"},
                             secret_headers={"x-secret": "tell-nobody"},
                             ed25519_signature=True, tls_certificate=certificate, tls_key=key)
        make_dispatch(poll="50ms")
        api.event({"payload": "tell-nobody"}, asset="a")
        until(lambda: db.value("SELECT count(*) FROM postrider.dead_letters"), "it is dead")
        api.post(f"/v1/subscriptions/{made['id']}/pause").expect(200)
        api.post(f"/v1/subscriptions/{made['id']}/replay",
                 {"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}).expect(202)
        api.event({"payload": "tell-nobody"}, asset="a")

        seen = {}
        for table, granted in rights.TABLES["postrider_reader"].items():
            names = rights.columns("postrider_reader", table, "SELECT")
            assert granted.keys() == {"SELECT"}
            assert not names & {"body", "sealed", "nonce", "fingerprint", "headers", "tls_ca",
                                "tls_certificate", "key_id", "public_key", "excerpt", "detail"}
            listed = ", ".join(f'"{name}"::text' for name in sorted(names))
            seen[table] = as_role("postrider_reader", f"SELECT {listed} FROM postrider.{table}")
        assert {"deliveries", "assets", "backlog", "dead_letters", "endpoint_health", "attempt",
                "audit", "replay_job"} <= {table for table, rows in seen.items() if rows}
        text = str(seen)
        hidden = ["tell-nobody", made["secret"], made["signing_key"], admin_key,
                  *certificate.splitlines()[1:-1], *key.splitlines()[1:-1]]
        hidden += [base64.b64decode(made["secret"].split("_")[1]).hex()]
        for row in db.rows("SELECT encode(sealed, 'hex'), encode(nonce, 'hex')"
                           " FROM postrider.subscription_secret"):
            hidden += row
        hidden += [row[0] for row in db.rows("SELECT encode(hash, 'hex') FROM postrider.api_key")]
        assert len(hidden) > 20 and [secret for secret in hidden if secret in text] == []


def test_nobody_else_gets_in(db, may):
    db.execute("DO $$ BEGIN CREATE ROLE passer_by; EXCEPTION WHEN duplicate_object THEN"
               " NULL; END $$")
    assert [statement for *_, statement in statements(db) if may("passer_by", statement)] == []
    assert not any(may("passer_by", f"SELECT nextval('postrider.{sequence}')")
                   for sequence in rights.SEQUENCES)
    assert not may("passer_by", "SELECT postrider.rfc3339(now())")
