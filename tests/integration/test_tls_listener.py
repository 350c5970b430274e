"""TLS at ingest's port: who is let in, what is refused, and how a certificate is changed."""

import os
import re
import signal
import socket
import ssl
import subprocess

import pytest

from .api import Api
from .authority import Authority
from .wait import until

EVENT = b'{"id":"%s","type":"order.paid","data":{"n":1}}'
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


@pytest.fixture
def files(authority):
    """The settings of a listener with TLS."""
    certificate, key = authority.issue("ingest", "IP:127.0.0.1")
    return {"tls_certificate": certificate, "tls_key": key}


@pytest.fixture
def ingest(make_ingest, files):
    return make_ingest(**files)


@pytest.fixture
def context(authority):
    return trusting(authority)


def trusting(authority, version=None, client=None):
    """A client's side of TLS, with one version, and perhaps a certificate."""
    made = ssl.create_default_context(cafile=authority.path("authority.pem"))
    made.set_alpn_protocols(["http/1.1"])
    if version:
        made.minimum_version = made.maximum_version = version
    if client:
        made.load_cert_chain(*client)
    return made


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def connect(ingest, context):
    return context.wrap_socket(dial(ingest.port), server_hostname="127.0.0.1")


def ask(wire, request=HEALTH):
    """One request on a connection that stays: the status of its answer."""
    wire.sendall(request)
    raw = b""
    while b"\r\n\r\n" not in raw:
        got = wire.recv(1)
        assert got, f"it hung up: {raw!r}"
        raw += got
    length = int(re.search(rb"Content-Length: (\d+)", raw)[1])
    while length > 0:
        length -= len(wire.recv(length))
    return int(raw.split()[1])


def read_all(wire):
    """All that comes until the end; and whether that is an end as it should be."""
    raw = bytearray()  # which grows in place
    try:
        while got := wire.recv(65536):
            raw += got
    except ssl.SSLError:
        return raw, False
    return raw, True


def post(key, event, head=b"", framing=b"Content-Length: %d"):
    body = EVENT % event
    if b"%d" in framing:
        framing %= len(body)
    return (b"POST /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + key.encode()
            + b"\r\nContent-Type: application/json\r\n" + head + framing + b"\r\n\r\n"), body


def curl(ingest, authority, *args):
    return subprocess.run(
        ["curl", "-sS", "--cacert", authority.path("authority.pem"), "-o", "/dev/null", "-w",
         "%{http_code} %{http_version}", *args, f"https://127.0.0.1:{ingest.port}/healthz"],
        capture_output=True, text=True, timeout=20, check=False)


