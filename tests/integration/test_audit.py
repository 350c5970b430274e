"""Who changed what, when and from where, as a chain that only grows."""

import getpass
import hashlib
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from .api import Api
from .daemons import Cli
from .statement import SQL, record
from .wait import until

MIGRATIONS = SQL.parent / "migrations"
HERE = f"{getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def operator(ingest, cli):
    return ingest.api(cli.json("key", "create", "--role", "operator")["key"])


@pytest.fixture
def tamper(db):
    """Change a table as somebody would who is root."""
    def run(statement, *parameters):
        db.execute("SET session_replication_role = replica")
        db.execute(statement, parameters)
        db.execute("SET session_replication_role = origin")
    return run


def note(db, n=1, **fields):
    """As a program does: entries that say who and what, a transaction each."""
    for _ in range(n):
        db.execute("INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)"
                   " VALUES (%s, %s, %s, %s, %s)",
                   (fields.get("actor", "cli"), fields.get("tenant_id"),
                    fields.get("action", "test.done"), fields.get("subject", "1"),
                    json.dumps(fields.get("detail", {}))))


def audit(api, query=""):
    return api.get(f"/v1/audit{query}").expect(200)["audit"]


def refused(cli, *args):
    done = cli.run("audit", "verify", *args)
    assert done.returncode == 1 and done.stdout == "", done
    return done.stderr


# -- what is noted --

def test_a_change_over_http_says_who_when_from_where_and_what(
        operator, tenant, ingest, endpoint, db):
    made = operator.post("/v1/keys", {"role": "admin", "tenant": tenant}).expect(201)
    before = db.value("SELECT now()")
    api = ingest.api(made["key"])
    path = f"/v1/subscriptions/{api.subscribe(endpoint.url)['id']}"
    api.patch(path, {"max_attempts": 3}).expect(200)
    api.post(f"{path}/pause").expect(200)
    api.post(f"{path}/rotate-secret", {}).expect(200)
    api.post(f"{path}/replay", {"since": "2026-01-01T00:00:00Z"}).expect(202)
    entries = audit(operator)[::-1]
    assert [entry["action"] for entry in entries[-5:]] == [
        "subscription.created", "subscription.updated", "subscription.paused",
        "subscription.secret_rotated", "replay.started"]
    for entry in entries[-5:]:
        assert (entry["actor"], entry["source"], entry["tenant"]) == (
            f"key:{made['id']}", "127.0.0.1", tenant)
    assert entries[-4]["detail"] == {"before": {"max_attempts": 12}, "after": {"max_attempts": 3}}
    assert entries[-5]["at"] > before.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert [int(entry["id"]) for entry in entries] == list(range(1, len(entries) + 1))


def test_a_change_with_the_command_says_who_ran_it_and_where(cli, tenant, api, endpoint):
    made = api.subscribe(endpoint.url)["id"]
    key = cli.json("key", "create", "--role", "viewer", "--tenant", tenant, "--name", "ada")["id"]
    cli("key", "revoke", key)
    cli("subscription", "pause", made)
    cli("subscription", "rotate-secret", made)
    cli("replay", "dead", made)
    entries = cli.json("audit", "list", "--actor", "cli")
    assert [(entry["action"], entry["subject"]) for entry in entries[::-1]] == [
        ("tenant.created", tenant), ("key.created", "1"), ("key.created", key),
        ("key.revoked", key), ("subscription.paused", made),
        ("subscription.secret_rotated", made), ("replay.started", "1")]
    assert {entry["source"] for entry in entries} == {HERE}
    assert entries[4]["detail"] == {"after": {
        "role": "viewer", "name": "ada", "expires_at": None}}


def test_sealing_all_secrets_anew_is_noted(api, endpoint, settings, secret_key_file, tmp_path):
    api.subscribe(endpoint.url)
    ring = tmp_path / "ring"
    ring.write_text(secret_key_file.read_text())
    ring.chmod(0o600)
    cli = Cli({**settings, "secret_key_file": ring})
    cli("rekey")
    assert cli.json("audit", "list", "--action", "secrets.resealed") == []
    cli("keygen", "--add", str(ring))
    key = cli.json("rekey")["key"]
    [entry] = cli.json("audit", "list", "--action", "secrets.resealed")
    assert (entry["subject"], entry["detail"]) == (key, {"secrets": 1})


