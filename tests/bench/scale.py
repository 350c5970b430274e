#!/usr/bin/python3 -B
"""Scale: what dispatchers add where receivers take their time.

README.md says what is measured and how to read it.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.measure import Goal, Meter, conclude, medians, table  # noqa: E402
from bench.stand import Endpoint, Stand  # noqa: E402
from bench.traffic import Poster, Shape  # noqa: E402
from integration.wait import dawdle, until  # noqa: E402

NUMBERS = (1, 2, 4, 8)
SETTLING = 1        # seconds that do not count
IN_PROPORTION = 0.8 # of what is in flight, divided by the time of an answer
BELOW_THE_WALL = 0.5  # of the most that was reached: so far it must be in proportion


def fill(stand, endpoint, events):
    """A backlog without order for this endpoint: the database to copy."""
    db, key = stand.install()
    ingest = stand.ingest(db)
    ingest.api(key).subscribe(endpoint.url, max_in_flight=10_000)
    Poster(ingest.port, key).post_all(Shape("a", "no asset", events).lines())
    ingest.stop()
    return stand.seal(db)


def run(stand, endpoint, template, number, args, in_flight):
    """Deliveries a second of so many dispatchers, each with so many in flight."""
    db = stand.copy(template)
    before = endpoint.count()
    programs = [stand.dispatch(db, max_in_flight=in_flight) for _ in range(number)]
    until(lambda: endpoint.count() > before, "the first request comes", seconds=30)
    dawdle(SETTLING)
    meter = Meter({"dispatch": [program.pid for program in programs],
                   "postgres": [stand.cluster.process.pid], "endpoint": [endpoint.pid]}).start()
    began, first = time.monotonic(), endpoint.count()
    dawdle(args.seconds)
    sent, took = endpoint.count() - first, time.monotonic() - began
    cost = meter.stop(sent)
    if endpoint.count() - before >= args.events:
        raise RuntimeError("all was sent before the time was over: more --events, please")
    for program in programs:
        program.kill()
    db.drop()
    can = number * in_flight * 1000 / args.delay_ms
    return {"dispatchers": number, "in_flight": number * in_flight, "could": can,
            "per_second": sent / took, "part": sent / took / can, **cost}


def goals(found):
    most = max(figures["per_second"] for figures in found)
    for figures in found:
        if figures["could"] <= BELOW_THE_WALL * most:
            yield Goal(f"{figures['dispatchers']} dispatchers, of what is possible",
                       figures["part"], least=IN_PROPORTION)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--delay-ms", type=int, default=100,
                        help="that a receiver takes (default: %(default)s)")
    parser.add_argument("--in-flight", type=int, default=60,
                        help="of one dispatcher (default: %(default)s)")
    parser.add_argument("--wall", type=int, default=1000,
                        help="the same, of the most dispatchers at last (default: %(default)s)")
    parser.add_argument("--events", type=int, default=150_000,
                        help="of the backlog (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="of a run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each kind (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("scale.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def main():
    args = arguments()
    cases = [(number, args.in_flight) for number in NUMBERS] + [(NUMBERS[-1], args.wall)]
    runs = {case: [] for case in cases}
    with Stand() as stand:
        endpoint = Endpoint(stand.folder, args.delay_ms)
        template = fill(stand, endpoint, args.events)
        for _ in range(args.runs):
            for number, in_flight in cases:
                runs[number, in_flight].append(
                    run(stand, endpoint, template, number, args, in_flight))
        endpoint.close()
        report = {**stand.describe(), "settings": vars(args), "runs": list(runs.values())}
    found = [medians(some) for some in runs.values()]
    table(found)
    conclude(args.json, report, list(goals(found)))


if __name__ == "__main__":
    main()
