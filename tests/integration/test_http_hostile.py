"""What is sent to do harm: each gets the right answer or a clean close, and others are served."""

import os
import re
import shutil
import socket
import ssl
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from .api import Api
from .authority import Authority

POST = ("POST /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\n")
SIZED = "Content-Length: {len}\r\n\r\n{body}"
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"
CHUNK = "{hex}\r\n{body}\r\n"
GET = "GET /healthz HTTP/1.1\r\nHost: a\r\n"

# What a row ends with: the connection is good for more, or it is closed.
OPEN, CLOSED = "open", "closed"


def get(line):
    """A request that is sound but for one header line."""
    return f"{GET}{line}\r\n\r\n"


def start(line):
    """A request that is sound but for its first line."""
    return f"{line}\r\nHost: a\r\n\r\n"


# Name, octets, the statuses of the answers, and what becomes of the connection.  {smuggled} is
# a whole request; where it stands in what must not be read as one, its event must not be kept.
ROWS = [
    # Sound, and near to what is not.
    ("a length", POST + SIZED, [202], OPEN),
    ("a length with blanks around it",
     POST + "Content-Length: \t{len} \t\r\n\r\n{body}", [202], OPEN),
    ("a length with zeros before it", POST + "Content-Length: 000{len}\r\n\r\n{body}", [202], OPEN),
    ("chunks", POST + CHUNKED + CHUNK + "0\r\n\r\n", [202], OPEN),
    ("chunks in capitals", POST + CHUNKED.replace("chunked", "CHUNKED") + CHUNK + "0\r\n\r\n",
     [202], OPEN),
    ("a chunk with an extension", POST + CHUNKED + "{hex};a=b\r\n{body}\r\n0\r\n\r\n",
     [202], OPEN),
    ("a chunk with a quoted extension", POST + CHUNKED + '{hex};a="b c"\r\n{body}\r\n0\r\n\r\n',
     [202], OPEN),
    ("a trailer", POST + CHUNKED + CHUNK + "0\r\nX-Sum: 1\r\n\r\n", [202], OPEN),
    ("an empty line before", "\r\n" + get("X: y"), [200], OPEN),
    ("a body where none belongs", GET + "Content-Length: 5\r\n\r\nabcde", [400], OPEN),
    ("a request as the body of another",
     GET + "Content-Length: {smuggled_len}\r\n\r\n{smuggled}", [400], OPEN),
    ("an upgrade that nobody offers",
     get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__"),
     [200], OPEN),
    ("HTTP/1.0", "GET /healthz HTTP/1.0\r\n\r\n", [200], CLOSED),

    # Two lengths, or none that can be trusted.
    ("a length and chunks", POST + "Content-Length: {len}\r\n" + CHUNKED + CHUNK + "0\r\n\r\n",
     [400], CLOSED),
    ("chunks and a length",
     POST + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n{smuggled}",
     [400], CLOSED),
    ("the same length twice", POST + "Content-Length: {len}\r\n" + SIZED, [400], CLOSED),
    ("two lengths", POST + "Content-Length: 0\r\n" + SIZED, [400], CLOSED),
    ("a list of lengths", POST + "Content-Length: {len}, {len}\r\n\r\n{body}", [400], CLOSED),
    ("a length with a plus", POST + "Content-Length: +{len}\r\n\r\n{body}", [400], CLOSED),
    ("a length below zero", POST + "Content-Length: -1\r\n\r\n{body}", [400], CLOSED),
    ("a length in hexadecimal", POST + "Content-Length: 0x{hex}\r\n\r\n{body}", [400], CLOSED),
    ("a length with a fraction", POST + "Content-Length: {len}.0\r\n\r\n{body}", [400], CLOSED),
    ("a length of two words", POST + "Content-Length: {len} 0\r\n\r\n{body}", [400], CLOSED),
    ("an empty length", POST + "Content-Length:\r\n\r\n{body}", [400], CLOSED),
    ("a length past all numbers", POST + "Content-Length: 99999999999999999999\r\n\r\n{body}",
     [413], CLOSED),
    ("a blank before the colon", POST + "Content-Length : {len}\r\n\r\n{body}", [400], CLOSED),
    ("no length", POST + "\r\n{smuggled}", [411], CLOSED),
    ("another coding", POST + "Transfer-Encoding: xchunked\r\n\r\n" + CHUNK + "0\r\n\r\n",
     [501], CLOSED),
    ("identity", POST + "Transfer-Encoding: identity\r\n" + SIZED, [400], CLOSED),
    ("gzip, then chunks", POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
     [501], CLOSED),
    ("chunks twice", POST + "Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNK + "0\r\n\r\n",
     [501], CLOSED),
    ("chunks in two headers", POST + "Transfer-Encoding: chunked\r\n" + CHUNKED + CHUNK
     + "0\r\n\r\n", [400], CLOSED),
    ("chunks with a parameter", POST + "Transfer-Encoding: chunked;q=1\r\n\r\n" + CHUNK
     + "0\r\n\r\n", [501], CLOSED),
    ("chunks behind a vertical tab", POST + "Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNK
     + "0\r\n\r\n", [400], CLOSED),
    ("a coding behind a blank", POST + "Transfer-Encoding : chunked\r\n\r\n" + CHUNK
     + "0\r\n\r\n", [400], CLOSED),
    ("chunks in HTTP/1.0", POST.replace("1.1", "1.0") + CHUNKED + CHUNK + "0\r\n\r\n",
     [400], CLOSED),

    # Chunks.
    ("a size in 0x", POST + CHUNKED + "0x{hex}\r\n{body}\r\n0\r\n\r\n", [400], CLOSED),
    ("a size with a plus", POST + CHUNKED + "+{hex}\r\n{body}\r\n0\r\n\r\n", [400], CLOSED),
    ("a size below zero", POST + CHUNKED + "-1\r\n{body}\r\n0\r\n\r\n", [400], CLOSED),
    ("a size with a word behind", POST + CHUNKED + "{hex} x\r\n{body}\r\n0\r\n\r\n",
     [400], CLOSED),
    ("no size", POST + CHUNKED + "\r\n{body}\r\n0\r\n\r\n", [400], CLOSED),
    ("a size past all numbers", POST + CHUNKED + "ffffffffffffffff1\r\n{body}\r\n0\r\n\r\n",
     [400], CLOSED),
    ("a size past what is allowed", POST + CHUNKED + "fffffff\r\n{body}\r\n0\r\n\r\n",
     [413], CLOSED),
    ("a size of endless digits", POST + CHUNKED + "0" * 40000, [400], CLOSED),
    ("an endless extension", POST + CHUNKED + "{hex};" + "x" * 40000, [400], CLOSED),
    ("an endless trailer", POST + CHUNKED + CHUNK + "0\r\nX: " + "x" * 40000, [400], CLOSED),
    ("a bare LF after a size", POST + CHUNKED + "{hex}\n{body}\r\n0\r\n\r\n", [400], CLOSED),
    ("a bare LF in an extension", POST + CHUNKED + "{hex};\n{body}\r\n0\r\n\r\n{smuggled}",
     [400], CLOSED),
    ("data longer than its size", POST + CHUNKED + "5\r\n{body}\r\n0\r\n\r\n", [400], CLOSED),
    ("other octets for CRLF after data", POST + CHUNKED + "{hex}\r\n{body}XX0\r\n\r\n",
     [400], CLOSED),

    # Lines.
    ("bare LF", get("X: y").replace("\r\n", "\n"), [400], CLOSED),
    ("one bare LF", get("X: y\nY: z"), [400], CLOSED),
    ("a bare CR", get("X: y\rY: z"), [400], CLOSED),
    ("CR CR LF", get("X: y\r\r\nY: z"), [400], CLOSED),
    ("a folded line", get("X: y\r\n z"), [400], CLOSED),
    ("a blank before the first name", "GET /healthz HTTP/1.1\r\n Host: a\r\n\r\n", [400], CLOSED),
    ("a NUL in a value", get("X: y\0z"), [400], CLOSED),
    ("a NUL in a name", get("X\0: y"), [400], CLOSED),
    ("no colon", get("X y"), [400], CLOSED),
    ("no name", get(": y"), [400], CLOSED),
    ("a name with a blank", get("X Y: z"), [400], CLOSED),
    ("a name beyond ASCII", get("X\xe9: y"), [400], CLOSED),
    ("two empty lines before", "\r\n\r\n" + get("X: y"), [400], CLOSED),
    ("no host", "GET /healthz HTTP/1.1\r\n\r\n", [400], CLOSED),
    ("two hosts", get("Host: b"), [400], CLOSED),
    ("the same host twice", get("Host: a"), [400], CLOSED),
    ("a host with a user", "GET /healthz HTTP/1.1\r\nHost: a@b\r\n\r\n", [400], CLOSED),
    ("a host of two", "GET /healthz HTTP/1.1\r\nHost: a, b\r\n\r\n", [400], CLOSED),
    ("a host unlike the target's", "GET http://b/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
     [400], CLOSED),
    ("two keys", POST + "Authorization: Bearer x\r\n" + SIZED, [400], CLOSED),
    ("a huge header", get("X: " + "x" * 20000), [431], CLOSED),
    ("headers without end", GET + "X: y\r\n" * 4000, [431], CLOSED),
    ("too many headers", get("\r\n".join("X: y" for _ in range(101))), [431], CLOSED),
    ("a long path", start("GET /" + "x" * 20000 + " HTTP/1.1"), [414], CLOSED),

    # First lines.
    ("two blanks", start("GET  /healthz HTTP/1.1"), [400], CLOSED),
    ("a tab for a blank", start("GET\t/healthz HTTP/1.1"), [400], CLOSED),
    ("a blank at the end", start("GET /healthz HTTP/1.1 "), [400], CLOSED),
    ("a blank in the path", start("GET /health z HTTP/1.1"), [400], CLOSED),
    ("a fragment", start("GET /healthz#x HTTP/1.1"), [400], CLOSED),
    ("a path beyond ASCII", start("GET /h\xe9 HTTP/1.1"), [400], CLOSED),
    ("no slash", start("GET healthz HTTP/1.1"), [400], CLOSED),
    ("no version", "GET /healthz\r\n\r\n", [400], CLOSED),
    ("a version in small letters", start("GET /healthz http/1.1"), [400], CLOSED),
    ("a longer version", start("GET /healthz HTTP/1.10"), [400], CLOSED),
    ("HTTP/2.0", start("GET /healthz HTTP/2.0"), [505], CLOSED),
    ("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505], CLOSED),
    ("a method in small letters", start("get /healthz HTTP/1.1"), [501], CLOSED),
    ("CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", [501], CLOSED),
    ("TRACE", start("TRACE /healthz HTTP/1.1"), [501], CLOSED),
    ("the hello of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "x" * 500,
     [400], CLOSED),
    ("no HTTP", "hello\r\n\r\n", [400], CLOSED),

    # Expectations.
    ("100-continue", [POST + "Expect: 100-continue\r\nContent-Length: {len}\r\n\r\n", "{body}"],
     [100, 202], OPEN),
    ("100-continue with the body at once", POST + "Expect: 100-continue\r\n" + SIZED, [202], OPEN),
    ("100-continue without a key", POST.replace("Authorization", "X")
     + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", [401], CLOSED),
    ("100-continue for too much",
     POST + "Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n", [413], CLOSED),
    ("another expectation", get("Expect: 200-ok"), [417], CLOSED),

    # One behind the other.
    ("a pipeline", get("X: y") * 5, [200] * 5, OPEN),
    ("a pipeline of events", POST + SIZED + "{other}", [202, 202], OPEN),
    ("nothing behind the last", get("Connection: close") + "{smuggled}", [200], CLOSED),
    ("nothing behind what is refused", get("X y") + "{smuggled}", [400], CLOSED),
    ("a pipeline whose second is broken", get("X: y") + get("X y") + get("X: y"),
     [200, 400], CLOSED),

    # Half of it, and no more.
    ("half a head", GET + "X: ", [408], CLOSED),
    ("half a body", POST + "Content-Length: {len}\r\n\r\n{half}", [408], CLOSED),
    ("half a chunk", POST + CHUNKED + "{hex}\r\n{half}", [408], CLOSED),
    ("chunks without the last", POST + CHUNKED + CHUNK, [408], CLOSED),
    ("the end in a head", [GET + "X: ", None], [400], CLOSED),
    ("the end in a body", [POST + "Content-Length: {len}\r\n\r\n{half}", None], [400], CLOSED),
    ("the end in a chunk", [POST + CHUNKED + "{hex}\r\n{half}", None], [400], CLOSED),
    ("the end before the last chunk", [POST + CHUNKED + CHUNK, None], [400], CLOSED),
    ("the end instead of a request", [None], [], CLOSED),
]


class Probe:
    """One row over one connection, and what came of it."""

    def __init__(self, row, event, key):
        self.name, pieces, self.statuses, self.end = row
        pieces = pieces if isinstance(pieces, list) else [pieces]
        self.keeps = {event: 202 in self.statuses, f"{event}-other": self.statuses == [202, 202],
                      f"{event}-smuggled": False}
        self.pieces = [None if piece is None else self._fill(piece, event, key)
                       for piece in pieces]

    @staticmethod
    def _fill(text, event, key):
        body = '{"id":"%s","type":"probe.http","data":{"n":1}}' % event
        for name in ("smuggled", "other"):
            inner = body.replace(event, f"{event}-{name}")
            whole = POST + f"Content-Length: {len(inner)}\r\n\r\n{inner}"
            whole = whole.replace("{key}", key)
            text = text.replace("{%s}" % name, whole).replace("{%s_len}" % name, str(len(whole)))
        for name, value in (("key", key), ("len", len(body)), ("hex", f"{len(body):x}"),
                            ("body", body), ("half", body[:len(body) // 2])):
            text = text.replace("{%s}" % name, str(value))
        return text.encode("latin-1")

    def run(self, connect):
        with connect() as wire:
            raw = b""
            for n, piece in enumerate(self.pieces):
                if n > 0 and piece is not None:
                    raw += wire.recv(65536)  # leave to go on
                self._say(wire, piece)
            if self.end == OPEN:
                self._say(wire, f"{GET}Connection: close\r\n\r\n".encode())
            self.got, self.is_clean = self._rest(wire, raw)
        return self

    @staticmethod
    def _say(wire, piece):
        try:
            if piece is not None:
                wire.sendall(piece)
            else:
                wire.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it may refuse and close before it has read all

    @staticmethod
    def _rest(wire, raw):
        """All that comes; and whether the connection was closed rather than cut."""
        try:
            while got := wire.recv(65536):
                raw += got
            return raw, True
        except OSError:
            return raw, False

    def faults(self, kept):
        want = self.statuses + ([200] if self.end == OPEN else [])
        got = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.got)]
        if got != want:
            yield f"{got} instead of {want}: {self.got[:300]!r}"
        if not self.is_clean:
            yield "no clean end"
        for event, is_kept in self.keeps.items():
            if (event in kept) != is_kept:
                yield f"{event} is " + ("missing" if is_kept else "there")


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


@pytest.fixture
def tls(authority):
    """The settings of a listener, and a client's context."""
    certificate, key = authority.issue("ingest", "IP:127.0.0.1")
    context = ssl.create_default_context(cafile=authority.path("authority.pem"))
    return {"tls_certificate": certificate, "tls_key": key}, context


def judge(make_ingest, db, key, settings, connect):
    ingest = make_ingest(head_timeout="3s", body_timeout="3s", **settings)
    probes = [Probe(row, f"probe-{n}", key) for n, row in enumerate(ROWS)]
    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda probe: probe.run(lambda: connect(ingest.port)), probes))
    kept = {row[0] for row in db.rows("SELECT event_id FROM postrider.event")}
    wrong = [f"{probe.name}: {fault}" for probe in done for fault in probe.faults(kept)]
    assert not wrong, "\n".join(wrong)


def dial(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def test_each_in_the_clear(make_ingest, db, admin_key):
    judge(make_ingest, db, admin_key, {}, dial)


def test_each_over_tls(make_ingest, db, admin_key, tls):
    settings, context = tls
    judge(make_ingest, db, admin_key, settings, lambda port: Tls(dial(port), context))


class Tls:
    """A client's side of TLS that can say that it sends no more, and read on."""

    def __init__(self, plain, context):
        self.plain = plain
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.came, self.goes, server_hostname="127.0.0.1")
        self._do(self.tls.do_handshake)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.plain.close()

    def _do(self, what, *args):
        while True:
            try:
                result = what(*args)
            except ssl.SSLWantReadError:
                self._flush()
                got = self.plain.recv(65536)
                if got:
                    self.came.write(got)
                else:
                    self.came.write_eof()
                continue
            self._flush()
            return result

    def _flush(self):
        if self.goes.pending:
            self.plain.sendall(self.goes.read())

    def sendall(self, octets):
        for at in range(0, len(octets), 16384):
            self._do(self.tls.write, octets[at:at + 16384])

    def recv(self, size):
        try:
            return self._do(self.tls.read, size)
        except ssl.SSLZeroReturnError:
            return b""

    def shutdown(self, _):
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass  # the other side's end comes behind its answer
        self._flush()


# -- slowly --

MODES = {
    "headers": ["-H", "-i", "1"],
    "body": ["-B", "-i", "1", "-s", "8192"],
    "ranges": ["-R", "-a", "1", "-b", "3000"],
    "reading": ["-X", "-w", "10", "-y", "20", "-n", "1", "-z", "5", "-k", "3"],
}
ATTACKERS, CONNECTIONS, SECONDS = 50, 40, 8


def attack(url, mode):
    return subprocess.Popen(
        ["slowhttptest", "-c", str(ATTACKERS), "-r", str(ATTACKERS), "-l", str(SECONDS),
         "-p", "2", "-u", url, *MODES[mode]],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def resident(ingest):
    with open(f"/proc/{ingest.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])


class Honest(Api):
    """A client at another address than the attackers'."""

    def connect(self):
        connection = super().connect()
        connection.source_address = ("127.0.0.2", 0)
        return connection


@pytest.mark.skipif(shutil.which("slowhttptest") is None, reason="slowhttptest is not installed")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_honest_clients_are_served_beside_slow_ones(
        make_ingest, admin_key, tls, scheme, monkeypatch):
    """Five slow ones want each connection that there is, for as long as they can have it."""
    # What was freed counts as freed: a sanitizer would keep it for a while.
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8")
    settings, context = tls if scheme == "https" else ({}, None)
    ingest = make_ingest(max_connections=CONNECTIONS, **settings)
    api = Honest(ingest.port, admin_key, context=context)
    api.event({"n": 0})
    before = resident(ingest)
    attacks = [attack(f"{scheme}://127.0.0.1:{ingest.port}/{path}", mode) for mode, path in
               (("headers", "healthz"), ("body", "v1/events"), ("ranges", "metrics"),
                ("reading", "metrics"))]
    took = []
    try:
        while any(process.poll() is None for process in attacks):
            began = time.monotonic()
            api.event({"n": len(took)})
            took.append(time.monotonic() - began)
    finally:
        for process in attacks:
            process.kill()
            process.wait()
    assert statistics.median(took) < 5 and max(took) < 15, sorted(took)
    given_up = re.search(r"connections_given_up_total (\d+)", api.get("/metrics").body.decode())
    assert int(given_up[1]) > 0
    assert resident(ingest) - before < 64 * 1024, (before, resident(ingest))