def test_a_policy_s_change_is_noted_too(dispatch, api, endpoint, operator):
    endpoint.script(410)
    made = api.subscribe(endpoint.url)["id"]
    api.event(1)
    entry = until(lambda: [entry for entry in audit(operator, "?actor=dispatch")],
                  "it is noted")[0]
    assert (entry["action"], entry["subject"]) == ("subscription.disabled", made)
    assert entry["source"]
    assert entry["detail"] == {
        "before": {"state": "active", "state_reason": None},
        "after": {"state": "disabled", "state_reason": "the receiver answered 410 Gone"}}


def test_a_circuit_s_change_is_noted_with_what_it_was(make_dispatch, api, endpoint, operator):
    endpoint.script(500, 500, 200)
    made = api.subscribe(endpoint.url, circuit_after=2, retry_base_ms=1, retry_cap_ms=1)["id"]
    api.event(1)
    make_dispatch(poll="50ms")
    entries = until(lambda: (found := audit(operator, f"?subject={made}&actor=dispatch"))
                    and len(found) == 2 and found, "it is open, and closed again")
    assert [(entry["action"], entry["detail"]) for entry in entries[::-1]] == [
        ("subscription.circuit_opened", {"before": {"circuit": "closed", "failures": 1},
                                         "after": {"circuit": "open", "failures": 2}}),
        ("subscription.circuit_closed", {"before": {"circuit": "half_open", "failures": 2},
                                         "after": {"circuit": "closed", "failures": 0}})]


def test_a_policy_that_waits_for_a_person_notes_what_the_person_left(queue, db, cluster, other):
    queue.accept("gone")
    [(lane, token, _)] = queue.claim()
    other.execute("UPDATE postrider.subscription SET state = 'paused', state_reason = 'by hand'")
    with cluster.connect(db.name) as one, ThreadPoolExecutor(1) as pool:
        recorded = pool.submit(record, one, lane, token, "dead", statuses=[410], disables=True)
        until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type"
                               " = 'Lock' AND pid = %s", (one.info.backend_pid,)), "it waits")
        other.commit()
        recorded.result()
    assert db.value("SELECT detail -> 'before' FROM postrider.audit") == {
        "state": "paused", "state_reason": "by hand"}


def test_what_is_refused_or_fails_is_not_noted(operator, db, tenant):
    n = db.value("SELECT count(*) FROM postrider.audit")
    operator.post("/v1/tenants", {"name": tenant}).expect(409)
    operator.post("/v1/keys", {"role": "admin", "tenant": "nobody"}).expect(422)
    operator.post("/v1/keys/99/revoke").expect(404)
    assert db.value("SELECT count(*) FROM postrider.audit") == n
    assert db.value("SELECT number FROM postrider.audit_head") == n


def test_a_rolled_back_change_leaves_no_gap(db, cli):
    note(db)
    with pytest.raises(ZeroDivisionError), db.connection.transaction():
        note(db)
        raise ZeroDivisionError
    note(db)
    assert db.rows("SELECT number FROM postrider.audit ORDER BY number") == [(1,), (2,)]
    cli("audit", "verify")


# -- the chain --

def recompute(db):
    """Insist on the chain; returns what its entries say."""
    found, last = [], bytes(32)
    for number, content, kept in db.rows(
            "SELECT number, postrider.audit_content(a), hash FROM postrider.audit a"
            " ORDER BY number"):
        last = hashlib.sha256(last + content.encode()).digest()
        assert kept == last
        found.append(json.loads(content))
        assert number == found[-1][0] == len(found)
    assert db.rows("SELECT number, hash FROM postrider.audit_head") == [(len(found), last)]
    return found


def test_the_chain_is_as_its_description_says(db):
    detail = {"a": "ä\u2028", "b": 1.50}
    note(db, 3, detail=detail)
    assert [entry[7] for entry in recompute(db)] == [detail] * 3


