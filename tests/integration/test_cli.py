"""The operator's command: what it makes works, what it prints can be read by a program."""

import json
import os
import re
import stat
import subprocess

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
def test_an_impossible_name_is_refused(cli, name):
    assert "a tenant's name is" in refused(cli, 1, "tenant", "create", name)


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
    (["--role", "admin"], "for which --tenant"),
    (["--tenant", "acme"], "--role publisher, admin or operator"),
    (["--role", "operator", "--tenant", "acme"], "no tenant"),
    (["--role", "admin", "--tenant"], "--tenant takes a NAME"),
    (["--role", "admin", "--json=yes", "--tenant", "acme"], "--json takes no value"),
    (["--role", "admin", "--tenant", "acme", "--colour", "red"], "--colour: no such option"),
    (["a", "b", "c"], "too many"),
])
def test_a_key_that_is_asked_for_wrongly_is_a_usage_error(cli, tenant, args, why):
    assert why in refused(cli, 2, "key", "create", *args)


@pytest.mark.parametrize("args, why", [
    (["--role", "king", "--tenant", "acme"], "a key's role is"),
    (["--role", "admin", "--tenant", "acme", "--name", "x" * 101], "a key's role is"),
    (["--role", "admin", "--tenant", "nobody"], "no such tenant"),
])
def test_a_key_that_cannot_be_is_refused(cli, tenant, args, why):
    assert why in refused(cli, 1, "key", "create", *args)


@pytest.mark.parametrize("operand", ["x", "0", "1x", "99999999999999999999"])
def test_an_id_that_is_none_is_a_usage_error(cli, operand):
    assert "an id is a number" in refused(cli, 2, "key", "revoke", operand)


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


def findings(cli, *args):
    done = cli.run("doctor", "--json", *args)
    return done.returncode, {row["check"]: row["finding"] for row in json.loads(done.stdout)}


def test_a_doctor_is_content_with_what_is_well(cli, api):
    api.subscribe("http://127.0.0.1:9/")
    status, found = findings(cli)
    assert status == 0 and set(found.values()) == {"ok"}, found


def test_a_doctor_finds_another_key(cli, api, tmp_path):
    api.subscribe("http://127.0.0.1:9/")
    cli("keygen", str(tmp_path / "other"))
    status, found = findings(cli, f"--secret-key-file={tmp_path}/other")
    assert status == 1
    assert [check for check in found if found[check] == "bad"] == ["secrets"]


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
                  "subscription list", "keygen FILE", "doctor", "Exit status", "database_role"):
        assert words in help_text
    assert cli("--help") == help_text
    assert cli("migrate", "--help").startswith("postrider migrate [--status] [--json]")


def test_the_version_is_one_line(cli):
    assert re.fullmatch(r"postrider \d+\.\d+\.\d+\n", cli("version"))
    assert cli("--version") == cli("version")


def test_no_command_is_a_usage_error(cli):
    refused(cli, 2)
    assert "fly: no such command" in refused(cli, 2, "fly")
    assert "no such command" in refused(cli, 2, "key")


def test_output_that_cannot_be_written_is_a_failure():
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(binary("postrider")), "version"], stdout=full,
                              stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
