"""Migrations run once, in order, whole or not at all, and nothing starts on a wrong schema."""

import subprocess

import pytest

from .daemons import Cli, Dispatch, Ingest, binary, environment
from .wait import until

LOCK = "SELECT pg_advisory_lock(hashtextextended('postrider migrate', 0))"
RECORD = "SELECT version, name, checksum FROM postrider.schema_migration ORDER BY version"


@pytest.fixture
def empty(empty_db):
    """An empty database, and the command for it."""
    return empty_db, Cli({"database": empty_db.conninfo})


def refused(cli, *args):
    """The command must fail; what it said."""
    done = cli.run(*args)
    assert done.returncode == 1, done
    return done.stderr


def as_user(cluster, db, name, grants):
    """The command as an ordinary user of the cluster."""
    db.execute(f"CREATE ROLE {name} LOGIN NOCREATEROLE")
    for grant in grants:
        db.execute(grant)
    return Cli({"database": f"host={cluster.dir} dbname={db.name} user={name}"})


def test_an_empty_database_is_brought_up_to_date(empty):
    db, cli = empty
    before = cli.run("migrate", "--status", "--json")
    assert before.returncode == 3
    assert '"state":"applied"' not in before.stdout

    made = cli.json("migrate")
    assert [step["version"] for step in made] == list(range(1, len(made) + 1))
    assert [row[:2] for row in db.rows(RECORD)] == [
        (step["version"], step["name"]) for step in made]
    assert cli.json("migrate", "--status") == made


def test_a_second_run_does_nothing(empty):
    db, cli = empty
    cli("migrate")
    before = db.rows("SELECT * FROM postrider.schema_migration ORDER BY 1")
    assert cli.json("migrate") == []
    assert db.rows("SELECT * FROM postrider.schema_migration ORDER BY 1") == before


def test_the_owner_owns_all_of_it(empty):
    db, cli = empty
    cli("migrate")
    assert db.rows("""
        SELECT DISTINCT relowner::regrole::text
          FROM pg_class WHERE relnamespace = 'postrider'::regnamespace
        """) == [("postrider_owner",)]


def test_four_at_once_migrate_once(empty):
    db, cli = empty
    with db.cluster.connect(db.name) as holder:
        holder.execute(LOCK)
        runs = [subprocess.Popen([binary("postrider"), "migrate", "--json"],
                                 env=environment(cli.settings), text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(4)]
        until(lambda: db.value("SELECT count(*) FROM pg_locks"
                               " WHERE locktype = 'advisory' AND NOT granted"
                               "   AND database = (SELECT oid FROM pg_database"
                               "                   WHERE datname = current_database())") == 4,
              "all four wait for the lock")
        assert db.value("SELECT to_regnamespace('postrider')") is None
    outputs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0] * 4, outputs
    assert sorted(out == "[]\n" for out, _ in outputs) == [False, True, True, True]


def test_a_failing_migration_leaves_no_trace(empty):
    db, cli = empty
    cli("migrate")
    # As if the second had never run; what it makes stands in its way.
    db.execute("DELETE FROM postrider.schema_migration WHERE version > 1")
    db.execute("DROP VIEW postrider.stuck")
    said = refused(cli, "migrate")
    assert "0002_views" in said and "already exists" in said
    assert db.value("SELECT max(version) FROM postrider.schema_migration") == 1
    assert db.value("SELECT to_regclass('postrider.stuck')") is None


def test_a_migration_that_cannot_be_recorded_has_not_happened(empty):
    db, cli = empty
    cli("migrate")
    db.execute("DROP SCHEMA postrider CASCADE")
    db.execute("CREATE SCHEMA postrider AUTHORIZATION postrider_owner")
    db.execute("CREATE TABLE postrider.schema_migration (version integer CHECK (version < 1),"
               " name text, checksum text)")
    db.execute("ALTER TABLE postrider.schema_migration OWNER TO postrider_owner")
    assert "0001_queue" in refused(cli, "migrate")
    assert db.rows("SELECT relname FROM pg_class"
                   " WHERE relnamespace = 'postrider'::regnamespace") == [("schema_migration",)]


@pytest.mark.parametrize("command", [("migrate",), ("migrate", "--status"), ("tenant", "list")])
def test_a_changed_migration_is_refused(empty, command):
    db, cli = empty
    cli("migrate")
    db.execute("UPDATE postrider.schema_migration SET checksum = repeat('0', 64)"
               " WHERE version = 1")
    said = refused(cli, *command)
    assert "0001_queue was changed" in said and "000000000000..." in said


