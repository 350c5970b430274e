#!/usr/bin/python3 -B
"""The delivery log: what a page costs at ten million rows, whatever is asked for.

README.md says what is measured and how to read it.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import long_log  # noqa: E402
from bench.measure import Goal, conclude, machine, table  # noqa: E402
from bench.stand import Stand  # noqa: E402
from integration.daemons import Cli  # noqa: E402

SMALLER = 100   # times fewer rows, to compare with,
LEAST = 50_000  # but more than a page looks at
RUNS = 7        # of each question; medians count
# Times the pages beside fewer rows, once some were added to both: `until` also looks at what
# came in the minute behind it.
MOST, SPARE = 1.5, 2000
MOST_MS = 500   # for a page: where much is looked at, and the machine is busy
PATIENCE = 300  # pages gone through for one question, at most


def walk(asker, asked):
    """How many requests it takes to fill a page, or to see that there is no more."""
    found, more = asker.ask(**asked)
    n = 1
    while len(found) < asker.LIMIT and more is not None and n < PATIENCE:
        some, more = asker.ask(**{**asked, "after": more})
        found += some
        n += 1
    return n, len(found)


def figures(asker, asked):
    plans = [asker.explain(**asked) for _ in range(RUNS)]
    times = [plan["Execution Time"] for plan in plans]
    ids, _ = asker.ask(**asked)
    requests, found = walk(asker, asked)
    return {"rows": len(ids), "ms": round(statistics.median(times), 2),
            "most_ms": round(max(times), 2), "pages": asker.pages(**asked),
            "requests": requests, "found": found}


def measure(stand, rows):
    """{what is asked for: its figures}, and the plans."""
    db = stand.cluster.create()
    Cli(stand.settings(db))("migrate")
    long_log.load(db, rows)
    db.execute("VACUUM ANALYZE")
    asker = long_log.Asker(stand.cluster.connect(db.name))
    questions = long_log.questions(db, rows)
    found = {what: figures(asker, asked) for what, asked in questions.items()}
    plans = {what: asker.explain(**asked) for what, asked in questions.items()}
    asker.connection.close()
    db.drop()
    return found, plans


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000,
                        help="deliveries of one subscription (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("log.json"),
                        help="where the figures and the plans go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    with Stand(fsync="off", synchronous_commit="off") as stand:
        n = min(max(args.rows // SMALLER, LEAST), args.rows)
        few, _ = measure(stand, n)
        many, plans = measure(stand, args.rows)
        report = {"machine": machine(stand.cluster), "server": stand.cluster.settings,
                  "settings": vars(args), "few": few, "many": many, "plans": plans}
    table([{"asked for": what, **figures, "pages_beside_few": few[what]["pages"]}
           for what, figures in many.items()])
    conclude(args.json, report, [
        Goal(f"pages, to those beside {n:,} rows, the worst question's", max(
            (figures["pages"] + SPARE) / (few[what]["pages"] + SPARE)
            for what, figures in many.items()), most=MOST),
        Goal("milliseconds for a page, the worst question's",
             max(figures["ms"] for figures in many.values()), most=MOST_MS)])


if __name__ == "__main__":
    main()
