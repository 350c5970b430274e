#!/usr/bin/python3 -B
"""Retention: from accept to receive, while old rows go and while none do.

README.md says what is measured and how to read it.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import re
import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.dispatcher import ROOT  # noqa: E402
from bench.flat_cost import machine  # noqa: E402
from integration.daemons import Cli, Dispatch, Ingest  # noqa: E402
from integration.postgres import Cluster  # noqa: E402
from integration.wait import until  # noqa: E402

CONNECTIONS = 32        # that post them
SLICE = 20              # seconds without and with, in turn
SETTLING = 2            # seconds at the beginning of each that do not count
MOST = 1.25             # times the p50 and the p99 without
OFF = {"retention_payload": "0s", "retention_log": "0s"}
SERVER = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "autovacuum_naptime": "10s",
}

OLD = """
WITH made AS (
    INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, asset, fingerprint,
                                 body, accepted_at)
    SELECT 1, 1, 'old-' || g, 'reading', 'pump-' || g %% 1000, sha256(g::text::bytea),
           convert_to(repeat('x', 300), 'UTF8'), now() - interval '40 days'
      FROM generate_series(%(first)s::bigint, %(last)s) g
    RETURNING event_no
), delivered AS (
    INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state, status,
                                    attempts, finished_at)
    SELECT nextval('postrider.position'), event_no, 1, event_no %% 1000, 'delivered', 200, 1,
           now() - interval '40 days'
      FROM made
    RETURNING id
)
INSERT INTO postrider.attempt (delivery_id, generation, attempt, started_at, duration_us,
                               ended, status, worker)
SELECT id, 1, 1, now() - interval '40 days', 1000, 'answered', 200, 'a host:1:2'
  FROM delivered
