"""The operator's command: what it makes works, what it prints can be read by a program."""

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from .daemons import Cli, binary


def refused(cli, status, *args):
    done = cli.run(*args)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.startswith("postrider: ") and done.stderr.count("\n") == 1
    return done.stderr


def test_a_tenant_is_made_once(cli):
    made = cli.json("tenant", "create", "acme")
    assert made["name"] == "acme"
    assert "acme already" in refused(cli, 1, "tenant", "create", "acme")
    listed = cli.json("tenant", "list")
    assert [(t["id"], t["name"]) for t in listed] == [(made["id"], "acme")]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed[0]["created_at"])


@pytest.mark.parametrize("name", ["", "a b", "_a", "x" * 64, "näme", "a\n"])
@pytest.mark.parametrize("words", [("tenant", "create"), ("key", "list", "--tenant"),
                                   ("subscription", "list", "--tenant"),
                                   ("key", "create", "--role", "admin", "--tenant")])
def test_an_impossible_name_is_a_usage_error(words, name):
    # No database is asked.
    assert "a tenant's name is" in refused(Cli({}), 2, *words, name)


def test_the_database_takes_every_possible_name(cli):
    for name in ("a", "0", "A_b-9", "x" * 63):
        assert cli.json("tenant", "create", name)["name"] == name


def test_a_tenant_that_is_not_there_is_a_failure(cli, tenant):
    for words in (("key", "list"), ("subscription", "list"), ("key", "create", "--role=admin")):
        said = refused(cli, 1, *words, "--tenant", "nobody")
        assert said == "postrider: there is no such tenant\n"


@pytest.mark.parametrize("command", [
    "tenant create a b", "tenant list x", "key create --role operator x", "key list x",
    "key revoke 1 2", "subscription list --tenant a x", "subscription pause 1 2",
    "subscription delete 1 2", "migrate x", "keygen /nowhere/a x", "doctor x", "version x",
    "help x"])
def test_a_surplus_operand_is_a_usage_error_and_nothing_is_done(command):
    # No database is asked.
    words = command.split()
    assert f": {words[-1]} is one operand too many" in refused(Cli({}), 2, *words)


def test_a_key_is_not_revoked_by_halves(cli, tenant):
    ids = [cli.json("key", "create", "--tenant", tenant, "--role", "admin")["id"]
           for _ in range(2)]
    refused(cli, 2, "key", "revoke", *ids)
    assert [key["revoked_at"] for key in cli.json("key", "list")] == [None, None]


@pytest.mark.parametrize("command, what", [
    ("tenant create", "NAME"), ("key revoke", "ID"), ("keygen", "FILE"),
    ("key create", "--role publisher|viewer|admin|operator"), ("subscription list", "--tenant NAME"),
    ("subscription pause", "ID"), ("subscription delete", "ID")])
def test_what_a_command_needs_stands_in_its_usage_and_is_asked_for(command, what):
    words = command.split()
    assert f"postrider {command} {what} [" in Cli({})(*words, "--help").replace("\n", " [")
    assert f"{command}: {what} is missing" in refused(Cli({}), 2, *words)
    assert f"{command}: {what} is missing" in refused(Cli({}), 2, *words, "-n")


def test_options_and_settings_may_stand_before_the_command(cli, tenant, db):
    assert json.loads(cli("--json", "tenant", "list"))[0]["name"] == tenant
    assert json.loads(cli("--tenant=acme", "key", "list", "--json")) == []
    elsewhere = Cli({"database": "host=/nowhere"})
    assert tenant in elsewhere(f"--database={db.conninfo}", "tenant", "list")


def test_a_config_file_may_stand_before_the_command(tenant, db, tmp_path):
    path = tmp_path / "conf"
    path.write_text(f"database = {db.conninfo}\n")
    assert tenant in Cli({})("--config", str(path), "tenant", "list")
    assert tenant in Cli({})("tenant", "list", "--config", str(path))