def test_the_hash_covers_all_that_an_entry_says(db, tamper, cli):
    note(db, 3)
    for change in ("actor = 'x'", "source = 'x'", "tenant_id = 7", "action = 'x.y'",
                   "subject = 'x'", "detail = '{\"x\": 1}'",
                   "at = at + interval '1 microsecond'", "hash = sha256('x')"):
        tamper("CREATE TEMP TABLE was AS SELECT * FROM postrider.audit WHERE number = 2")
        tamper(f"UPDATE postrider.audit SET {change} WHERE number = 2")
        assert "entry 2 is not what it was" in refused(cli), change
        tamper("UPDATE postrider.audit a SET actor = w.actor, source = w.source,"
               " tenant_id = w.tenant_id, action = w.action, subject = w.subject,"
               " detail = w.detail, at = w.at, hash = w.hash FROM was w WHERE a.number = 2")
        tamper("DROP TABLE was")
        assert cli.json("audit", "verify")["entries"] == 3


def test_a_removed_entry_shows(db, tamper, cli):
    note(db, 5)
    tamper("DELETE FROM postrider.audit WHERE number = 3")
    assert "entry 3 is missing: the next is 4" in refused(cli)
    tamper("DELETE FROM postrider.audit WHERE number < 3")
    assert "entry 1 is missing: the next is 4" in refused(cli)


def test_a_cut_end_shows(db, tamper, cli):
    note(db, 5)
    tamper("DELETE FROM postrider.audit WHERE number > 3")
    assert "the end is missing: entry 3 is the last, and there were 5" in refused(cli)
    tamper("DELETE FROM postrider.audit")
    assert "the end is missing: entry 0 is the last, and there were 5" in refused(cli)


def test_an_end_that_was_cut_with_its_head_shows_to_who_noted_the_head(db, tamper, cli):
    note(db, 5)
    noted = cli.json("audit", "verify")["head"]
    assert re.fullmatch(r"5:[0-9a-f]{64}", noted)
    tamper("DELETE FROM postrider.audit WHERE number > 3")
    tamper("UPDATE postrider.audit_head SET number = 3, hash = (SELECT hash FROM postrider.audit"
           " WHERE number = 3)")
    assert cli.json("audit", "verify")["entries"] == 3  # nothing here can tell
    assert "the end is missing: entry 3 is the last, and there were 5" in refused(
        cli, "--earlier", noted)
    note(db, 4, actor="another")
    assert "entry 5 was another one earlier" in refused(cli, "--earlier", noted)


def test_an_earlier_head_is_on_the_way_of_a_sound_chain(db, cli):
    note(db)
    noted = cli.json("audit", "verify")["head"]
    note(db, 3)
    assert cli.json("audit", "verify", "--earlier", noted)["entries"] == 4
    for wrong in ("5", "5:", "5:" + "0" * 63, "x:" + "0" * 64, "5:" + "g" * 64, ""):
        done = cli.run("audit", "verify", "--earlier", wrong)
        assert done.returncode == 2 and "a head that it once printed" in done.stderr


def test_a_forged_entry_shows(db, tamper, cli):
    note(db, 2)
    tamper("INSERT INTO postrider.audit (actor, action, subject) VALUES ('x', 'x', 'x')")
    assert "was never linked" in refused(cli)
    tamper("UPDATE postrider.audit SET number = 3, source = 'x', hash = sha256('x')"
           " WHERE number IS NULL")
    assert "entry 3 is not what it was" in refused(cli)
    tamper("UPDATE postrider.audit a SET hash = sha256((SELECT hash FROM postrider.audit"
           " WHERE number = 2) || convert_to(postrider.audit_content(a), 'UTF8'))"
           " WHERE number = 3")
    assert "entry 3 is not the one that the head has" in refused(cli)


def test_a_head_that_is_another_or_gone_shows(db, tamper, cli):
    note(db, 2)
    tamper("UPDATE postrider.audit_head SET hash = sha256('x')")
    assert "entry 2 is not the one that the head has" in refused(cli)
    tamper("DELETE FROM postrider.audit_head")
    assert "the chain has no head" in refused(cli)


