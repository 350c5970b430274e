"""What is secret reaches whom it is for, and shows nowhere else."""

import base64
import json
import re

import pytest

from .daemons import Cli
from .wait import until

TOKEN = "Bearer tok_7f3a9c0e5b1d"


def sightings(text, secrets):
    """Which of them stand in a text, as they are or in another guise."""
    found = []
    for name, secret in secrets.items():
        guises = [secret, secret.removeprefix("whsec_").removeprefix("whsk_")]
        for guise in list(guises):
            guises += [guise.encode().hex(), base64.b64encode(guise.encode()).decode()]
        if any(guise in text for guise in guises):
            found.append(name)
    return found


def test_headers_of_a_subscription_are_on_its_requests(api, dispatch, endpoint):
    api.subscribe(endpoint.url, headers={"X-Tenant": "7", "x-note": "a, b"},
                  secret_headers={"Authorization": TOKEN})
    api.event({})
    until(lambda: endpoint.requests, "it is sent")
    headers = endpoint.requests[0].headers
    assert (headers["x-tenant"], headers["x-note"], headers["authorization"]) == (
        "7", "a, b", TOKEN)
    assert headers.get_all("host") == [f"127.0.0.1:{endpoint.port}"]
    assert headers.get_all("content-type") == ["application/json"]


@pytest.mark.parametrize("column, value", [
    ("x-a\r\nx-b", "1"), ("host", "elsewhere"), ("webhook-signature", "v1,AAAA"),
    ("x-a", "1\nhost: elsewhere"), ("x-a", "")])
def test_a_header_that_somebody_wrote_into_the_table_is_not_sent(
        api, dispatch, endpoint, db, column, value):
    api.subscribe(endpoint.url)
    for constraint, in db.rows("""
            SELECT conname FROM pg_constraint
             WHERE conrelid = 'postrider.subscription'::regclass AND contype = 'c'
               AND pg_get_constraintdef(oid) LIKE '%headers%'"""):
        db.execute(f"ALTER TABLE postrider.subscription DROP CONSTRAINT {constraint}")
    db.execute("UPDATE postrider.subscription SET headers = %s",
               (json.dumps({column: value}),))
    api.event({})
    [reason] = until(lambda: db.rows("SELECT reason FROM postrider.attempt"), "an attempt")[0]
    assert reason == "it has a header that cannot be sent"
    assert endpoint.requests == []


def test_no_secret_is_in_a_log_an_output_or_the_database(
        make_ingest, make_dispatch, admin_key, endpoint, db, settings, secret_key_file,
        client_certificate):
    certificate, key = client_certificate
    ingest, dispatch = make_ingest(), make_dispatch()
    api = ingest.api(admin_key)
    made = api.subscribe(
        endpoint.url, secret_headers={"authorization": TOKEN}, ed25519_signature=True,
        older_signature=True, tls_certificate=certificate, tls_key=key, max_attempts=2,
        retry_base_ms=100)
    path = f"/v1/subscriptions/{made['id']}"
    rotated = api.post(f"{path}/rotate-secret", {}).expect(200)
    rekeyed = api.post(f"{path}/rotate-signing-key", {}).expect(200)
    secrets = {
        "API key": admin_key, "secret": made["secret"], "new secret": rotated["secret"],
        "signing key": made["signing_key"], "new signing key": rekeyed["signing_key"],
        "header": TOKEN, "TLS key": key.splitlines()[1],
        "key file": secret_key_file.read_text().strip()}

    # What is well, what fails, what is refused, and what does not open.
    endpoint.script(200, 500, 500, "drop", 404)
    for n in range(4):
        api.event({"n": n})
    api.patch(path, {"secret_headers": {"authorization": TOKEN + "\n"}}).expect(422)
    api.patch(path, {"tls_certificate": certificate, "tls_key": key[:-40]}).expect(422)
    api.post(f"{path}/rotate-secret", {"secret": made["secret"] + "="}).expect(422)
    until(lambda: db.value("SELECT count(*) FROM postrider.deliveries"
                           " WHERE state IN ('delivered', 'dead')") == 4, "all are over")
    db.execute("UPDATE postrider.subscription_secret SET sealed = set_byte(sealed, 0,"
               " get_byte(sealed, 0) # 1)")
    db.execute("UPDATE postrider.subscription SET version = version + 1")
    api.event({"n": 5})
    until(lambda: db.value("SELECT count(*) FROM postrider.deliveries WHERE state = 'dead'") >= 3,
          "it is set aside")

    cli = Cli(settings)
    said = [cli.run(*words) for words in (
        ("subscription", "list", "--tenant", "acme", "--json"), ("key", "list", "--json"),
        ("doctor", "--json"), ("rekey",), ("tenant", "list"))]
    shown = [api.get(path).body.decode(), api.get("/v1/subscriptions").body.decode(),
             api.get(f"{path}/deliveries").body.decode()]
    assert "authorization" in shown[0] and "whpk_" in shown[0]
    stored = "\n".join(
        str(row) for table, in db.rows(
            "SELECT format('postrider.%I', tablename) FROM pg_tables WHERE schemaname = 'postrider'")
        for row in db.rows(f"SELECT t::text FROM {table} t"))
    assert made["id"] in stored
    for where, text in {
            "ingest's log": ingest.log(), "dispatch's log": dispatch.log(),
            "postrider's output": "".join(done.stdout + done.stderr for done in said),
            "the API": "".join(shown), "the database": stored}.items():
        assert not sightings(text, secrets), where
    # The programs had something to say.
    assert re.search("set aside|does not open|attempt", dispatch.log() + stored)