def test_a_value_of_its_own_word_does_not_stand_before_the_command():
    said = refused(Cli({}), 2, "--tenant", "key", "list")
    assert "write --tenant=NAME" in said
    said = refused(Cli({}), 2, "--tenant", "acme", "key", "list")
    assert "acme: no such command" in said and "write --NAME=VALUE" in said
    assert "-x: no such option" in refused(Cli({}), 2, "-x", "tenant", "list")


def test_the_settings_alone_can_be_checked(tmp_path):
    cli = Cli({"database": "host=/nowhere"})
    assert cli("-n") == ""
    assert cli("-n", "tenant", "list") == ""
    assert cli("tenant", "create", "acme", "-n") == ""
    assert "--databose: no such option" in refused(cli, 2, "-n", "--databose=x")
    path = tmp_path / "conf"
    path.write_text("database = a\n\ndatabase = b\n")
    assert f"{path}:3: database is set in line 1 already" in refused(
        cli, 2, "-n", f"--config={path}")
    assert "secret_key_file: " in refused(cli, 2, "-n", f"--secret-key-file={tmp_path}/none")


def test_a_key_is_shown_once_and_kept_as_a_hash(cli, tenant, db):
    made = cli.json("key", "create", "--tenant", tenant, "--role", "publisher", "--name", "app")
    assert re.fullmatch(r"pr_[A-Za-z0-9_-]{43}", made["key"])
    assert db.value("SELECT hash = sha256(%s::text::bytea) FROM postrider.api_key WHERE id = %s",
                    (made["key"], int(made["id"])))
    assert made["key"] not in cli("key", "list", "--json") + cli("key", "list")
    assert [(k["id"], k["tenant"], k["role"], k["name"]) for k in cli.json("key", "list")] == [
        (made["id"], tenant, "publisher", "app")]


def test_no_two_keys_are_alike(cli, tenant):
    keys = [cli.json("key", "create", f"--tenant={tenant}", "--role=admin")["key"]
            for _ in range(3)]
    assert len(set(keys)) == 3


def test_a_key_opens_ingest_until_it_is_revoked(cli, tenant, ingest):
    made = cli.json("key", "create", "--tenant", tenant, "--role", "admin")
    api = ingest.api(made["key"])
    api.get("/v1/subscriptions").expect(200)
    assert cli.json("key", "revoke", made["id"])["state"] == "revoked"
    api.get("/v1/subscriptions").expect(401)
    assert "revoked already" in refused(cli, 1, "key", "revoke", made["id"])
    assert cli.json("key", "list", "--tenant", tenant)[0]["revoked_at"]


def test_what_is_changed_is_audited(cli, tenant, db):
    key = cli.json("key", "create", "--tenant", tenant, "--role", "admin")
    cli("key", "revoke", key["id"])
    assert db.rows("SELECT actor, action, subject FROM postrider.audit ORDER BY id") == [
        ("cli", "tenant.created", tenant),
        ("cli", "key.created", key["id"]),
        ("cli", "key.revoked", key["id"])]


@pytest.mark.parametrize("args, why", [
    (["--role", "admin"], "for one tenant: which?"),
    (["--tenant", "acme"], "--role publisher|viewer|admin|operator is missing"),
    (["--role", "king", "--tenant", "acme"], "a key's role is publisher, viewer, admin or operator"),
    (["--role", "", "--tenant", "acme"], "a key's role is"),
    (["--role", "admin", "--tenant", "acme", "--name", "ä" * 101], "1 to 100 characters"),
    (["--role", "admin", "--tenant", "acme", "--name", ""], "1 to 100 characters"),
    (["--role", "operator", "--tenant", "acme"], "no tenant"),
    (["--role", "admin", "--tenant"], "--tenant takes a NAME"),
    (["--role", "admin", "--tenant", "acme", "a"], "a is one operand too many"),
    (["--role", "admin", "--json=yes", "--tenant", "acme"], "--json takes no value"),
    (["--role", "admin", "--tenant", "acme", "--colour", "red"], "--colour: no such option"),
])
def test_a_key_that_is_asked_for_wrongly_is_a_usage_error(args, why):
    # No database is asked.
    assert why in refused(Cli({}), 2, "key", "create", *args)