def s_client(ingest, *args, **how):
    """What openssl s_client says when its input ends at once."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{ingest.port}", *args],
        input="", capture_output=True, text=True, timeout=20, check=False, **how)
    return done.stdout + done.stderr


# -- the handshake --

@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_curl_is_served(ingest, authority, version):
    done = curl(ingest, authority, f"--tlsv{version}", "--tls-max", version)
    assert (done.stdout, done.stderr) == ("200 1.1", "")


def test_an_event_that_came_over_tls_is_kept(ingest, context, admin_key, db):
    api = Api(ingest.port, admin_key, context=context)
    api.post("/v1/events", {"id": "one", "type": "a.b", "data": {"n": 1}}).expect(202)
    assert db.value("SELECT count(*) FROM postrider.event WHERE event_id = 'one'") == 1


@pytest.mark.parametrize("args, words", [
    (["-tls1"], "unsupported protocol"),
    (["-tls1_1"], "unsupported protocol"),
    (["-tls1_2", "-cipher", "AES128-SHA"], "no shared cipher"),
    (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], "no shared cipher"),
    (["-alpn", "h2"], "no application protocol"),
])
def test_what_is_too_old_or_another_protocol_is_refused_with_an_alert(ingest, args, words):
    extra = [] if "-cipher" in args or "-alpn" in args else ["-cipher", "ALL@SECLEVEL=0"]
    said = s_client(ingest, *args, *extra)
    assert "alert" in said and "Cipher is (NONE)" in said
    plain = ingest.log()
    assert "a client failed at TLS" in plain and words in plain
    assert "127.0.0.1:" in plain


def test_http_1_1_is_agreed_on(ingest, context):
    with connect(ingest, context) as wire:
        assert wire.selected_alpn_protocol() == "http/1.1"


def test_a_client_cannot_have_a_new_handshake(ingest):
    with subprocess.Popen(
            ["timeout", "20", "openssl", "s_client", "-tls1_2", "-connect",
             f"127.0.0.1:{ingest.port}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        client.stdin.write(b"R\n")
        client.stdin.flush()
        said = client.stdout.read()
    assert b"RENEGOTIATING" in said and b"no renegotiation" in said


def test_failures_are_counted_and_the_log_is_not_flooded(ingest, context):
    for _ in range(5):
        s_client(ingest, "-alpn", "h2")
    with dial(ingest.port):
        pass  # one that only looks whether somebody listens has not failed
    text = Api(ingest.port, context=context).get("/metrics").body.decode()
    assert "postrider_ingest_tls_failures_total 5\n" in text, text
    assert ingest.log().count("a client failed at TLS") == 1
    expires = int(re.search(r"^postrider_ingest_tls_certificate_expires_seconds (\d+)$",
                            text, re.MULTILINE)[1])
    with connect(ingest, context) as wire:
        assert expires == ssl.cert_time_to_seconds(wire.getpeercert()["notAfter"])


def test_plain_http_is_not_answered(ingest):
    with dial(ingest.port) as wire:
        wire.sendall(HEALTH)
        wire.settimeout(5)
        assert wire.recv(65536) == b""
    assert "http request" in ingest.log()


def test_tls_at_a_plain_port_ends_at_once(make_ingest, authority):
    ingest = make_ingest()
    with dial(ingest.port) as wire, pytest.raises(ssl.SSLError):
        trusting(authority).wrap_socket(wire, server_hostname="127.0.0.1")


# -- the certificates of clients --

@pytest.fixture
def closed(make_ingest, files, authority):
    """One that lets nobody in but clients of the authority."""
    return make_ingest(tls_client_ca=authority.path("authority.pem"), **files)


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_of_the_authority_is_let_in(closed, authority, version):
    context = trusting(authority, version, authority.issue("acme"))
    with connect(closed, context) as wire:
        assert ask(wire) == 200
        session = wire.session
    # Its certificate is looked at anew on each connection.
    with context.wrap_socket(dial(closed.port), server_hostname="127.0.0.1",
                             session=session) as wire:
        assert ask(wire) == 200
        assert not wire.session_reused


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("who, alert, said", [
    ("nobody", "REQUIRED|HANDSHAKE_FAILURE", "peer did not return a certificate"),
    ("stranger", "UNKNOWN_CA", "unable to get local issuer certificate"),
    ("expired", "EXPIRED", "certificate has expired"),
    ("server", "UNSUPPORTED_CERTIFICATE|BAD_CERTIFICATE", "purpose"),
])
def test_other_clients_hear_why_they_are_not(
        closed, tmp_path, authority, version, who, alert, said):
    client = {
        "nobody": lambda: None,
        "stranger": lambda: Authority(tmp_path, "another").issue("stranger"),
        "expired": lambda: authority.issue("expired", days=-1),
        "server": lambda: authority.issue("server", "IP:127.0.0.1\nextendedKeyUsage=serverAuth"),
    }[who]()
    with pytest.raises(ssl.SSLError) as refused:
        with connect(closed, trusting(authority, version, client)) as wire:
            ask(wire)
    assert re.search(alert, str(refused.value).upper())
    until(lambda: said in closed.log(), "the log says why")


# -- a new certificate --

def shown(ingest, context):
    with connect(ingest, context) as wire:
        assert ask(wire) == 200
        return wire.getpeercert()["serialNumber"]


def renew(authority, files):
    """Make another certificate, and put it where the first one was."""
    for new, old in zip(authority.issue("renewed", "IP:127.0.0.1"), files.values()):
        os.replace(new, old)


def test_a_new_certificate_is_shown_after_sighup_and_no_connection_ends(
        ingest, authority, files, context):
    old = shown(ingest, context)
    with connect(ingest, context) as wire:
        assert ask(wire) == 200
        renew(authority, files)
        assert shown(ingest, context) == old
        ingest.kill(signal.SIGHUP)
        until(lambda: "certificate read again" in ingest.log(), "it is read")
        assert shown(ingest, context) != old
        assert ask(wire) == 200
        assert wire.getpeercert()["serialNumber"] == old


def break_key(files):
    with open(files["tls_key"], "w", encoding="ascii") as file:
        file.write("no key\n")


def take_another_key(files):
    with open(files["tls_key"], "w", encoding="ascii") as file:
        subprocess.run(["openssl", "genpkey", "-algorithm", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256"], stdout=file, check=True)


def lock_key(files):
    subprocess.run(["openssl", "ec", "-aes128", "-passout", "pass:secret", "-in",
                    files["tls_key"], "-out", files["tls_key"]], check=True, capture_output=True)


BROKEN = [
    ("an empty certificate", lambda files: os.truncate(files["tls_certificate"], 0),
     "tls_certificate"),
    ("no certificate", lambda files: os.unlink(files["tls_certificate"]), "tls_certificate"),
    ("no key", lambda files: os.unlink(files["tls_key"]), "tls_key"),
    ("a broken key", break_key, "tls_key"),
    ("another key", take_another_key, "key values mismatch"),
    ("a key behind a password", lock_key, "tls_key"),
    ("a key for all to read", lambda files: os.chmod(files["tls_key"], 0o644),
     "others may read or change it"),
]


@pytest.mark.parametrize("what, spoil, words", BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_one_is_refused_and_the_old_one_stays(
        ingest, make_ingest, authority, files, context, what, spoil, words):
    old = shown(ingest, context)
    renew(authority, files)
    spoil(files)
    ingest.kill(signal.SIGHUP)
    line = until(lambda: re.search(r"level=error .*the old certificate stays.*", ingest.log()),
                 f"{what} is refused")
    assert words in line[0]
    assert shown(ingest, context) == old
    # It would not start with it either, and -n tells.
    other = make_ingest(start=False, **files)
    assert other.launch("-n").wait() == 2
    assert words in other.log()


def test_sighup_without_tls_changes_nothing(make_ingest):
    ingest = make_ingest()
    ingest.kill(signal.SIGHUP)
    until(lambda: "nothing to read again" in ingest.log(), "it says so")
    assert Api(ingest.port).get("/healthz").status == 200


# -- records, whole and in pieces --

class Records:
    """TLS whose records are ours to send as we like."""

    def __init__(self, port, context):
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.came, self.goes, server_hostname="127.0.0.1")
        self.socket = dial(port)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def push(self, size):
        """Send what is to go, `size` octets at a time."""
        octets = self.goes.read()
        for at in range(0, len(octets), size):
            self.socket.sendall(octets[at:at + size])

    def do(self, what, *args, size=65536):
        """Call until it does not want more from the other side."""
        while True:
            try:
                result = what(*args)
            except ssl.SSLWantReadError:
                self.push(size)
                got = self.socket.recv(65536)
                if not got:
                    self.came.write_eof()
                self.came.write(got)
            else:
                self.push(size)
                return result

    def hello(self):
        """The octets that a client begins with."""
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.goes.read()


@pytest.mark.parametrize("version", VERSIONS)
def test_octet_by_octet_it_is_the_same(ingest, authority, admin_key, db, version):
    with Records(ingest.port, trusting(authority, version)) as wire:
        wire.do(wire.tls.do_handshake, size=1)
        for part in post(admin_key, b"dripped"):
            wire.do(wire.tls.write, part, size=1)
        assert wire.do(wire.tls.read, 65536).startswith(b"HTTP/1.1 202 ")
    assert db.value("SELECT count(*) FROM postrider.event WHERE event_id = 'dripped'") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pipeline_in_large_records_is_answered_to_its_end(ingest, authority, version):
    """A record holds more than is taken in at once: what stays inside is not forgotten."""
    n = 3000
    with connect(ingest, trusting(authority, version)) as wire:
        wire.sendall(HEALTH * n)
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        raw, is_whole = read_all(wire)
    assert is_whole
    assert raw.count(b"HTTP/1.1 200 OK") == n + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_reads_late_gets_all(ingest, authority, version):
    """The server's half of a record waits until there is room for the other half."""
    n = 1500
    request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
    plain = socket.socket()
    plain.settimeout(20)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    plain.connect(("127.0.0.1", ingest.port))
    context = trusting(authority, version)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as wire:
        wire.sendall(request * n)
        peer = Api(ingest.port, context=context)
        until(lambda: metric_of(peer, 'requests_total{method="GET",route="/metrics",'
                                'status="200"}') > 100, "answers pile up")
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        raw, is_whole = read_all(wire)
    assert is_whole
    assert raw.count(b"HTTP/1.1 200 OK") == n + 1
    assert raw.endswith(b'{"status":"alive"}')


