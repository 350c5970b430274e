#!/usr/bin/python3
"""How much requests that are never answered harm a healthy endpoint.

    POSTRIDER_BIN=build/release/bin tests/bench/isolation.py --json isolation.json

One dispatcher sends a steady trickle of events to a healthy endpoint: alone,
and beside 10,000 requests in flight to endpoints that accept, read, and say
nothing.  The two alternate, each time with a new database and new programs, and
the medians over the rounds are printed: how long a request took from the answer
202 to the healthy endpoint, and what the dispatcher took meanwhile: resident
memory, descriptors, database connections and processor time.

The hard limit of descriptors must lie some hundred above the number of silent
requests.  PostgreSQL runs without fsync: the disk is not what is measured.
"""

import argparse
import json
import multiprocessing
import resource
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import traffic  # noqa: E402
from bench.measure import Gauge, medians  # noqa: E402
from integration.daemons import Cli, Dispatch, Ingest  # noqa: E402
from integration.postgres import Cluster  # noqa: E402
from integration.wait import dawdle, until  # noqa: E402

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Endpoint:
    """A web server in a process of its own, on all of 127.0.0.0/8.

    It answers at once and keeps when each request came; a silent one only
    counts them.
    """

    def __init__(self, is_silent=False, certificate=None):
        self.is_silent = is_silent
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        self.listener.bind(("0.0.0.0", 0))
        self.listener.listen(4096)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.count = multiprocessing.Value("l", 0, lock=False)
        self.pipe, inner = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=self._serve, args=(inner,), daemon=True)
        self.process.start()
        self.listener.close()

    def close(self):
        self.process.kill()
        self.process.join()

    def take(self):
        """Event id -> when its request came, since the last take()."""
        self.pipe.send("take")
        return self.pipe.recv()

    def _serve(self, pipe):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        poll, connections, came = select.epoll(), {}, {}
        poll.register(self.listener, select.EPOLLIN)
        poll.register(pipe, select.EPOLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.listener.fileno():
                    self._accept(poll, connections)
                elif fd == pipe.fileno():
                    pipe.recv()
                    pipe.send(came)
                    came = {}
                else:
                    self._read(fd, connections, came)

    def _accept(self, poll, connections):
        while True:
            try:
                connection, _ = self.listener.accept()
            except BlockingIOError:
                return
            if self.tls:
                connection = self.tls.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False)
            connection.setblocking(False)
            connections[connection.fileno()] = connection
            poll.register(connection, select.EPOLLIN)

    def _read(self, fd, connections, came):
        try:
            data = connections[fd].recv(65536)
        except ssl.SSLWantReadError:
            return
        except OSError:
            data = b""
        if not data:
            connections.pop(fd).close()
            return
        self.count.value += data.startswith(b"POST ")
        if not self.is_silent:
            # A short request comes in one piece.
            event = data.split(b"webhook-id: ", 1)[1].split(b"\r\n", 1)[0]
            came[event.decode()] = time.monotonic()
            connections[fd].send(ANSWER)


