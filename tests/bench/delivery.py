#!/usr/bin/python3 -B
"""Delivery: how fast a backlog is sent, and at what cost.

README.md says what is measured and how to read it.
"""

import argparse
import dataclasses
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import limits, peers  # noqa: E402
from bench.measure import Goal, Meter, conclude, medians, table  # noqa: E402
from bench.stand import Stand  # noqa: E402
from bench.traffic import BATCH, Poster, Shape, line  # noqa: E402
from integration.wait import dawdle, until  # noqa: E402

LONGEST = 40  # seconds of one run
TOGETHER = 3_000  # connections that all dispatchers open at once: nginx lets 4,096 wait
BACKLOG = 50_000  # that is kept up in minutes of delivery

# Of the same shape: the peers that are measured beside, whether they keep its order, and in
# how many processes.
ANY = [(peers.Graphile, False, (1, 2)), (peers.PgBoss, False, (1,))]
ORDERED = [(peers.Graphile, True, (1,)), (peers.PgBoss, True, (1,))]
SHAPES = {shape.name: (shape, beside) for shape, beside in (
    (Shape("a", "no asset"), ANY),
    (Shape("b", "10,000 assets", assets=10_000), ANY[:1] + ORDERED),
    (Shape("c", "1,000 assets", assets=1000), ANY[:1] + ORDERED),
    (Shape("d", "100 subscriptions", subscriptions=100), ANY[:1]),
    (Shape("e", "1,000 assets behind one of two fifths", events=50_000, assets=1000, hot=0.4),
     ORDERED),
    (Shape("one", "one asset alone", events=20_000, hot=1), ORDERED[1:]),
)}
TO_UNORDERED, TO_ORDERED = 1.5, 3  # times graphile-worker, in one process or two
TO_BEST = 0.9         # of the best number of dispatchers, with the most
BEHIND_ANOTHER = 0.9  # of the rate of assets without one in front of them
TO_SEQUENCE = 0.7     # of what one asset could get at most


