"""Headers, certificates and signing secrets of a subscription: what is secret is
sealed and never shown again, and what signs can be rotated."""

import base64
import hashlib
import hmac
import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import psycopg
import pytest

from .api import Api
from .wait import until

DAY = 86400
WHSK = ("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicM"
        "Fs6Kvg==")
WHPK = "whpk_" + base64.b64encode(base64.b64decode(WHSK[5:])[32:]).decode()


def openssl(*args, **how):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, **how).stdout


def certify(folder, name, *options):
    """A key and a certificate of its own, as PEM texts."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    openssl("req", "-x509", "-newkey", *options, "-nodes", "-keyout", str(key), "-out",
            str(certificate), "-days", "1", "-subj", f"/CN={name}")
    return certificate.read_text(), key.read_text()


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """PEM texts by name."""
    folder = tmp_path_factory.mktemp("pem")
    curve = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    certificate, key = certify(folder, "client", *curve)
    ca, other_key = certify(folder, "other", *curve)
    locked = openssl("pkey", "-in", str(folder / "client.key"), "-aes128", "-passout",
                     "pass:secret").decode()
    short, short_key = certify(folder, "short", "rsa:1024")
    return {"certificate": certificate, "key": key, "ca": ca, "other_key": other_key,
            "locked": locked, "short": short, "short_key": short_key}


@pytest.fixture
def made(api, endpoint):
    return api.subscribe(endpoint.url)


@pytest.fixture
def path(made):
    return f"/v1/subscriptions/{made['id']}"


def etag(api, path):
    return api.get(path).headers["ETag"]


def problem(answer, status, pointer=None):
    body = answer.expect(status)
    if pointer is not None:
        assert body["pointer"] == pointer, body
    return body["detail"]


def secrets(db, kind):
    return db.value("SELECT count(*) FROM postrider.subscription_secret WHERE kind = %s",
                    (kind,))


def audit(db):
    """The newest entry: what was done, and the detail."""
    return db.rows("SELECT action, detail FROM postrider.audit ORDER BY id DESC LIMIT 1")[0]


def next_request(api, endpoint):
    """The request that the next event makes."""
    before = len(endpoint.requests)
    api.event(1)
    until(lambda: len(endpoint.requests) > before, "it is sent")
    return endpoint.requests[-1]


def signed(request):
    return b".".join([request.headers["webhook-id"].encode(),
                      request.headers["webhook-timestamp"].encode(), request.body])


def signature(secret, request):
    digest = hmac.digest(base64.b64decode(secret[6:]), signed(request), hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def signatures(request, version):
    return [word for word in request.headers["webhook-signature"].split()
            if word.startswith(version + ",")]


def is_signed_by(request, public_key, folder):
    """One of its v1a signatures is the key's, OpenSSL says."""
    der = bytes.fromhex("302a300506032b6570032100") + base64.b64decode(public_key[5:])
    (folder / "public").write_bytes(der)
    (folder / "text").write_bytes(signed(request))
    for word in signatures(request, "v1a"):
        (folder / "signature").write_bytes(base64.b64decode(word[4:]))
        done = subprocess.run(
            ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey",
             "public", "-rawin", "-in", "text", "-sigfile", "signature"],
            cwd=folder, capture_output=True, check=False)
        if done.returncode == 0:
            return True
    return False


# -- headers --

def test_headers_are_shown_by_lower_case_names_and_replaced_as_a_whole(api, endpoint, db):
    made = api.subscribe(endpoint.url, headers={"X-Tenant": "7", "X-Quoted": '"a\\b"\tc'})
    assert made["headers"] == {"x-tenant": "7", "x-quoted": '"a\\b"\tc'}
    path = f"/v1/subscriptions/{made['id']}"
    for given, shown in (({"Authorization": "Bearer x"}, {"authorization": "Bearer x"}),
                         (None, {}), ({"a": "1"}, {"a": "1"}), ({}, {})):
        before = etag(api, path)
        assert api.patch(path, {"headers": given}).expect(200)["headers"] == shown
        assert api.get(path).expect(200)["headers"] == shown
        assert api.get("/v1/subscriptions").expect(200)["subscriptions"][0]["headers"] == shown
        assert etag(api, path) != before
    assert audit(db)[1] == {"before": {"headers": {"a": "1"}}, "after": {"headers": {}}}


