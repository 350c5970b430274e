#!/usr/bin/python3 -B
"""Ingest: how fast events are accepted over HTTP, durably, and at what cost.

README.md says what is measured and how to read it.
"""

import argparse
import re
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import limits, peers  # noqa: E402
from bench.measure import Goal, Meter, conclude, medians, table  # noqa: E402
from bench.stand import Stand, wrk  # noqa: E402

TO_PEER = 15        # times fastify with graphile-worker
TO_REFUSED = 0.5    # of the rate at which requests are refused before the database
BATCHED = 40_000    # events a second, in batches

PLAIN = (1, 20, 500)    # events a transaction
ALIKE = {"postrider": 20, "batches": 500}   # whom they are compared with


class Postrider:
    """Our ingest, with one subscription that gets all events, in order."""

    batch = 1
    kind = "events"

    def __init__(self, stand, name="postrider"):
        self.stand, self.name = stand, name
        self.template, self.key = stand.install()
        ingest = stand.ingest(self.template)
        ingest.api(self.key).subscribe(stand.nginx.url)
        ingest.stop()
        stand.seal(self.template)

    def start(self, db):
        self.ingest = self.stand.ingest(db)
        return self.ingest.pid, self.ingest.port

    def accepted(self, db):
        return db.value("SELECT count(*) FROM postrider.delivery")

    def shared(self, events):
        """How many of them a transaction had."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ingest.port}/metrics") as answer:
            n = re.search(r"^postrider_ingest_batches_total (\d+)", answer.read().decode(), re.M)
        return events / int(n[1])

    def stop(self):
        self.ingest.stop()


class Batches(Postrider):
    """The same, 500 events a request."""
    batch = 500


class Refused(Postrider):
    """Events without a type: read, parsed and refused, without a look at the database."""
    kind = "refused"

    def accepted(self, db):
        return 0

    def shared(self, events):
        return None


def run(stand, contender, args):
    """As many as can be in some seconds, into a new database."""
    db = stand.copy(contender.template)
    pid, port = contender.start(db)
    meter = Meter({"ingest": [pid], "postgres": [stand.cluster.process.pid]}).start()
    connections = args.connections if contender.batch == 1 else args.batch_connections
    found = wrk(port, args.seconds, connections, contender.kind, contender.key, contender.batch)
    events = found["requests"] * contender.batch
    cost = meter.stop(events)
    if contender.kind == "refused":
        assert found["not_2xx"] == found["requests"], "all are refused"
    else:
        assert found["not_2xx"] == 0, "all are accepted"
        assert contender.accepted(db) >= events, "all that were acknowledged are there"
    assert found["failed"] == 0, "no request fails"
    shared = contender.shared(events)
    contender.stop()
    db.drop()
    return {"per_second": events / found["seconds"], **cost, "per_commit": shared,
            "p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"]}


def plain(batch):
    return f"plain SQL, {batch}"


def to_plain(found):
    """Ours, as a part of what plain SQL does with transactions of about the same size."""
    return {name: {figure: found[name][figure] / found[plain(batch)][figure]
                   for figure in ("per_second", "postgres_us")}
            for name, batch in ALIKE.items()}


def goals(found):
    rate = {name: figures["per_second"] for name, figures in found.items()}
    if "graphile-worker" in rate:
        yield Goal("events a second, to graphile-worker's",
                   rate["postrider"] / rate["graphile-worker"], least=TO_PEER)
    yield Goal("events a second, to refused requests", rate["postrider"] / rate["refused"],
               least=TO_REFUSED)
    yield Goal("events a second in batches", rate["batches"], least=BATCHED)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=8, help="of each run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each kind (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=64,
                        help="that post single events (default: %(default)s)")
    parser.add_argument("--batch-connections", type=int, default=8,
                        help="that post batches (default: %(default)s)")
    parser.add_argument("--ours", action="store_true", help="without peers")
    parser.add_argument("--json", type=Path, default=Path("ingest.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    with Stand() as stand:
        contenders = [Postrider(stand), Refused(stand, "refused"), Batches(stand, "batches")]
        folder = None if args.ours else peers.fetch()
        if folder:
            contenders += [peers.Api(stand, folder, "graphile", "graphile-worker"),
                           peers.Api(stand, folder, "pgboss", "pg-boss")]
        found = {contender.name: [] for contender in contenders}
        for _ in range(args.runs):
            for contender in contenders:
                found[contender.name].append(run(stand, contender, args))
            for batch in PLAIN:
                clients = args.connections if batch == 1 else args.batch_connections
                found.setdefault(plain(batch), []).append(
                    limits.inserts(stand, args.seconds, clients, batch))
        report = {**stand.describe(), "settings": vars(args), "runs": found,
                  "peers": peers.versions(folder) if folder else None}
    middle = {name: medians(runs) for name, runs in found.items()}
    table([{"contender": name, **figures} for name, figures in middle.items()])
    report["to_plain"] = to_plain(middle)
    table([{"of plain SQL": name, **figures} for name, figures in report["to_plain"].items()])
    conclude(args.json, report, list(goals(middle)))


if __name__ == "__main__":
    main()