def metric_of(api, name):
    for line in api.get("/metrics").body.decode().splitlines():
        if line.startswith(f"postrider_ingest_{name} "):
            return int(line.split()[-1])
    return 0


def test_a_large_batch_comes_through(ingest, context, admin_key, db):
    lines = b"".join(b'{"type":"a.b","data":"%s"}\n' % (b"x" * 60000) for _ in range(80))
    answer = Api(ingest.port, admin_key, context=context).post(
        "/v1/events/batch", lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status == 202
    assert db.value("SELECT count(*) FROM postrider.event") == 80


# -- the end --

def cut(wire):
    """End the connection below TLS, as somebody on the way could."""
    socket.socket.shutdown(wire, socket.SHUT_WR)


CHUNKED = b"Transfer-Encoding: chunked"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("framing", [b"Content-Length: %d", CHUNKED])
def test_a_body_that_is_cut_is_no_body(ingest, authority, admin_key, db, version, framing):
    head, body = post(admin_key, b"cut", framing=framing)
    sent = b"%x\r\n%s\r\n" % (len(body), body) if framing == CHUNKED else body[:-1]
    with connect(ingest, trusting(authority, version)) as wire:
        wire.sendall(head + sent)
        cut(wire)
        assert read_all(wire)[0] == b""
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_a_body_that_the_client_ends_too_early_is_refused(ingest, context, admin_key, db):
    head, body = post(admin_key, b"short")
    with Records(ingest.port, context) as wire:
        wire.do(wire.tls.do_handshake)
        wire.do(wire.tls.write, head + body[:-1])
        with pytest.raises(ssl.SSLWantReadError):
            wire.tls.unwrap()
        wire.push(65536)
        raw = b""
        while got := wire.socket.recv(65536):
            raw += got
        wire.came.write(raw)
        assert wire.tls.read(65536).startswith(b"HTTP/1.1 400 ")
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_an_answer_that_ends_the_connection_says_so(ingest, context):
    with connect(ingest, context) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        raw, is_whole = read_all(wire)
    assert raw.startswith(b"HTTP/1.1 200 ") and is_whole


def test_a_handshake_has_the_time_that_a_head_has(make_ingest, files, context):
    ingest = make_ingest(head_timeout="1s", **files)
    with Records(ingest.port, context) as half, Records(ingest.port, context) as whole, \
            dial(ingest.port) as silent:
        hello = half.hello()
        half.socket.sendall(hello[:len(hello) // 2])
        whole.do(whole.tls.do_handshake)
        peer = Api(ingest.port, context=context)
        assert metric_of(peer, "connections") == 4  # a handshake is a connection too
        for wire in (half.socket, silent):
            wire.settimeout(10)
            assert wire.recv(1) == b""
        while whole.socket.recv(65536):
            pass
        assert metric_of(peer, "connections") == 1


def test_a_drip_of_records_moves_no_limit(make_ingest, files, context):
    """Octets that hold nothing of a request are no request."""
    ingest = make_ingest(head_timeout="1s", **files)
    with Records(ingest.port, context) as wire:
        hello = iter(wire.hello())

        def drip():
            try:
                wire.socket.sendall(bytes([next(hello)]))
                wire.socket.settimeout(0.05)
                return wire.socket.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        until(drip, "it is closed all the same", seconds=5)


# -- where it listens --

def test_in_the_clear_it_listens_on_loopback_unless_told_otherwise(make_ingest, files):
    for address in ("0.0.0.0", "::"):
        ingest = make_ingest(start=False, listen_address=address)
        assert ingest.launch().wait() == 2
        assert "plain_http" in ingest.log() and "tls_certificate" in ingest.log()
    for settings in ({"plain_http": True}, files):
        ingest = make_ingest(start=False, listen_address="0.0.0.0", **settings)
        assert ingest.launch("-n").wait() == 0


@pytest.mark.parametrize("missing", ["tls_certificate", "tls_key"])
def test_a_certificate_and_its_key_belong_together(make_ingest, files, missing):
    ingest = make_ingest(start=False, **{**files, missing: ""})
    assert ingest.launch("-n").wait() == 2
    assert "belong together" in ingest.log()


def test_clients_cannot_show_a_certificate_in_the_clear(make_ingest, authority):
    ingest = make_ingest(start=False, tls_client_ca=authority.path("authority.pem"))
    assert ingest.launch("-n").wait() == 2
    assert "tls_client_ca" in ingest.log()