def test_of_secret_headers_only_the_names_are_shown(api, endpoint, db):
    told = "Bearer tell-nobody"
    given = {"X-Key": told + "1", "Authorization": told + "2"}
    answers = [api.post("/v1/subscriptions", {"url": endpoint.url, "secret_headers": given})]
    path = answers[0].headers["Location"]
    answers += [api.get(path), api.get("/v1/subscriptions"),
                api.patch(path, {"max_attempts": 3})]
    for answer in answers:
        shown = answer.json.get("subscriptions", [answer.json])[0]
        assert shown["secret_headers"] == ["authorization", "x-key"]
    answers.append(api.patch(path, {"secret_headers": {"x-other": told + "3"}}))
    assert answers[-1].expect(200)["secret_headers"] == ["x-other"]
    assert audit(db)[1] == {"before": {"secrets": ["header authorization", "header x-key"]},
                            "after": {"secrets": ["header x-other"]}}
    answers.append(api.patch(path, {"secret_headers": {"x-bad": told + "\n"}}))
    for answer in answers:
        assert b"tell-nobody" not in answer.body
    assert "tell-nobody" not in str(db.rows("TABLE postrider.audit"))
    assert b"tell-nobody" not in b"".join(
        bytes(sealed) for sealed, in db.rows("SELECT sealed FROM postrider.subscription_secret"))
    assert api.patch(path, {"secret_headers": None}).expect(200)["secret_headers"] == []
    assert secrets(db, "header") == 0


def test_both_kinds_of_headers_are_sent_as_they_are_now(api, endpoint, dispatch):
    made = api.subscribe(endpoint.url, headers={"X-Tenant": "7"},
                         secret_headers={"Authorization": "Bearer one"})
    request = next_request(api, endpoint)
    assert (request.headers["x-tenant"], request.headers["authorization"]) == ("7", "Bearer one")
    path = f"/v1/subscriptions/{made['id']}"
    api.patch(path, {"secret_headers": {"Authorization": "Bearer two"}}).expect(200)
    request = next_request(api, endpoint)
    assert (request.headers["x-tenant"], request.headers["authorization"]) == ("7", "Bearer two")
    api.patch(path, {"headers": None, "secret_headers": {"X-Key": "k"}}).expect(200)
    request = next_request(api, endpoint)
    assert request.headers.get_all("x-key") == ["k"]
    assert request.headers["x-tenant"] is None and request.headers["authorization"] is None


WRONG_HEADERS = [
    '["x"]', '"x"', "7", "true",
    '{"x": 1}', '{"x": null}', '{"x": ["a"]}', '{"x": ""}', '{"": "a"}',
    '{"x y": "a"}', '{"x:": "a"}', '{"x\\r\\ny": "a"}', '{"x\\u0000": "a"}', '{"\u00e4": "a"}',
    '{"x": "a\\r\\nb: c"}', '{"x": "a\\nb"}', '{"x": "a\\rb"}', '{"x": "a\\u0000b"}',
    '{"x": "\\u007f"}', '{"x": "\u00e4"}', '{"x": " a"}', '{"x": "a\\t"}',
    '{"host": "a"}', '{"Content-Length": "1"}', '{"TRANSFER-ENCODING": "chunked"}',
    '{"webhook-id": "1"}', '{"Postrider-Attempt": "1"}', '{"proxy-authorization": "a"}',
    '{"x": "a", "X": "b"}', '{"%s": "a"}' % ("x" * 65), '{"x": "%s"}' % ("a" * 4097),
    json.dumps({f"x-{n}": "a" for n in range(33)}),
    json.dumps({f"x-{n}": "a" * 4093 for n in range(2)} | {"a": "b"}),
]


def test_a_wrong_header_of_either_kind_is_refused_with_its_field(api, path, endpoint):
    tag = etag(api, path)
    for text in WRONG_HEADERS:
        for field in ("headers", "secret_headers"):
            new = f'{{"url":"{endpoint.url}","{field}":{text}}}'.encode()
            change = f'{{"{field}":{text}}}'.encode()
            for answer in (api.post("/v1/subscriptions", new), api.patch(path, change)):
                assert problem(answer, 422, f"/{field}").startswith(f"{field}: "), text
    assert etag(api, path) == tag
    assert len(api.get("/v1/subscriptions").expect(200)["subscriptions"]) == 1


