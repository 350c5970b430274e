#!/usr/bin/python3 -B
"""Retention: from POST to arrival, while old rows go and while none do.

README.md says what is measured and how to read it.
"""

import argparse
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import history  # noqa: E402
from bench.measure import Goal, conclude, medians, table  # noqa: E402
from bench.stand import Stack, Stand  # noqa: E402

CONNECTIONS = 32        # that post
SETTLING = 2            # seconds at the beginning of each slice that do not count
MOST = 1.25             # times the p50 and the p99 without
SETTINGS = {"without": {"retention_payload": "0s", "retention_log": "0s"}, "with": {}}
FIGURES = ("posted_p50_ms", "posted_p99_ms", "posted_most_ms")

# Old rows that have not gone yet.
LEFT = """
SELECT (SELECT count(*)
          FROM postrider.event
         WHERE body IS NOT NULL
           AND accepted_at < now() - interval '1 day')
       + (SELECT count(*)
            FROM postrider.delivery
           WHERE finished_at < now() - interval '1 day')
"""


def slice_(stack, rate, seconds, settings):
    """Figures of a dispatcher with these settings, while events come at an even pace."""
    dispatch = stack.dispatch(**settings)
    stack.post(CONNECTIONS, rate, SETTLING * rate)
    stack.result()
    stack.post(CONNECTIONS, rate, seconds * rate)
    found = stack.result()
    dispatch.stop()
    return {name: found[name] for name in FIGURES}


def measure(stack, args):
    """Slices in turn until all that is old has gone: their figures, and how long it took."""
    found = {name: [] for name in SETTINGS}
    gone = 0
    for name in itertools.cycle(SETTINGS):
        found[name].append(slice_(stack, args.rate, args.slice, SETTINGS[name]))
        if name == "with":
            gone += args.slice + SETTLING
            left = stack.db.value(LEFT)
            print(f"{gone:5} s with retention: {left} old rows left", flush=True)
            if left == 0 or gone >= args.seconds:
                return found, {"left": left, "seconds": gone}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=5_000_000,
                        help="events and deliveries in sum (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=200,
                        help="events a second (default: %(default)s)")
    parser.add_argument("--slice", type=int, default=20,
                        help="seconds without and with, in turn (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=3600,
                        help="of retention at most (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("retention.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    with Stand(autovacuum_naptime="10s") as stand:
        stack = Stack(stand)
        history.load(stack.db, args.rows // 2, "40 days", 300)
        slices, end = measure(stack, args)
        stack.close()
        report = {**stand.describe(), "settings": vars(args), **end, "slices": slices}
    middle = {name: medians(some) for name, some in slices.items()}
    print(f"at {args.rate} events a second, medians of {len(slices['with'])} slices")
    table([{"retention": name, **figures} for name, figures in middle.items()])
    conclude(args.json, report, [
        Goal(f"{name} with retention, to without", middle["with"][name] / middle["without"][name],
             most=MOST) for name in FIGURES[:2]])


if __name__ == "__main__":
    main()
