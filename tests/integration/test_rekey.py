"""The keys that secrets are sealed under: how they are kept, and how they are changed."""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import subprocess

import pytest

from .daemons import Cli, Dispatch, Ingest, binary, environment
from .wait import never, until


def key_id(key):
    return hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]


class Keys:
    """A key file, with its keys as hex digits, the first one first."""

    def __init__(self, path, *keys):
        self.path = path
        self.keys = keys or (secrets.token_hex(32),)
        self.write("".join(key + "\n" for key in self.keys))

    def write(self, text, mode=0o600):
        self.path.write_text(text)
        self.path.chmod(mode)
        return self.path

    def read(self):
        return tuple(self.path.read_text().splitlines())


@pytest.fixture
def old(tmp_path):
    return Keys(tmp_path / "old")


@pytest.fixture
def both(tmp_path, old):
    """A new key first, and the old one."""
    return Keys(tmp_path / "both", secrets.token_hex(32), *old.keys)


@pytest.fixture
def new(tmp_path, both):
    return Keys(tmp_path / "new", both.keys[0])


@pytest.fixture
def secret_key_file(old):
    """What the programs of a test have, unless it says otherwise."""
    return old.path


@pytest.fixture
def ring(settings):
    """The operator's command, with another key file."""
    return lambda keys: Cli({**settings, "secret_key_file": keys.path})


def is_signed(request, secret):
    """With a signature of this secret, among others."""
    headers = request.headers
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return f"v1,{mac}" in headers["webhook-signature"].split(" ")


def copy_secrets(db, n):
    """Let each stored secret be there `n` times more."""
    db.execute("""
        INSERT INTO postrider.subscription_secret (subscription_id, key_id, nonce, sealed)
        SELECT subscription_id, key_id, nonce, sealed
          FROM postrider.subscription_secret, generate_series(1, %s)
         WHERE kind = 'secret'""", (n,))


def under(db, keys):
    """How many secrets are sealed under the first of these keys."""
    return db.value("SELECT count(*) FROM postrider.subscription_secret WHERE key_id = %s",
                    (key_id(keys.keys[0]),))


# -- the key file --


def test_a_key_is_added_before_those_that_are_there(cli, old):
    before = old.read()
    old.path.chmod(0o400)
    said = cli("keygen", "--add", str(old.path))
    after = old.read()
    assert re.fullmatch("[0-9a-f]{64}", after[0]) and after[1:] == before
    assert after[0] not in before and after[0] not in said
    assert stat.S_IMODE(old.path.stat().st_mode) == 0o400
    assert "postrider rekey" in said
    assert os.listdir(old.path.parent) == [old.path.name]


def test_a_key_is_added_to_the_file_that_a_link_leads_to(cli, old, tmp_path):
    (tmp_path / "link").symlink_to(old.path)
    cli("keygen", f"{tmp_path}/link", "--add")
    assert (tmp_path / "link").is_symlink() and len(old.read()) == 2


@pytest.mark.parametrize("spoil, why", [
    (lambda keys: keys.path.unlink(), "No such file"),
    (lambda keys: keys.write("no key\n"), "line 1"),
    (lambda keys: keys.write(keys.keys[0], mode=0o644), "chmod 600"),
    (lambda keys: keys.write("".join(f"{i:064x}\n" for i in range(16))), "16 keys"),
    (lambda keys: Keys(keys.path.with_suffix(".new")), "File exists"),
])
def test_a_key_is_not_added_where_something_is_wrong(cli, old, spoil, why):
    spoil(old)
    before = {path: path.read_text() for path in old.path.parent.iterdir()}
    done = cli.run("keygen", "--add", str(old.path))
    assert done.returncode == 1 and why in done.stderr
    assert {path: path.read_text() for path in old.path.parent.iterdir()} == before