"""


def load(db, rows):
    """So many old rows: events, deliveries and attempts, a third each."""
    events, step = rows // 3, 100_000
    for first in range(1, events + 1, step):
        db.execute(OLD, {"first": first, "last": min(first + step - 1, events)})
    db.execute("VACUUM ANALYZE")
    db.execute("CHECKPOINT")


class Webhook(asyncio.Protocol):
    """Answers at once, and remembers when each event came."""

    def __init__(self, seen):
        self.seen = seen
        self.buffer = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while (head := self.buffer.find(b"\r\n\r\n")) >= 0:
            length = int(re.search(rb"(?i)content-length: *(\d+)", self.buffer[:head])[1])
            if len(self.buffer) < head + 4 + length:
                return
            body = self.buffer[head + 4:head + 4 + length]
            self.buffer = self.buffer[head + 4 + length:]
            self.seen.setdefault(int(re.search(rb'"n":(\d+)', body)[1]), time.monotonic())
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def webhook(pipe):
    """A process of its own: says its port; at each message, what it has seen since."""
    async def serve():
        seen = {}
        server = await asyncio.get_running_loop().create_server(
            lambda: Webhook(seen), "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        while True:
            while not pipe.poll():
                await asyncio.sleep(0.05)
            pipe.recv()
            pipe.send(dict(seen))
            seen.clear()
    with contextlib.suppress(EOFError):
        asyncio.run(serve())


async def post_all(port, key, rate, numbers):
    """Post an event for each number, `rate` a second; returns when each was posted."""
    posted, idle = {}, asyncio.Queue()
    for _ in range(CONNECTIONS):
        idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    async def post(n):
        reader, writer = await idle.get()
        body = json.dumps({"type": "reading", "asset": f"pump-{n % 100}", "data": {"n": n}},
                          separators=(",", ":"))
        writer.write(f"POST /v1/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}"
                     f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
                     f"\r\n\r\n{body}".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 202"), head
        await reader.readexactly(int(re.search(rb"(?i)content-length: *(\d+)", head)[1]))
        idle.put_nowait((reader, writer))

    tasks, began = [], time.monotonic()
    for i, n in enumerate(numbers):
        await asyncio.sleep(began + i / rate - time.monotonic())
        posted[n] = time.monotonic()
        tasks.append(asyncio.create_task(post(n)))
    await asyncio.gather(*tasks)
    while not idle.empty():
        idle.get_nowait()[1].close()
    return posted


class Stack:
    """Ingest, a webhook and the key to post with; dispatchers come and go."""

    def __init__(self, cluster, folder, rate):
        self.folder = folder
        self.rate = rate
        self.db = cluster.create()
        key_file = Path(folder) / "secret.key"
        key_file.write_text(secrets.token_hex(32))
        key_file.chmod(0o600)
        self.settings = {"database": self.db.conninfo, "secret_key_file": key_file}
        cli = Cli(self.settings)
        cli("migrate")
        cli("tenant", "create", "acme")
        self.key = cli.json("key", "create", "--tenant", "acme", "--role", "admin")["key"]
        self.pipe, other = multiprocessing.Pipe()
        self.webhook = multiprocessing.Process(target=webhook, args=(other,), daemon=True)
        self.webhook.start()
        self.ingest = Ingest(folder, {**self.settings, "log_level": "warn"}).start()
        self.ingest.api(self.key).subscribe(f"http://127.0.0.1:{self.pipe.recv()}/")
        self.numbers = itertools.count()

    def dispatch(self, **own):
        return Dispatch(self.folder, {**self.settings, "log_level": "warn", **own}).start()

    def trickle(self, seconds):
        """`rate` events a second; when each was posted, of those that count."""
        numbers = [next(self.numbers) for _ in range(seconds * self.rate)]
        posted = asyncio.run(post_all(self.ingest.port, self.key, self.rate, numbers))
        return {n: posted[n] for n in numbers[SETTLING * self.rate:]}

    def arrivals(self, posted):
        seen = {}

        def all_came():
            self.pipe.send("seen?")
            seen.update(self.pipe.recv())
            return posted.keys() <= seen.keys()
        until(all_came, "everything arrives", seconds=60)
        return [(seen[n] - at) * 1000 for n, at in posted.items()]

    def left(self):
        """Old rows that have not gone yet."""
        return self.db.value(
            "SELECT (SELECT count(*) FROM postrider.event WHERE body IS NOT NULL AND"
            " accepted_at < now() - interval '1 day') + (SELECT count(*) FROM postrider.delivery"
            " WHERE finished_at < now() - interval '1 day') + (SELECT count(*) FROM"
            " postrider.attempt WHERE started_at < now() - interval '1 day')")

    def close(self):
        self.ingest.stop()
        self.webhook.terminate()


def measure(stack, limit):
    """Slices in turn until all that is old has gone: their times, and how long it took."""
    times = {"without": [], "with": []}
    gone = 0
    for name in itertools.cycle(times):
        dispatch = stack.dispatch(**(OFF if name == "without" else {}))
        posted = stack.trickle(SLICE)
        times[name] += stack.arrivals(posted)
        dispatch.stop()
        if name == "with":
            gone += SLICE
            left = stack.left()
            print(f"{gone:5} s with retention: {left} old rows left", flush=True)
            if left == 0 or gone >= limit:
                return times, gone, left


def figures(times):
    """Of one kind of slice."""
    cuts = statistics.quantiles(times, n=1000)
    return {"events": len(times), "p50_ms": round(cuts[499], 2), "p99_ms": round(cuts[989], 2),
            "most_ms": round(max(times), 2)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=5_000_000,
                        help="events, deliveries and attempts in sum (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=200,
                        help="events a second (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=3600,
                        help="of retention at most (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("retention.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def run(cluster, args):
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(cluster, folder, args.rate)
        try:
            load(stack.db, args.rows)
            times, seconds, left = measure(stack, args.seconds)
        finally:
            stack.close()
    return {"machine": machine(cluster), "server": cluster.settings, "rate": args.rate,
            "rows": args.rows, "left": left, "seconds": seconds,
            **{name: figures(some) for name, some in times.items()}}


def main():
    args = arguments()
    os.environ.setdefault("POSTRIDER_BIN", str(ROOT / "build/release/bin"))
    with Cluster(**SERVER) as cluster:
        report = run(cluster, args)
    print(f"milliseconds from POST to arrival, at {args.rate} a second\n"
          f"{'retention':12}{'events':>9}{'p50':>9}{'p99':>9}{'most':>9}")
    for name in ("without", "with"):
        print(f"{name:12}" + "{events:9}{p50_ms:9.2f}{p99_ms:9.2f}{most_ms:9.2f}".format(
            **report[name]))
    args.json.write_text(json.dumps(report, indent=1) + "\n")
    grown = [cut for cut in ("p50_ms", "p99_ms")
             if report["with"][cut] > MOST * report["without"][cut]]
    sys.exit(f"more than {MOST} times: {', '.join(grown)}" if grown else 0)


if __name__ == "__main__":
    main()