def test_a_long_chain_is_recomputed_page_by_page(db, cli):
    with db.connection.transaction():
        note(db, 1203)
    assert cli.json("audit", "verify")["entries"] == 1203


def test_entries_of_many_transactions_at_once_are_one_chain(db, cluster, cli):
    def work(n):
        with cluster.connect(db.name) as connection:
            for i in range(40):
                with connection.transaction():
                    for _ in range(1 + i % 3):
                        connection.execute(
                            "INSERT INTO postrider.audit (actor, action, subject)"
                            " VALUES (%s, 'test.done', %s)", (f"key:{n}", str(i)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
        pool.submit(cli, "audit", "verify").result()
    assert cli.json("audit", "verify")["entries"] == db.value(
        "SELECT count(*) FROM postrider.audit")
    assert db.value("SELECT count(*) FROM (SELECT at < lag(at) OVER (ORDER BY number) AS is_back"
                    " FROM postrider.audit) a WHERE is_back") == 0


def test_who_writes_an_entry_early_in_a_transaction_cannot_be_part_of_a_deadlock(
        db, cluster, api, endpoint, operator):
    """The chain is locked last, at the commit, whatever a transaction locks meanwhile."""
    made = api.subscribe(endpoint.url)["id"]
    path = f"/v1/subscriptions/{made}"
    with cluster.connect(db.name) as one, ThreadPoolExecutor(1) as pool:
        one.execute("BEGIN")
        one.execute("INSERT INTO postrider.audit (actor, action, subject) VALUES ('x', 'x', 'x')")
        api.patch(path, {"max_attempts": 3}).expect(200)  # an entry that does not wait for it
        one.execute("SELECT FROM postrider.subscription WHERE id = %s FOR UPDATE", (int(made),))
        waiting = pool.submit(api.patch, path, {"max_attempts": 4})
        until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type"
                               " = 'Lock' AND datname = current_database()") == 1, "it waits")
        one.execute("COMMIT")
        waiting.result().expect(200)
    assert [entry["action"] for entry in audit(operator, "?limit=3")] == [
        "subscription.updated", "x", "subscription.updated"]


def test_a_chain_that_cannot_be_had_fails_the_change_and_nothing_else(
        api, endpoint, other):
    path = f"/v1/subscriptions/{api.subscribe(endpoint.url)['id']}"
    other.execute("SELECT FROM postrider.audit_head FOR UPDATE")
    api.patch(path, {"max_attempts": 3}).expect(503)
    api.event(1)
    other.rollback()
    assert api.get(path).expect(200)["max_attempts"] == 12
    api.patch(path, {"max_attempts": 3}).expect(200)


# -- append-only --

def test_not_even_its_owner_changes_what_was_noted(db):
    note(db, 2)
    for change in ("UPDATE postrider.audit SET actor = 'x'", "DELETE FROM postrider.audit",
                   "DELETE FROM postrider.audit WHERE false", "TRUNCATE postrider.audit",
                   "UPDATE postrider.audit SET number = NULL"):
        for role in ("postrider_owner", "postgres"):
            db.execute(f"SET ROLE {role}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only grows"):
                db.execute(change)
            db.execute("RESET ROLE")
    assert db.value("SELECT count(*) FROM postrider.audit WHERE actor = 'cli'") == 2


def test_what_an_entry_says_of_itself_is_not_believed(db, cli):
    db.execute("INSERT INTO postrider.audit (actor, action, subject, at, source)"
               " VALUES ('x', 'x', 'x', '2001-01-01', 'elsewhere')")
    entry, = cli.json("audit", "list")
    assert entry["at"] > "2025" and entry["source"] == "this host"


