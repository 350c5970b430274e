"""Names are resolved at every attempt, and what they resolve to is checked."""

import ssl
import subprocess

import pytest

from .endpoint import Endpoint
from .name_server import (FAILURE, NO_SUCH_NAME, SILENCE, Answer, NameServer, own_address)
from .wait import until

FAST = {"retry_base_ms": 50, "retry_cap_ms": 200, "timeout_ms": 5000}
HERE = Answer("127.0.0.1")

# Allowed on purpose, so that a name may lead to a receiver on this machine.
HOOKS = "hooks.test"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of HOOKS that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={HOOKS}",
         "-addext", f"subjectAltName=DNS:{HOOKS}", "-out", files[0], "-keyout", files[1]],
        check=True, capture_output=True)
    return files


class Hooks(Endpoint):
    """The receiver, over TLS, with the names that it was asked by."""

    def __init__(self, certificate):
        self.names = []
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        context.sni_callback = lambda sock, name, _: self.names.append(name)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self):
        return f"https://{HOOKS}:{self.port}/"


@pytest.fixture
def names():
    server = NameServer()
    yield server
    server.close()


@pytest.fixture
def hooks(certificate):
    endpoint = Hooks(certificate)
    yield endpoint
    endpoint.close()


@pytest.fixture
def settings(settings):
    return {**settings, "development": False, "allow_hosts": HOOKS, "any_port": True}


@pytest.fixture
def dispatch(make_dispatch, names, certificate):
    return make_dispatch(nameserver=names.address, ca_file=certificate[0])


def state(db):
    return db.value("SELECT state FROM postrider.deliveries")


def attempts(db):
    return db.rows("SELECT ended, reason FROM postrider.attempt ORDER BY attempt")


def expect_refusal(db, words):
    until(lambda: state(db) == "dead", "it is dead")
    [(ended, reason)] = attempts(db)
    assert ended == "refused"
    assert words in reason
    assert db.value("SELECT reason FROM postrider.dead_letters") == reason


def test_a_receiver_is_found_and_spoken_to_by_its_name(api, dispatch, db, names, hooks):
    names.says(HOOKS, HERE)
    api.subscribe(hooks.url)
    api.event({})
    until(lambda: state(db) == "delivered", "it is delivered")
    [request] = hooks.requests
    assert request.headers["host"] == f"{HOOKS}:{hooks.port}"
    assert hooks.names == [HOOKS]


@pytest.mark.parametrize("first, reason", [
    (NO_SUCH_NAME, "no such name"),
    (Answer(), "the name has no address"),
], ids=["missing", "empty"])
def test_a_name_that_was_not_is_delivered_to_once_it_is(
        api, dispatch, db, names, hooks, first, reason):
    names.says(HOOKS, first, HERE)
    api.subscribe(hooks.url, **FAST)
    api.event({})
    until(lambda: state(db) == "delivered", "it is delivered")
    assert attempts(db) == [("dns_failed", f"{HOOKS}: {reason}"), ("answered", None)]


def test_name_servers_that_fail_for_a_while_cost_an_attempt(api, dispatch, db, names, hooks):
    names.says(HOOKS, FAILURE)
    api.subscribe(hooks.url, **FAST)
    api.event({})
    until(lambda: attempts(db), "the first attempt has failed")
    names.says(HOOKS, HERE)
    until(lambda: state(db) == "delivered", "it is delivered")
    assert attempts(db)[0] == ("dns_failed", f"{HOOKS}: the name servers cannot say now")


def test_silent_name_servers_cost_the_time_of_an_attempt(api, dispatch, db, names, hooks):
    names.says(HOOKS, SILENCE)
    api.subscribe(hooks.url, **{**FAST, "timeout_ms": 1000})
    api.event({})
    until(lambda: attempts(db), "the first attempt has timed out")
    names.says(HOOKS, HERE)
    until(lambda: state(db) == "delivered", "it is delivered")
    assert attempts(db)[0] == ("timed_out", "timed out after 1000 ms while looking up the name")


@pytest.mark.parametrize("aaaa", [
    SILENCE, FAILURE, NO_SUCH_NAME, Answer("::1"), Answer("fd00::1")],
    ids=["silent", "failing", "missing", "refused", "unreachable"])
