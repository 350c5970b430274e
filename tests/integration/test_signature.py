"""Requests of a real dispatcher, verified by implementations that are not ours.

The packages are fetched with npm into the build's folder, in the versions of
npm/package-lock.json.  Where node or npm is missing, or the registry cannot be
reached, the tests say so and pass.
"""

import base64
import collections
import json
import os
import subprocess
from pathlib import Path

import pytest

from .packages import fetch
from .wait import until

SOURCE = Path(__file__).parent / "npm"

Judgement = collections.namedtuple("Judgement", "standardwebhooks svix keys older")

# Awkward for whoever does not take the bytes as they are.
DATA = {"text": "ünï\u2028☃ \\ \" </script>", "number": 12345678901234567890, "none": None}


@pytest.fixture(scope="session")
def verify():
    """Ask about requests: a Judgement for each."""
    folder = Path(os.environ["POSTRIDER_BIN"]).parent / "npm"
    fetch(SOURCE, folder)

    def ask(requests, secrets=(), public_keys=()):
        question = {
            "secrets": secrets, "public_keys": public_keys,
            "requests": [{"headers": {name.lower(): value for name, value in r.headers.items()},
                          "body": base64.b64encode(r.body).decode()} for r in requests]}
        answer = subprocess.run(
            ["node", "verify.js"], cwd=folder, input=json.dumps(question), text=True,
            stdout=subprocess.PIPE, timeout=60, check=True).stdout
        return [Judgement(**judgement) for judgement in json.loads(answer)]

    return ask


@pytest.fixture
def send(api, dispatch, endpoint):
    """Send an event; returns the request that came."""
    def send():
        before = len(endpoint.requests)
        api.event(DATA)
        until(lambda: len(endpoint.requests) > before, "it is sent")
        return endpoint.requests[before]
    return send


def rotate(api, subscription, what, **how):
    return api.post(f"/v1/subscriptions/{subscription['id']}/rotate-{what}", how).expect(200)


def test_the_packages_verify_what_is_sent_and_nothing_else(api, send, endpoint, verify):
    secret = api.subscribe(endpoint.url)["secret"]
    other = api.subscribe("http://127.0.0.1:9/", event_types=["no.such"])["secret"]
    request = send()
    changed = request._replace(body=request.body.replace(b"none", b"nine"))
    assert verify([request, changed], [other, secret]) == [
        Judgement([secret], [secret], [], []), Judgement([], [], [], [])]


def test_both_secrets_verify_during_a_rotation(api, send, endpoint, verify):
    made = api.subscribe(endpoint.url)
    old = made["secret"]
    new = rotate(api, made, "secret")["secret"]
    newer = rotate(api, made, "secret")["secret"]
    [judgement] = verify([send()], [old, new, newer])
    assert judgement.standardwebhooks == judgement.svix == [old, new, newer]


def test_only_the_new_secret_verifies_after_a_rotation(api, send, endpoint, verify):
    made = api.subscribe(endpoint.url)
    new = rotate(api, made, "secret", overlap_seconds=0)["secret"]
    [judgement] = verify([send()], [made["secret"], new])
    assert judgement.standardwebhooks == judgement.svix == [new]


def test_a_public_key_verifies_beside_a_secret(api, send, endpoint, verify):
    made = api.subscribe(endpoint.url, ed25519_signature=True)
    [public] = made["public_keys"]
    other = api.subscribe("http://127.0.0.1:9/", event_types=["no.such"], ed25519_signature=True)
    request = send()
    changed = request._replace(body=request.body.replace(b"none", b"nine"))
    assert verify([request, changed], [made["secret"]], [public, *other["public_keys"]]) == [
        Judgement([made["secret"]], [made["secret"]], [public], []),
        Judgement([], [], [], [])]


def test_both_public_keys_verify_during_a_rotation(api, send, endpoint, verify):
    made = api.subscribe(endpoint.url, ed25519_signature=True)
    [old] = made["public_keys"]
    rotate(api, made, "signing-key")
    keys = api.get(f"/v1/subscriptions/{made['id']}").expect(200)["public_keys"]
    assert len(keys) == 2 and keys[1] == old
    secret = rotate(api, made, "secret")["secret"]
    [judgement] = verify([send()], [made["secret"], secret], keys)
    assert judgement.keys == keys
    assert judgement.standardwebhooks == judgement.svix == [made["secret"], secret]


def test_the_older_scheme_is_signed_with_the_newest_secret(api, send, endpoint, verify):
    made = api.subscribe(endpoint.url, older_signature=True)
    new = rotate(api, made, "secret")["secret"]
    request = send()
    assert request.headers["X-Event-ID"] == request.headers["webhook-id"]
    [judgement] = verify([request], [made["secret"], new])
    assert judgement.older == [new]
    assert judgement.standardwebhooks == [made["secret"], new]


def test_every_try_is_signed_anew(api, dispatch, endpoint, verify):
    endpoint.script(500, 200)
    secret = api.subscribe(endpoint.url, retry_base_ms=2500)["secret"]
    api.event(DATA)
    until(lambda: len(endpoint.requests) == 2, "it is tried again")
    first, second = endpoint.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert int(first.headers["webhook-timestamp"]) < int(second.headers["webhook-timestamp"])
    assert [j.svix for j in verify([first, second], [secret])] == [[secret], [secret]]