def make_certificate(path):
    """A key and a certificate of 127.0.0.1 that vouches for itself, in one file."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=bench",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", path],
        check=True, capture_output=True)
    return path


class Poster(traffic.Poster):
    """Posts what is healthy slowly, and what is not at once."""

    def trickle(self, name, rate, seconds):
        """Healthy events at an even pace, however slow; id -> when accepted."""
        accepted = {}
        begin = time.monotonic()
        for n in range(int(rate * seconds)):
            dawdle(max(0, begin + n / rate - time.monotonic()))
            self.post("/v1/events", b'{"id":"%s_%d","type":"healthy","data":%d}'
                      % (name.encode(), n, n), "application/json")
            accepted[f"{name}_{n}"] = time.monotonic()
        return accepted

    def burst(self, count, octets):
        """Events for all silent subscriptions."""
        line = b'{"type":"silent","data":"%s"}\n' % (b"x" * octets)
        for begin in range(0, count, 100):
            self.post("/v1/events/batch", line * min(100, count - begin),
                      "application/x-ndjson")


class Bench:
    """The servers, and a database with every subscription to copy from."""

    def __init__(self, args, folder):
        self.args = args
        self.folder = Path(folder)
        self.certificate = make_certificate(self.folder / "pem") if args.tls else None
        self.healthy = Endpoint()
        self.silent = Endpoint(is_silent=True, certificate=self.certificate)
        self.cluster = Cluster()
        self.key_file = self.folder / "secret.key"
        self.key_file.write_text("5a" * 32 + "\n")
        self.key_file.chmod(0o600)

    def __enter__(self):
        self.cluster.__enter__()
        self.template = self.cluster.create()
        self._prepare(self._settings(self.template))
        self.template.close()
        return self

    def __exit__(self, *_):
        self.cluster.__exit__()
        self.healthy.close()
        self.silent.close()

    def _settings(self, db):
        return {"database": db.conninfo, "secret_key_file": self.key_file,
                "log_level": "warn"}

    def _silent_url(self, n):
        if self.args.tls:  # the certificate names one address
            return f"https://127.0.0.1:{self.silent.port}/{n}"
        return f"http://127.1.{n // 250}.{n % 250 + 1}:{self.silent.port}/"

    def _prepare(self, settings):
        cli = Cli(settings)
        cli("migrate")
        cli("tenant", "create", "bench")
        self.key = cli.json("key", "create", "--tenant", "bench", "--role", "admin")["key"]
        ingest = Ingest(self.folder, settings).start()
        api = ingest.api(self.key)
        api.subscribe(f"http://127.0.0.1:{self.healthy.port}/", event_types=["healthy"])
        for n in range(self.args.subscriptions):
            api.subscribe(self._silent_url(n), event_types=["silent"], ordering="none",
                          max_in_flight=self.args.each, timeout_ms=self.args.timeout_ms)
        ingest.stop()

    def round(self, is_beside):
        """One run, with the silent requests or without; what was measured."""
        db = self.cluster.create(self.template.name)
        settings = self._settings(db)
        ingest = Ingest(self.folder, settings).start()
        dispatch = Dispatch(self.folder, {
            **settings, "max_in_flight": self.args.requests + 2000,
            "ca_file": self.certificate or "",
            # A handshake takes a millisecond: ten thousand take their time.
            "lease_margin": "60s" if self.args.tls else "5s"}).start()
        try:
            poster, gauge = Poster(ingest.port, self.key), Gauge(dispatch.pid)
            self._trickle(poster, "warm", 2)
            found = self._begin_silent(poster, gauge) if is_beside else {}
            self._trickle(poster, "settle", 3)
            return {**found, **self._measure(db, poster, gauge)}
        finally:
            dispatch.kill()
            ingest.stop()
            db.drop()

    def _trickle(self, poster, name, seconds):
        """From accepted to received, milliseconds in order."""
        accepted = poster.trickle(name, self.args.rate, seconds)
        came = {}
        until(lambda: came.update(self.healthy.take()) or len(came) >= len(accepted),
              "all events arrive", seconds=60)
        return sorted((came[event] - at) * 1000 for event, at in accepted.items())

    def _begin_silent(self, poster, gauge):
        octets, processor, began = gauge.octets(), gauge.processor(), time.monotonic()
        self.silent.count.value = 0
        poster.burst(self.args.each, self.args.octets)
        until(lambda: self.silent.count.value >= self.args.requests,
              "the silent requests are in flight", seconds=120)
        return {
            "begun_in_s": time.monotonic() - began,
            "us_a_request": (gauge.processor() - processor) * 1e6 / self.args.requests,
            "octets_a_request": (gauge.octets() - octets) / self.args.requests,
        }

    def _measure(self, db, poster, gauge):
        backends = [Gauge(pid) for (pid,) in db.rows(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE 'postrider-dispatch%%'")]
        processor = gauge.processor()
        theirs = sum(backend.processor() for backend in backends)
        waits = self._trickle(poster, "timed", self.args.seconds)
        theirs = sum(backend.processor() for backend in backends) - theirs
        return {
            "p50_ms": waits[len(waits) // 2],
            "p99_ms": waits[len(waits) * 99 // 100],
            "max_ms": waits[-1],
            "processor_percent":
                (gauge.processor() - processor) * 100 / self.args.seconds,
            "backends_percent": theirs * 100 / self.args.seconds,
            "memory_mb": gauge.octets() / 1e6,
            "descriptors": gauge.descriptors(),
            "database_connections": len(backends),
            "in_flight": db.value("SELECT count(lease_token) FROM postrider.lane"),
        }


def table(alone, beside):
    """Lines of text."""
    yield f"{'':22}{'alone':>12}{'beside':>12}{'ratio':>9}"
    for name, value in beside.items():
        first = alone.get(name)
        ratio = f"{value / first:9.2f}" if first and name.endswith("_ms") else ""
        yield (f"{name:22}" + (f"{'':12}" if first is None else f"{first:12,.2f}")
               + f"{value:12,.2f}" + ratio)


def read_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="POSTRIDER_BIN names the programs' folder.")
    parser.add_argument("--requests", type=int, default=10000,
                        help="silent requests in flight (default: %(default)s)")
    parser.add_argument("--subscriptions", type=int, default=100,
                        help="that they belong to, each of an address of its own")
    parser.add_argument("--octets", type=int, default=1000, help="data of a silent event")
    parser.add_argument("--tls", action="store_true",
                        help="silent endpoints speak https, all on one address")
    parser.add_argument("--timeout-ms", type=int, default=60000, help="of a silent request")
    parser.add_argument("--rate", type=float, default=50, help="healthy events a second")
    parser.add_argument("--seconds", type=float, default=30, help="that they are timed for")
    parser.add_argument("--rounds", type=int, default=3, help="of each kind")
    parser.add_argument("--json", type=Path, help="file for all that was measured")
    args = parser.parse_args()
    args.each = -(-args.requests // args.subscriptions)
    args.requests = args.each * args.subscriptions
    return args


def main():
    args = read_arguments()
    alone, beside = [], []
    with tempfile.TemporaryDirectory() as folder, Bench(args, folder) as bench:
        for _ in range(args.rounds):
            alone.append(bench.round(False))
            beside.append(bench.round(True))
    print("\n".join(table(medians(alone), medians(beside))))
    if args.json:
        args.json.write_text(json.dumps(
            {"settings": vars(args), "alone": alone, "beside": beside},
            default=str, indent=2) + "\n")


if __name__ == "__main__":
    main()