@pytest.mark.parametrize("text, mode, why", [
    (None, None, "No such file"),
    ("", 0o600, "is empty: make a new one with `postrider keygen`, or restore it"),
    ("0" * 63 + "\n", 0o600, "line 1: want 64 hex digits, as `postrider keygen` writes them"),
    (f"{1:064}\n\n", 0o600, "line 2: want 64 hex digits"),
    (f"{1:064}\n{2:064}\n{1:064}\n", 0o600, f"line 3: this key ({key_id(f'{1:064}')}) is there"),
    (f"{1:064}\n", 0o644, "others may read or change it; chmod 600 it"),
    (f"{1:064}\n", 0o620, "others may read or change it; chmod 600 it"),
])
@pytest.mark.parametrize("program", [Ingest, Dispatch])
def test_no_program_starts_with_a_key_file_that_is_wrong(
        program, programs, settings, tmp_path, text, mode, why):
    path = tmp_path / "spoilt"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    made = programs(program, {**settings, "secret_key_file": path}, start=False).launch()
    assert made.wait() == 1
    assert str(path) in made.log() and why in made.log()
    assert "000000" not in made.log()


@pytest.mark.parametrize("program", [Ingest, Dispatch])
def test_no_program_starts_without_a_key_that_a_secret_is_sealed_under(
        program, programs, settings, api, db, old, new):
    subscription = api.subscribe("http://127.0.0.1:9/")["id"]
    made = programs(program, {**settings, "secret_key_file": new.path}, start=False).launch()
    assert made.wait() == 1
    for word in (key_id(old.keys[0]), f"of subscription {subscription}", "secret_key_file",
                 "postrider doctor"):
        assert word in made.log()
    # What signs no more is nobody's concern.
    db.execute("UPDATE postrider.subscription_secret SET expires_at = now()")
    made.start()


def test_a_doctor_knows_what_is_under_an_older_key(ring, api, both):
    api.subscribe("http://127.0.0.1:9/")
    found = {row["check"]: row for row in json.loads(ring(both)("doctor", "--json"))}
    assert found["secrets"]["finding"] == "warning"
    assert found["secrets"]["detail"].startswith("1 sealed under an older key: run `postrider re")
    ring(both)("rekey")
    found = {row["check"]: row for row in json.loads(ring(both)("doctor", "--json"))}
    assert found["secrets"]["finding"] == "ok"


# -- secrets that a dispatcher cannot open --


def test_a_delivery_waits_for_a_dispatcher_that_has_the_key(
        make_ingest, make_dispatch, admin_key, endpoint, db, both):
    ignorant = make_dispatch()
    # The operator gave the new key to ingest alone.
    api = make_ingest(secret_key_file=both.path).api(admin_key)
    made = [api.subscribe(endpoint.url)["secret"] for _ in range(3)]
    for n in range(10):
        api.event({"n": n}, asset=f"a-{n}")
    until(lambda: key_id(both.keys[0]) in ignorant.log(), "the dispatcher says which key it lacks")
    never(lambda: endpoint.requests, "a request without a signature")
    assert ignorant.log().count("deliveries wait: a secret is sealed under a key") == 1
    assert db.value("SELECT count(*) FROM postrider.attempt") == 0
    assert db.rows("SELECT DISTINCT state, attempts FROM postrider.deliveries") == [("pending", 0)]
    ignorant.stop()
    make_dispatch(secret_key_file=both.path)
    until(lambda: len(endpoint.requests) == 30, "all are sent", seconds=30)
    for secret in made:
        assert sum(is_signed(request, secret) for request in endpoint.requests) == 10


def test_a_dispatcher_sends_again_once_the_secret_is_under_a_key_that_it_has(
        make_ingest, make_dispatch, admin_key, endpoint, ring, old, both, tmp_path):
    dispatch = make_dispatch()
    api = make_ingest(secret_key_file=both.path).api(admin_key)
    api.subscribe(endpoint.url)
    api.event({})
    until(lambda: "deliveries wait" in dispatch.log(), "it says that it lacks a key")
    # Under the dispatcher's own key again.
    ring(Keys(tmp_path / "back", *reversed(both.keys)))("rekey")
    until(lambda: len(endpoint.requests) == 1, "it is sent", seconds=30)


def test_a_secret_that_somebody_changed_is_set_aside_with_a_reason(
        api, dispatch, endpoint, db):
    api.subscribe(endpoint.url)
    db.execute("UPDATE postrider.subscription_secret SET sealed = set_byte(sealed, 0,"
               " get_byte(sealed, 0) # 1)")
    api.event({})
    [reason] = until(lambda: db.rows("SELECT reason FROM postrider.attempt"), "an attempt")[0]
    assert "a secret does not open" in reason
    assert db.rows("SELECT state FROM postrider.deliveries") == [("dead",)]
    assert endpoint.requests == []


