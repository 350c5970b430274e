#!/usr/bin/python3 -B
"""Flat cost: what a claim and a record take beside few and beside very many rows.

README.md says what is measured and how to read it.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import shapes  # noqa: E402
from bench.dispatcher import ROOT, Dispatcher, settings  # noqa: E402
from bench.measure import machine  # noqa: E402
from integration.postgres import Cluster  # noqa: E402

SMALL = 1000
ROUNDS, WARM_UP = 60, 5
MOST = 1.5    # times what it takes beside SMALL rows
STEPS = ("claim", "rest", "record")
SERVER = {
    "shared_buffers": "4GB",  # all is in memory: what is compared is work
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}


def migrated(cluster):
    """A database with the schema, as `postrider migrate` makes it but without a build."""
    db = cluster.create()
    scripts = [ROOT / "sql/schema_prepare.sql", *sorted((ROOT / "migrations").glob("*.sql"))]
    with db.connection.transaction():
        for script in scripts:
            db.execute(script.read_text())
    return db


def loaded(cluster, load, n):
    """A database with n rows of the load: the template for its shapes.

    The rows are read once, so that the first claims do not set their hint bits.
    """
    db = migrated(cluster)
    shapes.found(db)
    load(db, n)
    db.execute("CREATE EXTENSION pg_prewarm")
    for table in ("event", "delivery", "lane"):
        db.execute(f"SELECT count(*) FROM postrider.{table}")
    db.close()
    return db


class Queue:
    """A database of one shape, and a dispatcher at work in it."""

    def __init__(self, cluster, template, shape):
        self.db = cluster.create(template.name)
        self.dispatcher = Dispatcher(cluster.connect(self.db.name))
        self.old = cluster.connect(self.db.name)
        self.times = {}
        self.db.execute("SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i')"
                        " AND relnamespace = 'postrider'::regnamespace")
        shape.state(self.db)
        if shape.churns:
            shapes.hold_back_vacuum(self.old)
            shapes.churn(self.dispatcher)
        shapes.offer(self.db)

    @contextmanager
    def timed(self, step):
        began = time.perf_counter()
        yield
        self.times.setdefault(step, []).append((time.perf_counter() - began) * 1000)

    def round(self):
        """One claim, and what follows it; then everything is put back as it was."""
        with self.timed("claim"):
            taken = self.dispatcher.claim(shapes.SENDABLE)
        leases = self.dispatcher.leases()
        with self.timed("rest"):
            self.dispatcher.rest(taken)
        with self.timed("record"):
            self.dispatcher.record(leases, shapes.verdicts(leases))
        shapes.refill(self.db, leases)
        shapes.wake(self.db, [made for made in (shapes.OURS, shapes.OTHER) if made in taken])
        return len(leases)

    def close(self):
        self.old.close()
        self.dispatcher.connection.close()
        self.db.drop()


def measure(queues):
    """Rounds of both in turn, so that a busy machine is so for both."""
    for queue in queues:
        queue.db.execute("CHECKPOINT")
        for _ in range(WARM_UP):
            queue.round()
        queue.times.clear()
    counts = {queue.round() for _ in range(ROUNDS) for queue in queues}
    return sorted(counts)


def figures(shape, queues, lanes):
    """What the table and the file say of one shape."""
    found = {"shape": shape.name, "lanes": lanes}
    for step in STEPS:
        small, big = (queue.times[step] for queue in queues)
        medians = [statistics.median(times) for times in (small, big)]
        found[step] = {
            "small_ms": round(medians[0], 3),
            "big_ms": round(medians[1], 3),
            "ratio": round(medians[1] / medians[0], 2),
            "most_ms": [round(max(small), 3), round(max(big), 3)],
        }
    return found


def heading(n):
    print(f"milliseconds for {shapes.SENDABLE} lanes, beside {SMALL} and {n} rows;"
          f" median of {ROUNDS}")
    print(f"{'shape':30}" + "".join(f"{step:>9}{'':8}ratio" for step in STEPS))


def line(found):
    print(f"{found['shape']:30}" + "".join(
        "{small_ms:8.2f} {big_ms:7.2f} {ratio:5.2f}".format(**found[step])
        + ("!" if found[step]["ratio"] > MOST else " ") for step in STEPS), flush=True)


def compare(cluster, wanted, n):
    """Each shape's figures, as they are found."""
    for load, some in itertools.groupby(wanted, lambda shape: shape.load):
        templates = [loaded(cluster, load, rows) for rows in (SMALL, n)]
        for shape in some:
            queues = [Queue(cluster, template, shape) for template in templates]
            yield figures(shape, queues, measure(queues))
            for queue in queues:
                queue.close()
        for template in templates:
            template.drop()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000,
                        help=f"of the many, to compare with {SMALL} (default: %(default)s)")
    parser.add_argument("--shape", action="append", choices=[s.name for s in shapes.SHAPES],
                        help="measure this one only; may be repeated")
    parser.add_argument("--json", type=Path, default=Path("flat_cost.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    wanted = [s for s in shapes.SHAPES if not args.shape or s.name in args.shape]
    found = []
    with Cluster(**SERVER) as cluster:
        heading(args.rows)
        for one in compare(cluster, wanted, args.rows):
            line(one)
            found.append(one)
        report = {"machine": machine(cluster), "server": cluster.settings,
                  "session": dict(settings()), "rows": [SMALL, args.rows],
                  "rounds": ROUNDS, "shapes": found}
    args.json.write_text(json.dumps(report, indent=1) + "\n")
    grown = [one["shape"] for one in found if any(one[s]["ratio"] > MOST for s in STEPS)]
    sys.exit(f"more than {MOST} times: {', '.join(grown)}" if grown else 0)


if __name__ == "__main__":
    main()