def test_a_header_at_each_limit_is_taken(api, path):
    for field in ("headers", "secret_headers"):
        for given in ({"x" * 64: "a" * 4096}, {f"x-{n}": "a" for n in range(32)},
                      {"x-1": "a" * 4093, "x-2": "b" * 4093}):
            shown = api.patch(path, {field: given}).expect(200)[field]
            assert sorted(shown) == sorted(given)
        api.patch(path, {field: None}).expect(200)


def test_a_name_is_of_one_kind(api, path, endpoint, db):
    both = {"headers": {"X-Key": "a"}, "secret_headers": {"x-kEY": "b"}}
    for answer in (api.post("/v1/subscriptions", {"url": endpoint.url, **both}),
                   api.patch(path, both)):
        assert '"x-key"' in problem(answer, 422, "/secret_headers")
    for one, other in (("headers", "secret_headers"), ("secret_headers", "headers")):
        api.patch(path, {one: {"X-Key": "a"}}).expect(200)
        tag = etag(api, path)
        assert "headers and secret_headers" in problem(
            api.patch(path, {other: {"x-key": "b"}, "max_attempts": 3}), 422, f"/{other}")
        assert etag(api, path) == tag
        # It can change its kind.
        shown = api.patch(path, {other: {"x-key": "b"}, one: None}).expect(200)
        assert list(shown[other]) == ["x-key"] and not shown[one]
        api.patch(path, {other: None}).expect(200)
    assert secrets(db, "header") == 0


def test_the_limits_hold_for_both_kinds_together(api, path):
    half = {f"x-{n}": "a" for n in range(16)}
    more = {f"y-{n}": "a" for n in range(17)}
    long, longer = {"x-1": "a" * 4093}, {"y-1": "a" * 4094}
    for one, other in (("headers", "secret_headers"), ("secret_headers", "headers")):
        for first, second, says in ((half, more, "more than 32"), (long, longer, "8192 octets")):
            problem(api.patch(path, {one: first, other: second}), 422, "/secret_headers")
            api.patch(path, {one: first}).expect(200)
            assert says in problem(api.patch(path, {other: second}), 422, f"/{other}")
            second = {name: value[:4093] for name, value in list(second.items())[:16]}
            api.patch(path, {other: second}).expect(200)
            api.patch(path, {one: None, other: None}).expect(200)


def test_the_database_itself_takes_no_such_header(db, made):
    for headers in ("[]", '"x"', '{"X": "a"}', '{"x": 1}', '{"x": null}', '{"x": ["a"]}',
                    '{"x y": "a"}', '{"": "a"}', '{"x\\n": "a"}', '{"x": "a\\nb"}',
                    '{"x": "a\\rb"}', '{"x": "\\u007f"}', '{"x": "\u00e4"}',
                    json.dumps({f"x{n}": "a" * 4000 for n in range(6)})):
        with pytest.raises(psycopg.errors.CheckViolation):
            db.execute("UPDATE postrider.subscription SET headers = %s", (headers,))
    for column in ("tls_ca", "tls_certificate"):
        for text in ("x" * 65537, "-----BEGIN PRIVATE KEY-----"):
            with pytest.raises(psycopg.errors.CheckViolation):
                db.execute(f"UPDATE postrider.subscription SET {column} = %s", (text,))


# -- certificates --

def test_a_certificate_is_shown_and_its_key_never(api, path, pem, db):
    pair = {"tls_certificate": pem["certificate"], "tls_key": pem["key"]}
    answer = api.patch(path, pair)
    shown = answer.expect(200)
    assert shown["tls_certificate"] == pem["certificate"] and "tls_key" not in shown
    assert secrets(db, "tls_key") == 1
    assert audit(db)[1]["after"]["secrets"] == ["tls_key"]
    key = pem["key"].splitlines()[1]
    for other in (answer, api.get(path), api.get("/v1/subscriptions")):
        assert key.encode() not in other.body
    assert key not in str(db.rows("TABLE postrider.audit"))
    assert key not in str(db.rows("TABLE postrider.subscription"))
    api.patch(path, pair).expect(200)
    assert secrets(db, "tls_key") == 1
    shown = api.patch(path, {"tls_certificate": None, "tls_key": None}).expect(200)
    assert shown["tls_certificate"] is None and secrets(db, "tls_key") == 0


