"""soak: play rounds until the time is up, and say what was seen.

    --minutes N    how long (1)
    --seconds N    of storm in each round (20)
    --seed S       of the first round; the others follow (from the clock)
    --keep FOLDER  where what went wrong is kept (build/soak)
    --judge FILE   judge a kept history again, and do nothing else
"""

import argparse
import collections
import shutil
import sys
import time
from pathlib import Path

from .history import load
from .judge import judge
from .rounds import explain, ground, play


class Tally:
    """Counts over all rounds."""

    def __init__(self):
        self.counts = collections.Counter()
        self.faults = collections.Counter()
        self.orders = collections.Counter()
        self.violations = collections.Counter()

    def add(self, history, violations):
        self.counts.update({
            "rounds": 1,
            "events acknowledged": sum(p.acknowledged is not None for p in history.posts),
            "posts": sum(len(p.tries) for p in history.posts),
            "deliveries": len(history.deliveries),
            "requests": len(history.requests),
            "attempts on record": len(history.attempts),
            "dispatchers": len(history.workers),
        })
        self.faults.update(fault.kind for fault in history.faults)
        self.orders.update(order.kind for order in history.orders)
        self.orders.update(f"{change.field} {change.value}" if change.field == "state"
                           else change.field for change in history.changes)
        self.violations.update(violation.kind for violation in violations)

    def report(self):
        def line(name, counter):
            told = ", ".join(f"{kind} {n}" for kind, n in sorted(counter.items()))
            return f"{name}: {counter.total()}" + (f" ({told})" if told else "")
        counts = ", ".join(f"{n} {name}" for name, n in self.counts.items())
        return "\n".join((counts, line("faults", self.faults),
                          line("orders", self.orders), line("violations", self.violations)))


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, default=Path("build/soak"))
    parser.add_argument("--judge", type=Path)
    return parser.parse_args()


def one_round(seed, seconds, here, folder, tally):
    """Whether all was well; else the folder stays."""
    folder.mkdir(parents=True)
    began = time.monotonic()
    try:
        history, violations = play(seed, seconds, here, folder)
    except Exception as failure:  # a program ended as it must not, or never answered
        tally.violations["broken round"] += 1
        print(f"seed {seed}: {failure!r}; logs in {folder}", flush=True)
        return
    tally.add(history, violations)
    print(f"seed {seed}: {len(history.requests)} requests, {len(history.faults)} faults,"
          f" {len(violations)} violations, {time.monotonic() - began:.0f} s", flush=True)
    if violations:
        print(explain(history, violations))
        print(f"kept in {folder}", flush=True)
    else:
        shutil.rmtree(folder)


def main():
    chosen = options()
    if chosen.judge:
        history = load(chosen.judge)
        violations = judge(history)
        print(explain(history, violations, most=1000))
        return 1 if violations else 0
    tally, seed = Tally(), chosen.seed
    until = time.monotonic() + 60 * chosen.minutes
    with ground() as here:
        while time.monotonic() < until:
            folder = chosen.keep / f"{seed}-{time.time():.0f}"
            one_round(seed, chosen.seconds, here, folder, tally)
            seed += 1
    print(tally.report())
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
