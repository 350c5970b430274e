"""What goes wrong, on purpose.

A fault is a generator: it breaks something, yields for how long, and mends it.
Faults overlap as the scenario has it.  All are done by the main thread: a process
that the kernel is to end with its parent ends with the thread that started it.
"""

import heapq
import itertools
import signal
import time

import psycopg

from .history import Fault


def _pick(seats, index):
    return seats[index % len(seats)]


def _kill(world, seat, pause):
    if seat.is_up:
        world.kill(seat)
        yield pause
        world.start(seat)


def _freeze(world, seat, pause):
    if not seat.is_up:
        return
    window = [time.monotonic(), None]
    if seat.worker is not None:
        seat.worker.frozen.append(window)
    seat.is_frozen = True
    seat.program.pause()
    yield pause
    seat.program.cont()
    seat.is_frozen = False
    window[1] = time.monotonic()


def kill_dispatcher(world, index, pause):
    return _kill(world, _pick(world.dispatchers, index), pause / 4)


def freeze_dispatcher(world, index, pause):
    return _freeze(world, _pick(world.dispatchers, index), pause)


def kill_frozen_dispatcher(world, index, pause):
    """It never wakes."""
    seat = _pick(world.dispatchers, index)
    if not seat.is_up:
        return
    window = [time.monotonic(), None]
    seat.worker.frozen.append(window)
    seat.is_frozen = True
    seat.program.pause()
    yield pause
    world.kill(seat)
    window[1] = time.monotonic()
    seat.is_frozen = False
    world.start(seat)


def restart_dispatcher(world, index, _):
    """The orderly way."""
    seat = _pick(world.dispatchers, index)
    if seat.is_up:
        world.stop(seat)
        world.start(seat)
        yield 0


def _others_are_up(world, seat):
    return any(other.is_up for other in world.ingests if other is not seat)


def kill_ingest(world, index, pause):
    seat = _pick(world.ingests, index)
    if _others_are_up(world, seat):
        yield from _kill(world, seat, pause / 4)


def freeze_ingest(world, index, pause):
    seat = _pick(world.ingests, index)
    if _others_are_up(world, seat):
        yield from _freeze(world, seat, pause)


def crash_postgres(world, *_):
    world.cluster.stop(signal.SIGQUIT)
    world.cluster.start()
    yield 0


def _cut(world, pattern):
    """Close connections of this round's programs from PostgreSQL's side."""
    with world.cluster.connect(world.db.name) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE %s AND datname = current_database()",
            [pattern])
    yield 0


def cut_dispatchers(world, *_):
    return _cut(world, "postrider-dispatch%")


def cut_ingests(world, *_):
    return _cut(world, "postrider-ingest%")


def _lock(world, table, pause):
    """As somebody's psql does that is left open.  PostgreSQL itself ends it in time:
    other faults may wait for what waits for this lock."""
    try:
        with world.cluster.connect(world.db.name) as connection:
            connection.autocommit = False
            connection.execute("SET lock_timeout = '1s'")
            connection.execute("SET idle_in_transaction_session_timeout ="
                               f" {round(pause * 1000)}")
            connection.execute(f"LOCK TABLE postrider.{table} IN ACCESS EXCLUSIVE MODE")
            yield pause
    except psycopg.Error:
        pass  # it was not to be had, or the server has ended it


def lock_secrets(world, _, pause):
    """What has been claimed cannot be sent, and its lease runs."""
    return _lock(world, "subscription_secret", pause)


def lock_lanes(world, _, pause):
    """What was answered cannot be recorded, and its lease runs."""
    return _lock(world, "lane", pause / 2)


def lock_turns(world, _, pause):
    return _lock(world, "turn", pause / 2)


KINDS = {function.__name__: function for function in (
    kill_dispatcher, freeze_dispatcher, kill_frozen_dispatcher, restart_dispatcher,
    kill_ingest, freeze_ingest, crash_postgres, cut_dispatchers, cut_ingests,
    lock_secrets, lock_lanes, lock_turns)}


class Agenda:
    """The faults of a scenario, each at its time."""

    def __init__(self, world, plan, began):
        self.world = world
        self.done = []
        self.numbers = itertools.count()  # of two at one time the older is first
        self.entries = []
        at = began
        for kind, index, wait, pause in plan:
            at += wait
            fault = Fault(kind, str(index), at, at)
            self._enter(at, fault, KINDS[kind](world, index, pause))

    def _enter(self, at, fault, steps):
        heapq.heappush(self.entries, (at, next(self.numbers), fault, steps))

    def next_at(self):
        return self.entries[0][0] if self.entries else float("inf")

    def step(self):
        """Do what is due first, however late it is."""
        _, _, fault, steps = heapq.heappop(self.entries)
        now = time.monotonic()
        pause = next(steps, None)
        if pause is None:
            fault.ended = time.monotonic()
            return
        fault.began = now
        self.done.append(fault)
        self._enter(time.monotonic() + pause, fault, steps)

    def mend(self):
        """What has begun comes to its end at once; the rest does not happen."""
        for _, _, fault, steps in sorted(self.entries, key=lambda entry: entry[:2]):
            if fault in self.done:
                next(steps, None)
                fault.ended = time.monotonic()
        self.entries = []