@pytest.mark.parametrize("command", [("migrate",), ("migrate", "--status"), ("tenant", "list")])
def test_a_gap_is_refused(empty, command):
    db, cli = empty
    cli("migrate")
    db.execute("DELETE FROM postrider.schema_migration WHERE version = 1")
    assert "0001_queue is not on record" in refused(cli, *command)


@pytest.mark.parametrize("command", [("migrate",), ("migrate", "--status"), ("tenant", "list")])
def test_a_schema_of_the_future_is_refused(empty, command):
    db, cli = empty
    cli("migrate")
    db.execute("INSERT INTO postrider.schema_migration VALUES (9999, '9999_x', 'y')")
    said = refused(cli, *command)
    assert "at version 9999" in said and "upgrade this program" in said


def test_an_ordinary_user_who_may_create_migrates(cluster, template, empty):
    db, _ = empty
    user = as_user(cluster, db, "plain_migrator", [
        "GRANT postrider_owner TO plain_migrator",
        f"GRANT CREATE ON DATABASE {db.name} TO plain_migrator"])
    assert user.json("migrate")
    db.execute(f"REVOKE CREATE ON DATABASE {db.name} FROM plain_migrator")
    assert user.json("migrate") == []
    db.execute("DROP ROLE plain_migrator")


def test_the_owner_of_a_second_database_is_told_what_a_superuser_has_to_run(
        cluster, template, empty):
    db, _ = empty
    owner = "\"second-owner\""
    db.execute(f"CREATE ROLE {owner} LOGIN NOCREATEROLE")
    db.execute(f"ALTER DATABASE {db.name} OWNER TO {owner}")
    user = Cli({"database": f"host={cluster.dir} dbname={db.name} user=second-owner"})
    remedy = f"GRANT postrider_owner TO {owner}"
    assert f"a superuser has to run `{remedy}`" in refused(user, "migrate")
    assert db.value("SELECT to_regnamespace('postrider')") is None
    db.execute(remedy)
    assert user.json("migrate")
    db.execute(f"ALTER DATABASE {db.name} OWNER TO CURRENT_USER")
    db.execute(f"DROP ROLE {owner}")


def test_who_may_not_make_the_schema_is_told_what_the_owner_has_to_run(
        cluster, template, empty):
    db, _ = empty
    user = as_user(cluster, db, "homeless", ["GRANT postrider_owner TO homeless"])
    remedy = f"GRANT CREATE ON DATABASE {db.name} TO homeless"
    assert f"has to run `{remedy}`" in refused(user, "migrate")
    db.execute(remedy)
    assert user.json("migrate")
    db.execute(f"REVOKE CREATE ON DATABASE {db.name} FROM homeless")
    db.execute("DROP ROLE homeless")


def test_a_reader_does_not_migrate(cluster, template, empty):
    db, cli = empty
    cli("migrate")
    db.execute("DELETE FROM postrider.schema_migration WHERE version > 1")
    user = as_user(cluster, db, "just_a_reader", ["GRANT postrider_reader TO just_a_reader"])
    said = refused(user, "migrate")
    assert "permission denied" in said and "GRANT postrider_owner TO" in said
    db.execute("DROP ROLE just_a_reader")


def test_a_stranger_does_not_migrate(cluster, template, empty):
    db, cli = empty
    user = as_user(cluster, db, "stranger", [])
    assert "making the schema" in refused(user, "migrate")
    cli("migrate")
    said = refused(user, "migrate")
    assert "permission denied" in said and "GRANT postrider_owner TO" in said
    db.execute("DROP ROLE stranger")


def test_a_database_that_is_not_utf8_is_refused(cluster, template):
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'"
                           " LC_COLLATE 'C' LC_CTYPE 'C'")
        said = refused(Cli({"database": cluster.conninfo("latin")}), "migrate")
        connection.execute("DROP DATABASE latin WITH (FORCE)")
    assert "events are UTF-8" in said


def test_without_a_schema_a_command_says_what_to_run(empty):
    _, cli = empty
    assert "run `postrider migrate`" in refused(cli, "tenant", "list")
    assert "run `postrider migrate`" in cli.run("doctor").stdout


@pytest.mark.parametrize("program", [Ingest, Dispatch])
@pytest.mark.parametrize("change, remedy", [
    ("DROP SCHEMA postrider CASCADE", "postrider migrate"),
    ("DELETE FROM postrider.schema_migration WHERE version > 1", "postrider migrate"),
    ("INSERT INTO postrider.schema_migration VALUES (9999, '9999_x', 'y')",
     "upgrade this program"),
], ids=["missing", "older", "newer"])
def test_a_daemon_does_not_start_on_another_schema(db, settings, programs, program,
                                                   change, remedy):
    db.execute(change)
    daemon = programs(program, settings, start=False)
    assert daemon.launch().wait() == 1
    assert remedy in daemon.log()
