#!/usr/bin/python3 -B
"""Growth: how fast a backlog is sent beside what was delivered before.

README.md says what is measured and how to read it.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import history  # noqa: E402
from bench.delivery import Postrider, run  # noqa: E402
from bench.measure import Goal, conclude, medians, table  # noqa: E402
from bench.stand import Stand  # noqa: E402
from bench.traffic import Poster, Shape  # noqa: E402

IN_FLIGHT = 1000
BESIDE_FINISHED = 0.9  # of the rate beside none
HELD_BACK = 0.8        # of the rate without an open transaction


class Queue:
    """A database with finished deliveries, and backlogs one after the other."""

    def __init__(self, stand, shape, finished, holds=False):
        self.stand, self.shape, self.holds, self.posted = stand, shape, holds, 0
        self.name = f"{finished:,} finished" + (", a transaction open" if holds else "")
        self.db, self.key = stand.install()
        ingest = stand.ingest(self.db)
        ingest.api(self.key).subscribe(stand.nginx.url, max_in_flight=IN_FLIGHT)
        ingest.stop()
        history.load(self.db, finished, "1 hour", 100)

    def round(self):
        ingest = self.stand.ingest(self.db)
        poster = Poster(ingest.port, self.key)
        poster.post_all(self.shape.lines(self.posted))
        poster.close()
        ingest.stop()
        self.posted += self.shape.events
        self.db.execute("VACUUM ANALYZE")
        self.db.execute("CHECKPOINT")
        with self.stand.cluster.connect(self.db.name) as old:
            if self.holds:
                old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                old.execute("SELECT txid_current()")
            return run(self.stand, Postrider(self.stand), self.db, self.shape, 1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--finished", type=int, nargs="+", default=[0, 1_000_000, 10_000_000],
                        help="deliveries that are over (default: none, a million, ten)")
    parser.add_argument("--events", type=int, default=100_000,
                        help="of a backlog (default: %(default)s)")
    parser.add_argument("--assets", type=int, default=10_000,
                        help="that they are of (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each kind (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("growth.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    shape = Shape("b", "", args.events, args.assets)
    with Stand() as stand:
        queues = [Queue(stand, shape, finished) for finished in args.finished]
        queues.append(Queue(stand, shape, args.finished[0], holds=True))
        runs = {queue.name: [] for queue in queues}
        for _ in range(args.runs):
            for queue in queues:
                runs[queue.name].append(queue.round())
        report = {**stand.describe(), "settings": vars(args), "runs": runs}
    found = {name: medians(some) for name, some in runs.items()}
    table([{"beside": name, **figures} for name, figures in found.items()])
    first, *others = found
    conclude(args.json, report, [
        Goal(f"{name}, to {first}", found[name]["per_second"] / found[first]["per_second"],
             least=HELD_BACK if "open" in name else BESIDE_FINISHED) for name in others])


if __name__ == "__main__":
    main()