def test_a_new_one_may_bring_all_of_it(api, endpoint, pem, db):
    made = api.subscribe(
        endpoint.url, headers={"a": "1"}, secret_headers={"b": "2"}, tls_ca=pem["ca"],
        tls_certificate=pem["certificate"], tls_key=pem["key"], ed25519_signature=True,
        signing_key=WHSK, secret="whsec_" + "QUJD" * 8)
    assert (made["tls_ca"], made["tls_certificate"]) == (pem["ca"], pem["certificate"])
    assert (made["secret"], made["signing_key"]) == ("whsec_" + "QUJD" * 8, WHSK)
    assert made["public_keys"] == [WHPK] and made["ed25519_signature"] is True
    assert "v1a" in made["signing"]
    assert db.rows("SELECT kind, name, public_key, size FROM postrider.subscription_secret"
                   " ORDER BY kind") == [
        ("header", "b", None, 1), ("secret", None, None, 24), ("signing_key", None, WHPK, 64),
        ("tls_key", None, None, len(pem["key"]))]
    assert audit(db)[1]["secrets"] == ["header b", "secret", f"signing_key {WHPK}", "tls_key"]


def test_certificate_and_key_are_given_together_or_not_at_all(api, path, endpoint, pem):
    tag = etag(api, path)
    for given, pointer in (
            ({"tls_certificate": pem["certificate"]}, "/tls_key"),
            ({"tls_key": pem["key"]}, "/tls_certificate"),
            ({"tls_certificate": pem["certificate"], "tls_key": None}, "/tls_key"),
            ({"tls_certificate": None, "tls_key": pem["key"]}, "/tls_certificate"),
            ({"tls_key": None}, "/tls_certificate"),
            ({"tls_certificate": None}, "/tls_key")):
        for answer in (api.patch(path, given),
                       api.post("/v1/subscriptions", {"url": endpoint.url, **given})):
            assert "together" in problem(answer, 422, pointer)
    assert etag(api, path) == tag


def test_a_wrong_certificate_key_or_authority_is_refused_with_its_field(
        api, path, endpoint, pem):
    tag = etag(api, path)
    pair = {"tls_certificate": pem["certificate"], "tls_key": pem["key"]}
    for given, pointer in (
            ({**pair, "tls_key": pem["other_key"]}, "/tls_key"),
            ({**pair, "tls_key": pem["locked"]}, "/tls_key"),
            ({**pair, "tls_key": pem["certificate"]}, "/tls_key"),
            ({**pair, "tls_key": "x"}, "/tls_key"),
            ({**pair, "tls_key": ""}, "/tls_key"),
            ({**pair, "tls_key": 7}, "/tls_key"),
            ({"tls_certificate": pem["short"], "tls_key": pem["short_key"]}, "/tls_key"),
            ({**pair, "tls_certificate": pem["key"]}, "/tls_certificate"),
            ({**pair, "tls_certificate": "x"}, "/tls_certificate"),
            ({**pair, "tls_certificate": ""}, "/tls_certificate"),
            ({"tls_ca": pem["key"]}, "/tls_ca"),
            ({"tls_ca": pem["ca"] + pem["key"]}, "/tls_ca"),
            ({"tls_ca": "x"}, "/tls_ca"),
            ({"tls_ca": ""}, "/tls_ca"),
            ({"tls_ca": pem["ca"] + "\0"}, "/tls_ca"),
            ({"tls_ca": [pem["ca"]]}, "/tls_ca")):
        for answer in (api.patch(path, given),
                       api.post("/v1/subscriptions", {"url": endpoint.url, **given})):
            detail = problem(answer, 422, pointer)
            assert detail.startswith(pointer[1:] + ": ") and "BEGIN" not in detail
    assert etag(api, path) == tag