def test_the_database_takes_every_possible_key(cli, tenant):
    for role in ("publisher", "admin"):
        made = cli.json("key", "create", "--tenant", tenant, "--role", role, "--name", "ä" * 100)
        assert (made["role"], made["name"]) == (role, "ä" * 100)


@pytest.mark.parametrize("operand", ["x", "0", "1x", "99999999999999999999"])
def test_an_id_that_is_none_is_a_usage_error(operand):
    # No database is asked.
    for words in (("key", "revoke"), ("subscription", "enable")):
        assert "an id is a number" in refused(Cli({}), 2, *words, operand)


def test_all_subscriptions_of_a_tenant_are_listed(cli, api, tenant, db):
    api.subscribe("http://127.0.0.1:9/a", event_types=["a.*", "b"])
    # More than one page of them.
    db.execute("""
        INSERT INTO postrider.subscription (tenant_id, url)
        SELECT tenant_id, url FROM postrider.subscription, generate_series(1, 450)""")
    listed = cli.json("subscription", "list", "--tenant", tenant)
    assert len(listed) == 451
    assert len({s["id"] for s in listed}) == 451
    assert listed[0]["event_types"] == ["a.*", "b"]
    assert listed[0]["url"] == "http://127.0.0.1:9/a"
    cli.json("tenant", "create", "other")
    assert cli.json("subscription", "list", "--tenant", "other") == []
    assert "no such tenant" in refused(cli, 1, "subscription", "list", "--tenant", "nobody")


def test_a_subscription_is_paused_and_goes_on(cli, api, db):
    made = api.subscribe("http://127.0.0.1:9/", rate_per_second=0.5)["id"]

    def state():
        return api.get(f"/v1/subscriptions/{made}").expect(200)["state"]

    for command, after in (("pause", "paused"), ("resume", "active"), ("disable", "disabled"),
                           ("enable", "active"), ("enable", "active")):
        said = cli.json("subscription", command, made)
        assert (said["id"], said["state"], said["rate_per_second"]) == (made, after, 0.5)
        assert state() == after
    assert "url" in cli("subscription", "pause", made)
    assert "it is paused: resume it first" in refused(cli, 1, "subscription", "enable", made)
    cli("subscription", "disable", made)
    for command in ("pause", "resume"):
        said = refused(cli, 1, "subscription", command, made)
        assert "it is disabled: enable it first" in said
    assert db.rows("SELECT action, subject FROM postrider.audit WHERE actor = 'cli'"
                   " AND action ~ '^subscription' ORDER BY id") == [
        (f"subscription.{done}", made) for done in
        ("paused", "resumed", "disabled", "enabled", "paused", "disabled")]


def test_a_subscription_is_deleted_once(cli, api, tenant):
    made = api.subscribe("http://127.0.0.1:9/")["id"]
    assert cli.json("subscription", "delete", made) == {"id": made, "state": "deleted"}
    api.get(f"/v1/subscriptions/{made}").expect(404)
    assert cli.json("subscription", "list", "--tenant", tenant) == []
    for command in ("delete", "pause", "resume", "disable", "enable"):
        assert "there is no such subscription" in refused(cli, 1, "subscription", command, made)


def test_a_table_is_for_people(cli, tenant):
    cli.json("key", "create", "--role", "operator", "--name", "a\x1b[31mb")
    table = cli("key", "list").splitlines()
    assert table[0].split()[:4] == ["id", "tenant", "role", "name"]
    assert "a?[31mb" in table[1]  # nothing that a terminal obeys


