#!/usr/bin/python3 -B
"""Latency: from accepted to received, idle and for minutes at half of the maximum.

README.md says what is measured and how to read it.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import limits  # noqa: E402
from bench.measure import Gauge, Goal, Meter, conclude, table  # noqa: E402
from bench.stand import Stack, Stand  # noqa: E402
from integration.wait import dawdle  # noqa: E402

IDLE_RATE = 20      # events a second
IDLE_MOST = 4       # ms from POST to arrival, half of the events, when idle
BUSY_MOST = (5, 40) # ms from the answer to arrival, of half of the events and of 99 %
FLAT = 1.1          # times what it was after a fifth of the time: memory, what is kept of an event
SPARE = 2           # the same, of tables that are to be empty
KEPT = ("event", "delivery", "other_attempt")  # grow with every event, until retention
COLUMNS = ("per_second", "accepted_p50_ms", "received_p50_ms", "received_p99_ms", "posted_p50_ms",
           "posted_p99_ms", "ingest_us", "dispatch_us", "postgres_us")

SIZES = """
SELECT relname, pg_table_size(oid), pg_indexes_size(oid)
  FROM pg_class
 WHERE relnamespace = 'postrider'::regnamespace AND relkind IN ('r', 'p')
 ORDER BY relname
"""


class Measured(Stack):
    """With one dispatcher, and a meter."""

    def __init__(self, stand):
        super().__init__(stand)
        self.dispatcher = self.dispatch()
        self.meter = Meter({
            "ingest": [self.ingest.pid], "dispatch": [self.dispatcher.pid],
            "postgres": [stand.cluster.process.pid], "endpoint": [self.endpoint.pid]})

    def post(self, connections, rate, events):
        self.meter.start()
        self.events = events
        super().post(connections, rate, events)

    def result(self):
        return {**super().result(), **self.meter.stop(self.events)}

    def sample(self):
        return {"ingest_mb": Gauge(self.ingest.pid).octets() / 1e6,
                "dispatch_mb": Gauge(self.dispatcher.pid).octets() / 1e6,
                "tables": {name: {"table": heap, "indexes": indexes}
                           for name, heap, indexes in self.db.rows(SIZES)}}

    def close(self):
        self.dispatcher.stop()
        super().close()


def alone(stand, events):
    """One at a time, with pauses."""
    stack = Measured(stand)
    stack.post(1, IDLE_RATE, events)
    found = stack.result()
    stack.close()
    return found


def maximum(stand, events, connections):
    """As fast as they are accepted, until the last one came: events a second."""
    stack = Measured(stand)
    stack.post(connections, 0, events)
    found = stack.result()
    stack.close()
    return {"per_second": events / found["seconds"], **found}


def steady(stand, rate, seconds, connections):
    """At an even pace; samples of what is taken at first and after each fifth of the time."""
    stack = Measured(stand)
    samples, began, events = [stack.sample()], time.monotonic(), int(rate * seconds)
    stack.post(connections, rate, events)
    while stack.endpoint.is_posting():
        if time.monotonic() - began > len(samples) * seconds / 5 and len(samples) < 5:
            samples.append(stack.sample())
        dawdle(0.05)
    found = stack.result()
    samples.append(stack.sample())
    stack.close()
    return {"per_second": rate, **found}, samples


def octets(sample, is_kept):
    return sum(sum(sizes.values()) for name, sizes in sample["tables"].items()
               if (name in KEPT) == is_kept)


def goals(report):
    yield Goal("idle: ms from POST to arrival, p50", report["idle"]["posted_p50_ms"],
               most=IDLE_MOST)
    for part, most in zip(("p50", "p99"), BUSY_MOST):
        yield Goal(f"half of the maximum: ms from accepted to received, {part}",
                   report["steady"][f"received_{part}_ms"], most=most)
    start, first, *_, last = report["samples"]
    for name in ("ingest_mb", "dispatch_mb"):
        yield Goal(f"{name}, to a fifth of the time", last[name] / first[name], most=FLAT)
    kept = [octets(sample, True) for sample in (start, first, last)]
    yield Goal("growth with each event, to a fifth of the time",
               (kept[2] - kept[1]) / (kept[1] - kept[0]) / 4, most=FLAT)
    yield Goal("tables that are to be empty, to a fifth of the time",
               octets(last, False) / octets(first, False), most=SPARE)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--minutes", type=float, default=5,
                        help="at half of the maximum (default: %(default)s)")
    parser.add_argument("--events", type=int, default=100_000,
                        help="to find the maximum with (default: %(default)s)")
    parser.add_argument("--idle-events", type=int, default=400,
                        help=f"at {IDLE_RATE} a second (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=64,
                        help="that post (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("latency.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    with Stand() as stand:
        report = {**stand.describe(), "settings": vars(args),
                  "chain_p50_ms": limits.chain(stand, IDLE_RATE, args.idle_events),
                  "idle": alone(stand, args.idle_events),
                  "maximum": maximum(stand, args.events, args.connections)}
        report["steady"], report["samples"] = steady(
            stand, report["maximum"]["per_second"] / 2, args.minutes * 60, args.connections)
    table([{"": name, **{column: report[name].get(column) for column in COLUMNS}}
           for name in ("idle", "maximum", "steady")])
    print()
    table([{"fifth": n, "ingest_mb": sample["ingest_mb"],
            "dispatch_mb": sample["dispatch_mb"], "kept_mb": octets(sample, True) / 1e6,
            "others_mb": octets(sample, False) / 1e6}
           for n, sample in enumerate(report["samples"])])
    print(f"\nidle: {report['idle']['posted_p50_ms']:.1f} ms, of which a commit, a notification,"
          f" a commit and a message take {report['chain_p50_ms']:.1f} by themselves")
    conclude(args.json, report, list(goals(report)))


if __name__ == "__main__":
    main()