def test_an_authority_is_shown_and_taken_back(api, path, pem):
    for ca in (pem["ca"], pem["ca"] + pem["certificate"], None):
        assert api.patch(path, {"tls_ca": ca}).expect(200)["tls_ca"] == ca
        assert api.get(path).expect(200)["tls_ca"] == ca


def test_a_form_that_is_too_long_is_refused(api, path, pem):
    long = {"tls_ca": pem["ca"] * (65536 // len(pem["ca"]) + 1)}
    problem(api.patch(path, long), 413)
    most = {"tls_ca": pem["ca"] * (60000 // len(pem["ca"]) - 2)}
    api.patch(path, most).expect(200)


# -- signing keys --

def test_a_signing_key_is_shown_once_and_signs_until_it_is_switched_off(
        api, path, endpoint, dispatch, db, tmp_path):
    assert api.get(path).expect(200)["ed25519_signature"] is False
    made = api.patch(path, {"ed25519_signature": True}).expect(200)
    assert made["signing_key"].startswith("whsk_") and "v1a" in made["signing"]
    assert "secret" not in made
    public, = made["public_keys"]
    key = base64.b64decode(made["signing_key"][5:])
    assert base64.b64decode(public[5:]) == key[32:]
    request = next_request(api, endpoint)
    assert len(signatures(request, "v1a")) == 1 and is_signed_by(request, public, tmp_path)
    assert len(signatures(request, "v1")) == 1

    tag = etag(api, path)
    again = api.patch(path, {"ed25519_signature": True}).expect(200)
    assert "signing_key" not in again and again["public_keys"] == [public]
    assert etag(api, path) == tag and secrets(db, "signing_key") == 1
    assert "signing_key" not in api.get(path).expect(200)

    off = api.patch(path, {"ed25519_signature": False}).expect(200)
    assert off["ed25519_signature"] is False and off["public_keys"] == []
    assert audit(db)[1] == {"before": {"secrets": [f"signing_key {public}"]}, "after": {}}
    assert secrets(db, "signing_key") == 0
    assert not signatures(next_request(api, endpoint), "v1a")
    new = api.patch(path, {"ed25519_signature": True, "signing_key": WHSK}).expect(200)
    assert (new["signing_key"], new["public_keys"]) == (WHSK, [WHPK])


def test_a_signing_key_that_cannot_be_taken_is_refused(api, path, endpoint):
    tag = etag(api, path)
    for given in ({"signing_key": WHSK}, {"signing_key": WHSK, "ed25519_signature": False},
                  {"signing_key": None, "ed25519_signature": True},
                  {"signing_key": WHSK[5:], "ed25519_signature": True},
                  {"signing_key": WHSK[:-4] + "AAA=", "ed25519_signature": True}):
        for answer in (api.patch(path, given),
                       api.post("/v1/subscriptions", {"url": endpoint.url, **given})):
            detail = problem(answer, 422, "/signing_key")
            assert WHSK[5:40] not in detail
    problem(api.patch(path, {"ed25519_signature": 1}), 422, "/ed25519_signature")
    assert etag(api, path) == tag
    api.patch(path, {"ed25519_signature": True}).expect(200)
    tag = etag(api, path)
    change = {"ed25519_signature": True, "signing_key": WHSK, "max_attempts": 3}
    assert "rotate-signing-key" in problem(api.patch(path, change), 422, "/signing_key")
    assert etag(api, path) == tag


# -- rotation --

def test_a_new_secret_signs_at_once_and_the_old_one_beside_it(
        api, made, path, endpoint, dispatch, db):
    next_request(api, endpoint)
    before = etag(api, path)
    answer = api.post(path + "/rotate-secret", {})
    new = answer.expect(200)
    assert answer.headers["ETag"] == etag(api, path) != before
    assert new["secret"].startswith("whsec_") and new["secret"] != made["secret"]
    assert "signing_key" not in new and "v1," in new["signing"]
    ends = datetime.fromisoformat(new["old_expires_at"])
    now = db.value("SELECT now()")
    assert now + timedelta(seconds=DAY - 60) < ends <= now + timedelta(seconds=DAY)
    request = next_request(api, endpoint)
    assert signatures(request, "v1") == [signature(new["secret"], request),
                                         signature(made["secret"], request)]
    assert set(new) - set(api.get(path).expect(200)) == {
        "secret", "signing", "verification_example", "old_expires_at"}
    assert audit(db) == ("subscription.secret_rotated", {"overlap_seconds": DAY})


def test_without_an_overlap_the_old_ones_stop_at_once(api, made, path, endpoint, dispatch, db):
    given = "whsec_" + base64.b64encode(b"0123456789" * 3).decode()
    api.post(path + "/rotate-secret", {}).expect(200)
    new = api.post(path + "/rotate-secret", {"secret": given, "overlap_seconds": 0}).expect(200)
    assert (new["secret"], new["old_expires_at"]) == (given, None)
    request = next_request(api, endpoint)
    assert signatures(request, "v1") == [signature(given, request)]
    assert secrets(db, "secret") == 1
    assert given[6:] not in str(db.rows("TABLE postrider.audit"))


def test_an_old_secret_ends_by_itself_and_the_next_rotation_removes_it(
        api, made, path, endpoint, dispatch, db):
    new = api.post(path + "/rotate-secret", {"overlap_seconds": 1}).expect(200)

    def is_alone():
        request = next_request(api, endpoint)
        return signatures(request, "v1") == [signature(new["secret"], request)]
    until(is_alone, "the old one signs no more")
    assert secrets(db, "secret") == 2
    api.post(path + "/rotate-secret", {}).expect(200)
    assert secrets(db, "secret") == 2


def test_no_secret_signs_for_longer_than_it_would_have_and_four_at_most(
        api, made, path, endpoint, dispatch, db):
    given = [made["secret"]]
    for overlap in (3600, 60, 2592000, 2592000, 2592000):
        new = api.post(path + "/rotate-secret", {"overlap_seconds": overlap}).expect(200)
        given.insert(0, new["secret"])
        left = [seconds for seconds, in db.rows(
            "SELECT extract(epoch FROM expires_at - now())::float8"
            " FROM postrider.subscription_secret WHERE expires_at IS NOT NULL ORDER BY id")]
        if len(given) == 4:
            assert left[0] <= 60 and left[1] <= 60 < left[2]
    assert len(left) == 3
    request = next_request(api, endpoint)
    assert signatures(request, "v1") == [signature(secret, request) for secret in given[:4]]
    assert 0 < left[0] <= 2592000 and secrets(db, "secret") == 4


def test_what_is_tried_again_is_signed_anew(api, made, path, endpoint, dispatch):
    """A lane under way comes back to its dispatcher, which no claim is asked for."""
    rotated = threading.Event()

    def fail_late(handler, _):
        rotated.wait(20)
        handler.send_response(503)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    endpoint.script(fail_late, 200)
    api.patch(path, {"retry_base_ms": 1}).expect(200)
    for n in range(2):
        api.event(n, asset="a")
    until(lambda: endpoint.requests, "the first is under way")
    new = api.post(path + "/rotate-secret", {"overlap_seconds": 0}).expect(200)
    rotated.set()
    until(lambda: len(endpoint.requests) == 3, "it is tried again, and the second is sent")
    first, *others = endpoint.requests
    assert signatures(first, "v1") == [signature(made["secret"], first)]
    assert all(signatures(request, "v1") == [signature(new["secret"], request)]
               for request in others)


def test_signing_keys_rotate_likewise(api, path, endpoint, dispatch, db, tmp_path):
    problem(api.post(path + "/rotate-signing-key", {}), 409)
    assert secrets(db, "signing_key") == 0
    first, = api.patch(path, {"ed25519_signature": True}).expect(200)["public_keys"]
    new = api.post(path + "/rotate-signing-key", {"signing_key": WHSK}).expect(200)
    assert (new["signing_key"], new["public_keys"]) == (WHSK, [WHPK, first])
    assert "secret" not in new and "v1a" in new["signing"]
    assert audit(db) == ("subscription.signing_key_rotated",
                         {"overlap_seconds": DAY, "before": [first], "after": WHPK})
    request = next_request(api, endpoint)
    assert len(signatures(request, "v1a")) == 2 and len(signatures(request, "v1")) == 1
    assert all(is_signed_by(request, key, tmp_path) for key in (first, WHPK))
    last = api.post(path + "/rotate-signing-key", {"overlap_seconds": 0}).expect(200)
    assert len(last["public_keys"]) == 1 and secrets(db, "signing_key") == 1
    request = next_request(api, endpoint)
    assert len(signatures(request, "v1a")) == 1
    assert is_signed_by(request, last["public_keys"][0], tmp_path)


WRONG_ROTATIONS = [
    ("", 400, ""), ("[]", 400, ""), ("null", 400, ""), ('{"x": 1}', 400, ""),
    ('{"overlap_seconds": -1}', 422, "/overlap_seconds"),
    ('{"overlap_seconds": 2592001}', 422, "/overlap_seconds"),
    ('{"overlap_seconds": 1.0}', 422, "/overlap_seconds"),
    ('{"overlap_seconds": 1e3}', 422, "/overlap_seconds"),
    ('{"overlap_seconds": null}', 422, "/overlap_seconds"),
    ('{"overlap_seconds": "60"}', 422, "/overlap_seconds"),
    ('{"overlap_seconds": 1, "overlap_seconds": 1}', 422, "/overlap_seconds"),
]


def test_a_wrong_rotation_is_refused_and_changes_nothing(api, path, db):
    api.patch(path, {"ed25519_signature": True}).expect(200)
    tag = etag(api, path)
    for which, field, wrong, other in (
            ("rotate-secret", "secret", "whsec_tooshort", "signing_key"),
            ("rotate-signing-key", "signing_key", "whsk_tooshort", "secret")):
        for text, status, pointer in [
                *WRONG_ROTATIONS, (f'{{"{field}": "{wrong}"}}', 422, f"/{field}"),
                (f'{{"{field}": null}}', 422, f"/{field}"), (f'{{"{other}": "x"}}', 400, "")]:
            detail = problem(api.post(f"{path}/{which}", text.encode()), status, pointer or None)
            assert wrong not in detail
        problem(api.post(f"{path}/{which}", headers={"If-Match": '"77"'}), 415)
        problem(api.post(f"{path}/{which}", {}, headers={"If-Match": '"77"'}), 412)
        problem(api.post(f"/v1/subscriptions/99/{which}", {}), 404)
    assert etag(api, path) == tag
    assert (secrets(db, "secret"), secrets(db, "signing_key")) == (1, 1)


def test_of_two_rotations_at_once_both_are_made_one_after_the_other(
        api, made, path, make_ingest, admin_key, endpoint, dispatch, db, cluster):
    others = [api, make_ingest().api(admin_key)]
    with cluster.connect(db.name) as blocker, ThreadPoolExecutor(2) as pool:
        blocker.execute("BEGIN; SELECT FROM postrider.subscription FOR UPDATE")
        answers = [pool.submit(other.post, path + "/rotate-secret", {}) for other in others]
        until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type"
                               " = 'Lock' AND datname = current_database()") == 2,
              "both wait")
        blocker.execute("ROLLBACK")
        given = [answer.result() for answer in answers]
    assert len({answer.headers["ETag"] for answer in given}) == 2
    request = next_request(api, endpoint)
    assert set(signatures(request, "v1")) == {
        signature(secret, request)
        for secret in (made["secret"], *(answer.expect(200)["secret"] for answer in given))}
    assert db.value("SELECT count(*) FROM postrider.subscription_secret"
                    " WHERE expires_at IS NULL") == 1


def test_of_two_rotations_of_one_version_one_wins(api, path, make_ingest, admin_key, db):
    others = [api, make_ingest().api(admin_key)]
    headers = {"If-Match": etag(api, path)}
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(
            lambda other: other.post(path + "/rotate-secret", {}, headers=headers), others))
    assert sorted(answer.status for answer in answers) == [200, 412]
    assert secrets(db, "secret") == 2


# -- who may, and what is left --

def test_a_stranger_rotates_nothing(api, cli, ingest, tenant, path, db):
    cli.json("tenant", "create", "other")
    for who in (("--tenant", "other", "--role", "admin"),
                ("--tenant", tenant, "--role", "publisher")):
        stranger = Api(ingest.port, cli.json("key", "create", *who)["key"])
        for which in ("rotate-secret", "rotate-signing-key"):
            assert stranger.post(f"{path}/{which}", {}).status in (403, 404)
    assert secrets(db, "secret") == 1


def test_nothing_secret_is_left_of_a_deleted_subscription(api, endpoint, pem, db):
    made = [api.subscribe(endpoint.url, secret_headers={"a": "1"}, ed25519_signature=True,
                          tls_certificate=pem["certificate"], tls_key=pem["key"])
            for _ in range(2)]
    path = f"/v1/subscriptions/{made[0]['id']}"
    api.post(path + "/rotate-secret", {}).expect(200)
    api.post(path + "/rotate-signing-key", {}).expect(200)
    api.delete(path).expect(204)
    assert db.rows("SELECT DISTINCT subscription_id, count(*) FROM postrider.subscription_secret"
                   " GROUP BY 1") == [(int(made[1]["id"]), 4)]
    problem(api.post(path + "/rotate-secret", {}), 404)


def test_all_of_it_can_be_asked_for_in_one_change(api, path, pem):
    before = etag(api, path)
    shown = api.patch(path, {
        "headers": {"a": "1"}, "secret_headers": {"b": "2"}, "tls_ca": pem["ca"],
        "tls_certificate": pem["certificate"], "tls_key": pem["key"],
        "ed25519_signature": True, "max_attempts": 3}).expect(200)
    assert int(etag(api, path).strip('"')) == int(before.strip('"')) + 1
    now = api.get(path).expect(200)
    assert {**shown, "signing": 0, "signing_key": 0} == {**now, "signing": 0, "signing_key": 0}


# -- the command --

def test_the_command_rotates_what_it_makes_or_is_given(cli, api, made, path, endpoint, dispatch,
                                                       db, tmp_path):
    new = cli.json("subscription", "rotate-secret", made["id"])
    assert new["id"] == made["id"] and new["old_expires_at"]
    given = "whsec_" + base64.b64encode(b"abcdefghij" * 3).decode()
    last = cli.json("subscription", "rotate-secret", made["id"], "--from=-", "--overlap=60",
                    stdin=given + "\n")
    assert last["secret"] == given
    request = next_request(api, endpoint)
    assert signatures(request, "v1") == [
        signature(secret, request) for secret in (given, new["secret"], made["secret"])]
    assert db.value("SELECT actor FROM postrider.audit ORDER BY id DESC LIMIT 1") == "cli"

    file = tmp_path / "key"
    file.write_text(WHSK)
    rotate = ("subscription", "rotate-signing-key", made["id"], "--from", str(file))
    assert "no signing key" in cli.run(*rotate).stderr
    api.patch(path, {"ed25519_signature": True}).expect(200)
    shown = cli.json(*rotate, "--overlap", "0")
    assert (shown["signing_key"], shown["old_expires_at"]) == (WHSK, None)
    assert api.get(path).expect(200)["public_keys"] == [WHPK]


def test_the_command_says_what_it_cannot_do(cli, made, db, tmp_path, settings):
    empty = tmp_path / "empty"
    empty.write_text("")
    rotate = ("subscription", "rotate-secret")
    for args, status, says in (
            ((*rotate, "99"), 1, "no such subscription"), ((*rotate, "x"), 2, "an id is a number"),
            ((*rotate, made["id"], "--overlap", "-1"), 2, "--overlap"),
            ((*rotate, made["id"], "--overlap", "2592001"), 2, "--overlap"),
            ((*rotate, made["id"], "--overlap", ""), 2, "--overlap"),
            ((*rotate, made["id"], "whsec_x"), 2, "one operand too many"),
            ((*rotate, made["id"], "--from", str(empty)), 1, "whsec_"),
            ((*rotate, made["id"], "--from", str(tmp_path / "none")), 1, "No such file"),
            ((*rotate, made["id"], "--from", str(tmp_path)), 1, "Is a directory"),
            ((*rotate, made["id"], "--secret_key_file="), 2, "secret_key_file")):
        done = cli.run(*args)
        assert (done.returncode, says in done.stderr) == (status, True), done
    assert secrets(db, "secret") == 1