# -- postrider rekey --


@pytest.fixture
def background(settings, both):
    """Start `postrider rekey --json` with both keys; its output is piped."""
    started = []

    def start():
        process = subprocess.Popen(
            [str(binary("postrider")), "rekey", "--json"],
            env=environment({**settings, "secret_key_file": both.path}),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def waiting(db):
    """How many are waiting for a row's lock."""
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'postrider'"
                    " AND wait_event_type = 'Lock' AND datname = current_database()")


def hold(other, nth):
    """Lock the nth of all secrets."""
    other.execute("""
        SELECT FROM postrider.subscription_secret
         WHERE id = (SELECT id FROM postrider.subscription_secret
                      ORDER BY id OFFSET %s LIMIT 1)
           FOR UPDATE""", (nth - 1,))


def test_all_is_sealed_under_the_first_key_and_the_others_can_go(
        api, make_dispatch, endpoint, db, ring, both, new):
    secret = api.subscribe(endpoint.url)["secret"]
    copy_secrets(db, 3)
    assert ring(both).json("rekey") == {
        "key": key_id(both.keys[0]), "resealed": 4, "missing_key": 0, "broken": 0}
    assert under(db, new) == 4
    assert db.value("SELECT count(DISTINCT nonce) FROM postrider.subscription_secret") == 4
    assert ring(both).json("rekey")["resealed"] == 0
    make_dispatch(secret_key_file=new.path)
    api.event({})
    until(lambda: endpoint.requests, "it is sent")
    assert is_signed(endpoint.requests[0], secret)


def test_secrets_of_all_kinds_are_sealed_anew(
        api, make_dispatch, endpoint, db, ring, both, new, client_certificate):
    certificate, key = client_certificate
    made = api.subscribe(endpoint.url, secret_headers={"authorization": "Bearer abc"},
                         ed25519_signature=True, tls_certificate=certificate, tls_key=key)
    assert ring(both).json("rekey")["resealed"] == 4
    assert [row[0] for row in db.rows("""
        SELECT kind FROM postrider.subscription_secret WHERE key_id = %s ORDER BY kind""",
                                      (key_id(new.keys[0]),))] == [
        "header", "secret", "signing_key", "tls_key"]
    make_dispatch(secret_key_file=new.path)
    api.event({})
    until(lambda: endpoint.requests, "it is sent")
    request = endpoint.requests[0]
    assert is_signed(request, made["secret"]) and " v1a," in request.headers["webhook-signature"]
    assert request.headers["authorization"] == "Bearer abc"


def test_people_are_told_when_the_other_keys_can_go(ring, both, new):
    assert "other keys" in ring(both)("rekey")
    assert "other keys" not in ring(new)("rekey")


def test_a_rekey_that_is_killed_is_taken_up_where_it_was(
        api, db, other, ring, background, both):
    api.subscribe("http://127.0.0.1:9/")
    copy_secrets(db, 249)
    hold(other, 50)
    process = background()
    until(lambda: waiting(db) == 1, "it has sealed what it can of the first hundred")
    process.kill()
    process.wait()
    other.rollback()
    assert under(db, both) == 99
    assert ring(both).json("rekey")["resealed"] == 151
    assert under(db, both) == 250