class Postrider:
    """Our dispatchers."""

    name = "postrider"

    def __init__(self, stand):
        self.stand = stand

    def fill(self, shape, in_flight):
        self.template, key = self.stand.install()
        ingest = self.stand.ingest(self.template)
        api, poster = ingest.api(key), Poster(ingest.port, key)
        for n in range(shape.subscriptions):
            api.subscribe(self.stand.nginx.url, event_types=[shape.kind(n)],
                          max_in_flight=in_flight)
        poster.post_all(shape.lines())
        poster.close()
        ingest.stop()
        self.stand.seal(self.template)
        return self

    def start(self, db, dispatchers):
        self.programs = [self.stand.dispatch(db, max_in_flight=TOGETHER // dispatchers)
                         for _ in range(dispatchers)]
        return [program.pid for program in self.programs]

    def is_done(self, db, spares_hot):
        others = "WHERE asset <> 'hot'" if spares_hot else ""
        return db.value(f"SELECT NOT EXISTS (SELECT FROM postrider.lane {others})")

    def stop(self):
        for program in self.programs:
            program.stop()


def run(stand, contender, db, shape, processes):
    """One backlog, from the first request to the record of the last delivery.

    Of an asset in front of others only the others count.
    """
    others = shape.events - shape.front()
    counted = others or shape.events
    nginx, before = stand.nginx, stand.nginx.count()
    meter = Meter({"sender": contender.start(db, processes), "nginx": [nginx.pid],
                   "postgres": [stand.cluster.process.pid]})
    until(lambda: nginx.count() > before, "the first request comes", seconds=30)
    meter.start()
    began = time.monotonic()
    is_done = False
    while not is_done and (ended := time.monotonic()) < began + LONGEST:
        is_done = nginx.count() - before >= counted and contender.is_done(db, others > 0)
        dawdle(0 if is_done else 0.01)
    sent = nginx.count() - before
    figures = {"per_second": (counted if is_done else sent) / (ended - began),
               **meter.stop(sent), "sent": sent, "seconds": round(ended - began, 3),
               "is_done": is_done}
    contender.stop()
    return figures


def entries(stand, shape, beside, args):
    """Who is compared: (name, contender, its shape, processes), with backlogs ready."""
    ours = Postrider(stand).fill(shape, args.in_flight)
    for n in args.dispatchers if shape.front() == 0 else [1]:
        yield times(ours.name, n), ours, shape, n
    if 0 < shape.front() < shape.events:
        rest = dataclasses.replace(shape, hot=0, events=shape.events - shape.front())
        yield "the others alone", Postrider(stand).fill(rest, args.in_flight), rest, 1
    for peer, is_ordered, processes in beside if args.peers else []:
        made = peer(stand, args.peers, shape, is_ordered)
        for n in processes:
            yield times(made.name, n), made, shape, n


def times(name, n):
    return name if n == 1 else f"{name} x{n}"


def compare(stand, shape, beside, args):
    """Rounds of all contenders in turn: {name: [figures, ...]}."""
    contenders = list(entries(stand, shape, beside, args))
    found = {name: [] for name, *_ in contenders}
    for _ in range(args.runs):
        for name, contender, its, n in contenders:
            db = stand.copy(contender.template)
            found[name].append(run(stand, contender, db, its, n))
            db.drop()
    for template in {contender.template for _, contender, *_ in contenders}:
        stand.drop(template)
    return found


def sustain(stand, args):
    """Ingest takes in what is delivered, for minutes: figures of each minute."""
    db, key = stand.install()
    ingest = stand.ingest(db)
    ingest.api(key).subscribe(stand.nginx.url, max_in_flight=args.in_flight)
    poster, dispatch = Poster(ingest.port, key), stand.dispatch(db)
    meter = Meter({"ingest": [ingest.pid], "sender": [dispatch.pid],
                   "postgres": [stand.cluster.process.pid], "nginx": [stand.nginx.pid]})
    posted, first, found = 0, stand.nginx.count(), []
    for minute in range(math.ceil(args.minutes)):
        meter.start()
        began, before = time.monotonic(), stand.nginx.count()
        while time.monotonic() < began + min(args.minutes, 1) * 60:
            if posted - (stand.nginx.count() - first) < BACKLOG:
                poster.post_all(line(posted + n, asset=f"a{(posted + n) % 10_000}")
                                for n in range(BATCH))
                posted += BATCH
            else:
                dawdle(0.01)
        sent = stand.nginx.count() - before
        found.append({"minute": minute + 1, "per_second": sent / (time.monotonic() - began),
                      **meter.stop(sent), "database_mb": db.value(
                          "SELECT pg_database_size(current_database())") // 1_000_000})
        table(found[-1:])
    poster.close()
    dispatch.kill()
    ingest.stop()
    db.drop()
    return found


def goals(rates, most):
    """Of {shape: {contender: deliveries a second}}, as far as it was measured."""
    def ratio(shape, name, other_shape, other, what, least):
        mine, its = rates.get(shape, {}).get(name), rates.get(other_shape, {}).get(other)
        if mine and its:
            yield Goal(f"{shape}: {name} to {what}", mine / its, least=least)
    for shape in "abcd":
        for peer, least in (("graphile-worker", TO_UNORDERED),
                            ("graphile-worker x2", TO_UNORDERED),
                            ("graphile-worker, ordered", TO_ORDERED)):
            yield from ratio(shape, "postrider", shape, peer, peer, least)
        best = max((rate for name, rate in rates.get(shape, {}).items()
                    if name.startswith("postrider")), default=None)
        if best and most > 1:
            yield Goal(f"{shape}: {most} dispatchers to the best number",
                       rates[shape][f"postrider x{most}"] / best, least=TO_BEST)
    yield from ratio("e", "postrider", "e", "the others alone", "the others alone",
                     BEHIND_ANOTHER)
    yield from ratio("one", "postrider", "limits", "in sequence", "what a sequence allows",
                     TO_SEQUENCE)
    yield from ratio("one", "postrider", "one", "pg-boss, ordered", "pg-boss", 1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES),
                        help="; ".join(f"{name}: {s.about}" for name, (s, _) in SHAPES.items()))
    parser.add_argument("--events", type=int, help="of a backlog (default: as the shape has)")
    parser.add_argument("--runs", type=int, default=3, help="of each kind (default: %(default)s)")
    parser.add_argument("--dispatchers", type=int, nargs="+", default=[1, 2, 4, 8],
                        help="how many run; the numbers are compared (default: 1 2 4 8)")
    parser.add_argument("--limit-seconds", type=int, default=3,
                        help="of each part alone (default: %(default)s)")
    parser.add_argument("--in-flight", type=int, default=1000,
                        help="max_in_flight of each subscription (default: %(default)s)")
    parser.add_argument("--minutes", type=float,
                        help="instead of backlogs: deliver what ingest takes in meanwhile")
    parser.add_argument("--ours", action="store_true", help="without peers and limits")
    parser.add_argument("--json", type=Path, default=Path("delivery.json"),
                        help="where the figures go (default: %(default)s)")
    return parser.parse_args()


def measure(stand, args):
    """All that was asked for: the report, and {shape: {contender: deliveries a second}}."""
    report, rates = {"limits": {}, "shapes": {}}, {"limits": {}}
    if not args.ours:
        report["limits"] = limits.measure(stand, args.limit_seconds)
        rates["limits"]["in sequence"] = limits.in_sequence(report["limits"])
        table([{"alone": name, **figures} for name, figures in report["limits"].items()])
    for name in args.shape:
        shape, beside = SHAPES[name]
        shape = dataclasses.replace(shape, events=args.events or shape.events)
        report["shapes"][name] = compare(stand, shape, beside, args)
        middle = {other: medians(runs) for other, runs in report["shapes"][name].items()}
        rates[name] = {other: figures["per_second"] for other, figures in middle.items()}
        print(f"\n{name}: {shape.about}, {shape.events:,} events")
        table([{"contender": other, **figures} for other, figures in middle.items()])
    return report, rates


def main():
    args = arguments()
    with Stand() as stand:
        report = {**stand.describe(), "settings": vars(args)}
        if args.minutes:
            report["minutes"] = sustain(stand, args)
            conclude(args.json, report, [])
        args.peers = None if args.ours else peers.fetch()
        if args.peers:
            report["peers"] = peers.versions(args.peers)
        found, rates = measure(stand, args)
    conclude(args.json, {**report, **found}, list(goals(rates, max(args.dispatchers))))


if __name__ == "__main__":
    main()
