"""TLS to subscribers: whom a subscription believes, and who it says it is."""

import ssl

import pytest

from .authority import Authority
from .wait import until
from .wire import Wire

FAST = {"retry_base_ms": 50, "retry_cap_ms": 100, "timeout_ms": 3000, "max_attempts": 1}


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


@pytest.fixture
def certificate(authority):
    """The receiver's."""
    return authority.issue("receiver", "IP:127.0.0.1")


@pytest.fixture
def wire(authority, certificate):
    """A receiver that asks for a client's certificate, and does not insist."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(authority.path("authority.pem"))
    context.verify_mode = ssl.CERT_OPTIONAL
    made = Wire(context=context)
    yield made
    made.close()


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def client(authority, name):
    """The fields of a subscription that says it is `name`."""
    certificate, key = authority.issue(name)
    return {"tls_certificate": read(certificate), "tls_key": read(key)}


def attempts(db):
    return db.rows("SELECT ended, status, reason FROM postrider.attempt ORDER BY delivery_id")


def test_a_subscription_has_its_own_authority_and_certificate(
        api, dispatch, db, authority, wire):
    mine = client(authority, "acme")
    made = api.subscribe(wire.url(), tls_ca=authority.pem, **mine, **FAST)
    api.event({"n": 1})
    until(lambda: attempts(db), "it is on record")
    assert attempts(db) == [("answered", 200, None)]
    assert [request.client for request in wire.requests] == ["acme"]
    shown = api.get(f"/v1/subscriptions/{made['id']}").expect(200)
    assert shown["tls_certificate"] == mine["tls_certificate"]
    secret = "".join(mine["tls_key"].split("\n")[1:-2])
    for text in (str(made), str(shown), dispatch.log(),
                 str(db.rows("SELECT * FROM postrider.subscription_secret"))):
        assert secret[:40] not in text.replace("\\n", "").replace("\n", "")


def test_no_connection_serves_two_identities(api, dispatch, db, authority, wire):
    """Four subscriptions at one host and port, again and again, while all connections live."""
    api.subscribe(wire.url(), event_types=["one"], tls_ca=authority.pem,
                  **client(authority, "one"), **FAST)
    api.subscribe(wire.url(), event_types=["two"], tls_ca=authority.pem,
                  **client(authority, "two"), **FAST)
    api.subscribe(wire.url(), event_types=["none"], tls_ca=authority.pem, **FAST)
    api.subscribe(wire.url(), event_types=["stranger"], **FAST)  # does not know the authority
    expected = []
    for _ in range(4):
        for type in ("one", "two", "none", "stranger"):
            api.event({"n": type}, type=type)
            expected.append(type)
            until(lambda: len(attempts(db)) == len(expected), f"{type} is on record")
    seen = [(b'"type":"%s"' % (request.client or "none").encode()) in request.body
            for request in wire.requests]
    assert seen == [True] * 12
    assert [row[0] for row in attempts(db)] == ["answered", "answered", "answered",
                                                "tls_failed"] * 4
    assert all("SSL certificate problem" in row[2] for row in attempts(db) if row[2])
    assert wire.connections - 4 < 12, "no connection was used again"


def test_a_new_certificate_counts_from_the_next_attempt(api, dispatch, db, authority, wire):
    made = api.subscribe(wire.url(), tls_ca=authority.pem, **client(authority, "old"), **FAST)
    api.event({"n": 1})
    until(lambda: len(wire.requests) == 1, "the first arrives")
    api.patch(f"/v1/subscriptions/{made['id']}", client(authority, "new")).expect(200)
    api.event({"n": 2})
    until(lambda: len(wire.requests) == 2, "the second arrives")
    api.patch(f"/v1/subscriptions/{made['id']}",
              {"tls_certificate": None, "tls_key": None}).expect(200)
    api.event({"n": 3})
    until(lambda: len(wire.requests) == 3, "the third arrives")
    assert [request.client for request in wire.requests] == ["old", "new", None]


@pytest.mark.parametrize("own", [True, False])
def test_what_the_operator_takes_back_is_refused(
        own, api, make_dispatch, db, tmp_path, authority, certificate, wire):
    taken_back = tmp_path / "revoked"
    taken_back.write_text("# it lost its key\n" + authority.fingerprint(certificate[0]))
    api.subscribe(wire.url(), **({"tls_ca": authority.pem} if own else {}), **FAST)
    make_dispatch(revoked_file=taken_back, ca_file=authority.path("authority.pem"))
    api.event({"n": 1})
    until(lambda: attempts(db), "it is on record")
    assert attempts(db) == [
        ("tls_failed", None, "SSL certificate problem: certificate revoked")]
    assert wire.requests == []


def test_a_list_of_the_taken_back_that_cannot_be_read_stops_the_start(make_dispatch, tmp_path):
    taken_back = tmp_path / "revoked"
    taken_back.write_text("\n# fine\nnot a fingerprint\n")
    program = make_dispatch(start=False, revoked_file=taken_back).launch()
    assert program.wait() == 1
    assert f"{taken_back}: line 3 is no SHA-256 fingerprint" in program.log()