def test_keygen_writes_a_key_for_its_owner_alone(cli, tmp_path):
    path = tmp_path / "key"
    old = os.umask(0)
    try:
        said = cli("keygen", str(path))
    finally:
        os.umask(old)
    text = path.read_text()
    assert re.fullmatch(r"[0-9a-f]{64}\n", text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert text.strip() not in said
    assert "File exists" in refused(cli, 1, "keygen", str(path))
    assert path.read_text() == text


def checked(cli, *args):
    """The exit status, and each check but one: the tests' server forgoes durability."""
    done = cli.run("doctor", "--json", *args)
    return done.returncode, [row for row in json.loads(done.stdout)
                             if row["check"] != "durability"]


def findings(cli, *args):
    status, rows = checked(cli, *args)
    return status, {row["check"]: row["finding"] for row in rows}


def complaints(cli, finding="bad", *args):
    """The exit status, and what each check with this finding says, in order."""
    status, rows = checked(cli, *args)
    return status, [(row["check"], row["detail"]) for row in rows if row["finding"] == finding]


def test_a_doctor_is_content_with_what_is_well(cli, api):
    api.subscribe("http://127.0.0.1:9/")
    status, found = findings(cli)
    assert status == 0 and set(found.values()) == {"ok"}, found


def test_a_doctor_finds_another_key(cli, api, db, tmp_path):
    api.subscribe("http://127.0.0.1:9/")
    cli("keygen", str(tmp_path / "other"))
    status, [(check, detail)] = complaints(cli, "bad", f"--secret-key-file={tmp_path}/other")
    assert status == 1 and check == "secrets"
    key_id = db.value("SELECT key_id FROM postrider.subscription_secret")
    assert detail.startswith(f"1 sealed under another key, the first is {key_id} of")


# Each grant that the two programs have, as ACLs name it, each column by itself.
GRANTS = """
    SELECT a.grantee::regrole::text, a.privilege_type, c.relname, '' AS attname
      FROM pg_class c, aclexplode(c.relacl) a
     WHERE c.relnamespace = 'postrider'::regnamespace AND c.relkind IN ('r', 'S')
       AND a.grantee::regrole::text IN ('postrider_ingest', 'postrider_dispatch')
     UNION ALL
    SELECT a.grantee::regrole::text, a.privilege_type, c.relname, t.attname
      FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
     WHERE c.relnamespace = 'postrider'::regnamespace AND NOT t.attisdropped
       AND a.grantee::regrole::text IN ('postrider_ingest', 'postrider_dispatch')
     UNION ALL
    SELECT a.grantee::regrole::text, a.privilege_type, p.proname, ''
      FROM pg_proc p, aclexplode(p.proacl) a
     WHERE p.pronamespace = 'postrider'::regnamespace
       AND a.grantee::regrole::text IN ('postrider_ingest', 'postrider_dispatch')
     ORDER BY 1, 2, 3, 4"""


def test_a_doctor_knows_every_right_that_the_programs_have(cli, db):
    granted = db.rows(GRANTS)
    assert granted
    for role in ("postrider_ingest", "postrider_dispatch"):
        db.execute(f"REVOKE ALL ON SCHEMA postrider FROM {role}")
        db.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA postrider FROM {role}")
        db.execute(f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA postrider FROM {role}")
        db.execute(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA postrider FROM {role}")
    assert db.rows(GRANTS) == []
    status, said = complaints(cli)
    assert status == 1 and {check for check, _ in said} == {"rights"}
    for _, detail in said:  # what it says mends all of it, and gives no more
        db.execute(re.fullmatch(r"missing: run `(GRANT .*)`", detail)[1])
    assert db.rows(GRANTS) == granted
    assert complaints(cli) == (0, [])


@pytest.mark.parametrize("role", ["postrider_ingest", "postrider_dispatch"])
def test_a_doctor_finds_each_right_that_is_gone(cli, db, role):
    own = {"postrider_ingest": "why", "postrider_dispatch": "operation_event"}[role]
    for right in ("USAGE ON SCHEMA postrider", "SELECT ON postrider.lane",
                  "INSERT ON postrider.delivery", f"EXECUTE ON FUNCTION postrider.{own}"):
        db.execute(f"REVOKE {right} FROM {role}")
        assert complaints(cli) == (1, [("rights", f"missing: run `GRANT {right} TO {role}`")])
        db.execute(f"GRANT {right} TO {role}")


def test_a_doctor_finds_what_cannot_be_signed(cli, api, db):
    first, second = (api.subscribe("http://127.0.0.1:9/") for _ in range(2))
    db.execute("DELETE FROM postrider.subscription_secret WHERE subscription_id = %s",
               (int(first["id"]),))
    db.execute("UPDATE postrider.subscription_secret SET expires_at = now()"
               " WHERE subscription_id = %s", (int(second["id"]),))
    status, [(check, detail)] = complaints(cli)
    assert status == 1 and check == "subscriptions"
    assert f"2 without a secret to sign with, the first is {first['id']}:" in detail
    db.execute("UPDATE postrider.subscription SET state = 'deleted'")
    assert complaints(cli) == (0, [])


@pytest.mark.parametrize("damage", [
    "sealed = set_byte(sealed, 0, get_byte(sealed, 0) # 1)",
    "nonce = set_byte(nonce, 0, get_byte(nonce, 0) # 1)",
    "sealed = ''",
    "subscription_id = (SELECT min(id) FROM postrider.subscription)",
])
def test_a_doctor_finds_a_secret_that_does_not_open(cli, api, db, damage):
    made = [api.subscribe("http://127.0.0.1:9/") for _ in range(2)]
    last = int(made[1]["id"])
    # It stands on a second page, behind many that open.
    db.execute("""
        INSERT INTO postrider.subscription_secret (subscription_id, key_id, nonce, sealed)
        SELECT subscription_id, key_id, nonce, sealed
          FROM postrider.subscription_secret, generate_series(1, 600)
         WHERE subscription_id = %s""", (int(made[0]["id"]),))
    db.execute("""
        INSERT INTO postrider.subscription_secret (subscription_id, key_id, nonce, sealed)
        SELECT subscription_id, key_id, nonce, sealed
          FROM postrider.subscription_secret WHERE subscription_id = %s""", (last,))
    assert complaints(cli) == (0, [])
    db.execute(f"UPDATE postrider.subscription_secret SET {damage}"
               " WHERE id = (SELECT max(id) FROM postrider.subscription_secret)")
    status, [(check, detail)] = complaints(cli)
    assert status == 1 and check == "secrets"
    assert "1 do not open under the key that they name" in detail
    assert not any(s["secret"] in detail for s in made)


def test_a_doctor_warns_of_lanes_that_are_stuck(cli, api, db):
    subscription = int(api.subscribe("http://127.0.0.1:9/")["id"])
    for asset in ("a", "b"):
        api.event({}, asset=asset)
    assert complaints(cli, "warning") == (0, [])
    db.execute("UPDATE postrider.lane SET due_at = now() - interval '2 minutes'"
               " WHERE subscription_id = %s", (subscription,))
    status, [(check, detail)] = complaints(cli, "warning")
    assert status == 0 and check == "lanes"
    assert detail.startswith("2 should move and do not: the view postrider.stuck")


def test_a_doctor_warns_of_settings_that_lose_what_was_accepted(cli, db):
    def said():
        return [(row["finding"], row["detail"]) for row in json.loads(cli("doctor", "--json"))
                if row["check"] == "durability"]

    [(finding, detail)] = said()
    assert finding == "warning"
    assert detail.startswith("fsync=off, full_page_writes=off: a crash may lose what was accepted")
    db.execute(f"ALTER DATABASE {db.name} SET synchronous_commit = off")
    assert "synchronous_commit=off" in said()[0][1]


QUICKLY = {"RES_OPTIONS": "timeout:1 attempts:1"}


def test_a_doctor_looks_names_up(cli, api, db):
    def said():
        rows = json.loads(cli.run("doctor", "--json", extra=QUICKLY).stdout)
        [row] = [row for row in rows if row["check"] == "names"]
        return row["finding"], row["detail"]

    assert said() == ("ok", "no subscription has a name to look up")
    for _ in range(2):
        api.subscribe("http://localhost:9/")
    assert said() == ("ok", "1 looked up")
    api.subscribe("https://no-such-a.example.com/")
    finding, detail = said()
    assert finding == "warning" and detail.startswith(
        "1 of 2 cannot be looked up from here, the first is no-such-a.example.com (")
    api.subscribe("https://no-such-b.example.com/")
    db.execute("UPDATE postrider.subscription SET state = 'paused' WHERE url ~ 'localhost'")
    finding, detail = said()
    assert finding == "bad" and detail.startswith("2 of 2 cannot be looked up")


def test_a_doctor_without_a_key_says_what_it_left_out(cli, api):
    api.subscribe("http://127.0.0.1:9/")
    status, found = findings(cli, "--secret-key-file=")
    assert status == 0
    assert [check for check in found if found[check] == "skipped"] == ["key file", "secrets"]


def test_a_doctor_finds_what_others_may_read(cli, tmp_path):
    path = tmp_path / "key"
    cli("keygen", str(path))
    path.chmod(0o644)
    status, found = findings(cli, f"--secret-key-file={path}")
    assert status == 1 and found["key file"] == "bad"


def test_a_doctor_finds_that_no_database_answers(tmp_path):
    status, found = findings(Cli({"database": f"host={tmp_path}"}))
    assert status == 1 and found["database"] == "bad"


def test_a_command_without_a_database_says_so_at_once(tmp_path):
    said = refused(Cli({"database": f"host={tmp_path}"}), 1, "tenant", "list")
    assert str(tmp_path) in said


def test_help_names_every_command(cli):
    help_text = cli("help")
    for words in ("migrate [--status]", "tenant create NAME", "key create", "key revoke ID",
                  "subscription list", "subscription pause ID", "keygen FILE", "doctor",
                  "Exit status", "database_role"):
        assert words in help_text
    assert cli("--help") == help_text
    assert cli("migrate", "--help").startswith("postrider migrate [--status] [--json]")
    assert cli("--help", "migrate") == cli("migrate", "--help")


def test_the_version_is_one_line(cli):
    assert re.fullmatch(r"postrider \d+\.\d+\.\d+\n", cli("version"))
    assert cli("--version") == cli("version")


def test_all_but_help_and_completion_can_print_json(cli, tmp_path):
    commands = cli("help").split("Commands:\n")[1].split("\nWith --json")[0]
    usages = re.findall(r"^  (\S.*)$", commands, re.M)
    assert [usage for usage in usages if "--json" not in usage] == ["completion bash", "help"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", cli.json("version")["version"])
    path = str(tmp_path / "key")
    assert cli.json("keygen", path) == {"file": path, "added": False}
    assert cli.json("keygen", "--add", path)["added"] is True


def in_man_page():
    """{command: its options}, as the man page has them."""
    page = (Path(__file__).parents[2] / "scripts/man/postrider.1").read_text()
    found = {}
    for words in re.findall(r"^\.It Ic (.*)$", page, re.M):
        command = re.match(r"[a-z]+( [a-z-]+)?(?= |$)", words)[0]
        found[command] = re.findall(r"(?:Fl |Fl Fl )-([a-z]+)", words)
    return found


def test_the_man_page_has_each_command_and_option_of_the_help(cli):
    commands = cli("help").split("Commands:\n")[1].split("\nWith --json")[0]
    wanted = {}
    for usage in re.findall(r"^  (\S.*)$", commands, re.M):
        command = re.match(r"[a-z]+( [a-z-]+)?(?= |$)", usage)[0]
        wanted[command] = [name for name in re.findall(r"--([a-z]+)", usage) if name != "json"]
    assert in_man_page() == wanted


def test_no_command_is_a_usage_error(cli):
    assert "which command?" in refused(cli, 2)
    assert "which command?" in refused(cli, 2, "--json")
    assert "fly: no such command" in refused(cli, 2, "fly")
    assert "no such command" in refused(cli, 2, "key")


@pytest.mark.parametrize("args", [[], ["-n"]])
def test_a_receiver_with_a_wrong_log_level_does_not_start(args):
    done = subprocess.run([str(binary("postrider-receiver")), "--log-level=loud", *args],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "log_level: want error, warn, info or debug" in done.stderr


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(binary("postrider")), "version"], stdout=full,
                              stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