def test_what_was_noted_before_there_was_a_chain_is_in_it(empty_db):
    """The migration links what it finds, in its order and with its times."""
    db = empty_db
    db.execute((SQL / "schema_prepare.sql").read_text())
    db.execute("SET ROLE postrider_owner")
    for path in sorted(MIGRATIONS.glob("*.sql")):
        if path.stem == "0012_audit":
            db.execute("INSERT INTO postrider.audit (at, actor, action, subject) VALUES"
                       " ('2026-01-01', 'cli', 'a', '1'), ('2026-01-03', 'cli', 'b', '1'),"
                       " ('2026-01-02', 'cli', 'c', '1')")
        if path.stem <= "0012_audit":
            db.execute(path.read_text())
    note(db)
    assert [(entry[5], entry[3]) for entry in recompute(db)] == [
        ("a", None), ("b", None), ("c", None), ("test.done", "this host")]
    assert [day for day, in db.rows(
        "SELECT extract(day FROM at)::integer FROM postrider.audit ORDER BY number LIMIT 3")] == [
            1, 3, 3]


# -- reading it --

def test_entries_are_found_by_what_they_say(operator, cli, db, tenant):
    tenant_id = db.value("SELECT id FROM postrider.tenant")
    for n in range(4):
        note(db, actor=f"key:{n % 2}", action=f"test.a{n % 3}", subject=str(n), tenant_id=(
            tenant_id if n == 2 else None))
    rows = dict(db.rows("SELECT subject, to_char(at AT TIME ZONE 'UTC',"
                        " 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM postrider.audit"
                        " WHERE action ~ '^test'"))
    for filters, found in (
            ({"actor": "key:1"}, ["3", "1"]), ({"action": "test.a0"}, ["3", "0"]),
            ({"subject": "1", "actor": "key:1"}, ["1"]), ({"actor": "key:7"}, []),
            ({"tenant": tenant, "action": "test.a2"}, ["2"]), ({"tenant": "nobody"}, []),
            ({"since": rows["2"]}, ["3", "2"]),
            ({"since": rows["1"], "until": rows["3"]}, ["2", "1"]),
            ({"since": rows["3"], "until": rows["3"]}, []),
            ({"since": "2099-01-01T00:00:00Z"}, []), ({"until": "2001-01-01T00:00:00Z"}, [])):
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        assert [entry["subject"] for entry in audit(operator, f"?{query}")] == found, filters
        options = [f"--{name}={value}" for name, value in filters.items()]
        assert [entry["subject"] for entry in cli.json("audit", "list", *options)] == found


def test_the_newest_come_first_and_pages_end(operator, cli, db):
    note(db, 250)
    total = db.value("SELECT count(*) FROM postrider.audit")
    seen, before = [], ""
    while before is not None:
        page = operator.get(f"/v1/audit?limit=60{before}").expect(200)
        seen += [int(entry["id"]) for entry in page["audit"]]
        note(db)  # what comes meanwhile does not shift what follows
        before = page["next_before"] and f"&before={page['next_before']}"
    assert seen == list(range(total, 0, -1))
    assert len(audit(operator)) == 100
    assert [int(entry["id"]) for entry in cli.json("audit", "list", "--limit", "230")] == list(
        range(total + 5, total + 5 - 230, -1))
    for wrong in ("0", "x", "1000001", "-1"):
        assert cli.run("audit", "list", "--limit", wrong).returncode == 2


def test_a_page_costs_the_same_however_few_fit(operator, cli, db):
    note(db, subject="needle")
    with db.connection.transaction():
        db.execute("INSERT INTO postrider.audit (actor, action, subject)"
                   " SELECT 'x', 'test.done', 'hay' FROM generate_series(1, 12000)")
    page = operator.get("/v1/audit?subject=needle").expect(200)
    assert page["audit"] == [] and page["next_before"]
    page = operator.get(f"/v1/audit?subject=needle&before={page['next_before']}").expect(200)
    assert [entry["subject"] for entry in page["audit"]] == ["needle"]
    assert page["next_before"] is None
    assert [e["subject"] for e in cli.json("audit", "list", "--subject", "needle")] == ["needle"]


def test_only_an_operator_reads_it(ingest, cli, tenant):
    for role in ("publisher", "viewer", "admin"):
        key = cli.json("key", "create", "--role", role, "--tenant", tenant)["key"]
        answer = Api(ingest.port, key).get("/v1/audit")
        assert "this takes an operator's key" in answer.expect(403)["detail"]