def test_a_dead_family_does_not_cost_the_delivery(api, dispatch, db, names, hooks, aaaa):
    names.says(HOOKS, HERE, aaaa=aaaa)
    api.subscribe(hooks.url, **FAST)
    api.event({})
    until(lambda: state(db) == "delivered", "it is delivered")
    assert attempts(db) == [("answered", None)]


def test_an_answer_that_fits_no_datagram_is_taken_over_tcp(api, dispatch, db, names, hooks):
    names.says(HOOKS, Answer("127.0.0.1", *(f"127.0.1.{n}" for n in range(100))))
    api.subscribe(hooks.url)
    api.event({})
    until(lambda: state(db) == "delivered", "it is delivered")
    assert [q.is_tcp for q in names.questions if q.type == 1] == [False, True]


@pytest.mark.parametrize("answer, words", [
    (Answer("10.0.0.1"), "private (10.0.0.0/8)"),
    (Answer("93.184.216.34", "10.0.0.1"), "private (10.0.0.0/8)"),
    (Answer("93.184.216.34", "::1"), "loopback (::1)"),
    (Answer("169.254.169.254"), "metadata (169.254.169.254)"),
    (Answer("::ffff:93.184.216.34"), "mapped (::ffff:0:0/96)"),
    (Answer("64:ff9b::a00:1"), "NAT64 (64:ff9b::/96)"),
    (Answer("192.168.7.7", aliases=("a.test", "b.test")), "private (192.168.0.0/16)"),
], ids=["private", "mixed", "mixed families", "metadata", "mapped", "NAT64", "aliased"])
def test_a_name_with_an_address_of_no_public_kind_is_dead(
        api, dispatch, db, names, answer, words):
    names.says("inner.example", answer)
    api.subscribe("https://inner.example/")
    api.event({})
    expect_refusal(db, f"inner.example has an address that is not allowed: {words}")


def test_a_name_of_this_machine_is_dead(api, dispatch, ingest, db, names, hooks):
    """Ingest, the database and all else that listens here."""
    for number, address in enumerate(filter(None, ["127.0.0.1", own_address()])):
        name = f"self-{number}.example"
        names.says(name, Answer(address))
        for port in (ingest.port, hooks.port):
            api.subscribe(f"https://{name}:{port}/", event_types=[f"n{number}"])
        api.event({}, type=f"n{number}")
        until(lambda: db.value("SELECT count(*) FROM postrider.dead_letters") == 2 * number + 2,
              "both are dead")
    assert {ended for ended, _ in attempts(db)} == {"refused"}
    assert hooks.requests == [] and hooks.names == []


def test_a_name_that_changes_its_answer_gains_nothing(api, dispatch, db, names, hooks):
    """Each attempt asks once, and connects to what that answer said."""
    names.says(HOOKS, HERE, Answer("169.254.169.254"))
    api.subscribe(hooks.url)
    api.event({})
    until(lambda: state(db) == "delivered", "the first is delivered")
    assert (names.asked(HOOKS, 1), names.asked(HOOKS, 28)) == (1, 1)
    # The connection to the receiver still stands, and is not used.
    api.event({})
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letters") == 1,
          "the second is dead")
    assert "metadata (169.254.169.254)" in db.value("SELECT reason FROM postrider.dead_letters")
    assert len(hooks.requests) == 1


def test_a_good_url_is_not_patched_into_a_bad_one(api, db, hooks):
    made = api.subscribe(hooks.url)
    for url in ("https://127.0.0.1/", "https://0x7f.1/", "http://hooks.test/",
                "https://[::ffff:7f00:1]/", "https://user@hooks.test/"):
        answer = api.patch(f"/v1/subscriptions/{made['id']}", {"url": url})
        assert answer.status in (400, 422), url
    assert db.value("SELECT url FROM postrider.subscription") == hooks.url


def test_a_bad_url_written_by_hand_is_dead_with_its_reason(api, dispatch, db, hooks):
    api.subscribe(hooks.url)
    db.execute("UPDATE postrider.subscription SET url = 'https://127.1/', version = version + 1")
    api.event({})
    until(lambda: state(db) == "dead", "it is dead")
    assert "odd spelling" in db.value("SELECT reason FROM postrider.dead_letters")