def test_two_at_once_seal_each_secret_once(api, db, other, background, both):
    api.subscribe("http://127.0.0.1:9/")
    copy_secrets(db, 249)
    hold(other, 1)
    processes = [background(), background()]
    until(lambda: waiting(db) == 2, "both want the first")
    other.rollback()
    outputs = [process.communicate(timeout=30) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sum(json.loads(out)["resealed"] for out, _ in outputs) == 250
    assert under(db, both) == 250


def test_what_is_registered_behind_it_is_found_as_well(api, db, other, background, both):
    api.subscribe("http://127.0.0.1:9/")
    copy_secrets(db, 3)
    gap = db.value("""
        DELETE FROM postrider.subscription_secret
         WHERE id = (SELECT min(id) FROM postrider.subscription_secret)
        RETURNING id""")
    hold(other, 3)
    process = background()
    until(lambda: waiting(db) == 1, "it is at the last one")
    # As a transaction that drew its number earlier and commits only now.
    db.execute("""
        INSERT INTO postrider.subscription_secret (id, subscription_id, key_id, nonce, sealed)
        OVERRIDING SYSTEM VALUE
        SELECT %s, subscription_id, key_id, nonce, sealed
          FROM postrider.subscription_secret WHERE key_id <> %s LIMIT 1""",
               (gap, key_id(both.keys[0])))
    other.rollback()
    out, _ = process.communicate(timeout=30)
    assert json.loads(out)["resealed"] == 4 and under(db, both) == 4


def test_a_secret_that_goes_away_meanwhile_is_no_failure(api, db, other, background, both):
    api.subscribe("http://127.0.0.1:9/")
    copy_secrets(db, 2)
    other.execute("DELETE FROM postrider.subscription_secret WHERE id ="
                  " (SELECT max(id) FROM postrider.subscription_secret)")
    process = background()
    until(lambda: waiting(db) == 1, "it wants the last one")
    other.commit()
    out, _ = process.communicate(timeout=30)
    assert json.loads(out)["resealed"] == 2 and under(db, both) == 2


def test_it_says_how_far_it_is(api, db, other, background):
    api.subscribe("http://127.0.0.1:9/")
    copy_secrets(db, 9)
    hold(other, 5)
    process = background()
    until(lambda: waiting(db) == 1, "it is half-way")
    never(lambda: process.poll() is not None, "it ends while a secret is held", seconds=1.2)
    other.rollback()
    out, said = process.communicate(timeout=30)
    assert "9 of 10 sealed anew\n" in said
    assert json.loads(out)["resealed"] == 10


def test_what_does_not_open_stays_as_it_is_and_is_counted(api, db, ring, both):
    for _ in range(3):
        api.subscribe("http://127.0.0.1:9/")
    first, second, third = (row[0] for row in db.rows(
        "SELECT id FROM postrider.subscription_secret ORDER BY id"))
    db.execute("UPDATE postrider.subscription_secret SET key_id = 'feedfeedfeedfeed'"
               " WHERE id = %s", (first,))
    db.execute("UPDATE postrider.subscription_secret SET sealed = sealed || '\\x00'"
               " WHERE id = %s", (second,))
    before = db.rows("SELECT * FROM postrider.subscription_secret WHERE id <> %s", (third,))
    done = ring(both).run("rekey", "--json")
    assert done.returncode == 1 and "2 secrets do not open" in done.stderr
    assert json.loads(done.stdout) == {
        "key": key_id(both.keys[0]), "resealed": 1, "missing_key": 1, "broken": 1}
    assert db.rows("SELECT * FROM postrider.subscription_secret WHERE id <> %s",
                   (third,)) == before
    assert under(db, both) == 1


def test_it_wants_a_key_file(settings, old):
    done = Cli({**settings, "secret_key_file": ""}).run("rekey")
    assert done.returncode == 2 and "secret_key_file is not set" in done.stderr
    old.write("x")
    done = Cli(settings).run("rekey")
    assert done.returncode == 1 and "line 1" in done.stderr


def test_deliveries_go_on_and_verify_while_secrets_are_sealed_anew(
        make_ingest, make_dispatch, admin_key, make_endpoint, db, ring, both):
    # In the order of the manual: dispatchers learn the key first.
    make_dispatch(secret_key_file=both.path)
    api = make_ingest().api(admin_key)
    subscribed = []
    for _ in range(5):
        receiver = make_endpoint()
        subscribed.append((receiver, api.subscribe(receiver.url)["secret"]))
    for n in range(40):
        api.event({"n": n}, asset=f"a-{n}")
        if n % 10 == 5:
            ring(both)("rekey")
            subscribed.append((receiver, api.subscribe(receiver.url)["secret"]))
    # Some are sealed by ingest, which does not have the key yet.
    ring(both)("rekey")
    until(lambda: db.value("SELECT count(*) FROM postrider.deliveries WHERE state <> 'delivered'")
          == 0, "all are delivered", seconds=30)
    assert db.value("SELECT count(*) FROM postrider.deliveries WHERE attempts <> 1") == 0
    for receiver, secret in subscribed[:4]:
        assert len(receiver.requests) == 40
        assert all(is_signed(request, secret) for request in receiver.requests)
    assert under(db, both) == len(subscribed)
