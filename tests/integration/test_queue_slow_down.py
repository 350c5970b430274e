"""How an endpoint is slowed down, step by step: its turn's rest, and its number in flight."""

import math
import re
import threading

import pytest

from . import statement
from .replaying import Queue
from .statement import record, settle
from .wait import until

SECOND = 1_000_000  # microseconds
JUST_NOW, LONG_AGO = 0, 3600 * SECOND  # when an outcome's lease was claimed


@pytest.fixture
def slow(db):
    """A subscription, with steps of its own."""
    queue = Slow(db, circuit_after=0)
    yield queue
    queue.check()


class Slow(Queue):
    def accept_many(self, n):
        for i in range(n):
            self.accept(f"{i}-{self.db.value('SELECT count(*) FROM postrider.event')}", f"a{i}")

    def refuse(self, lease, slows=0, age=JUST_NOW, says=-1):
        """It was overloaded."""
        self.record(lease, "retry", 3600 * SECOND, says=says, slows=slows, age=age)

    def take(self, lease):
        self.record(lease, says=1)

    def turn(self):
        return self.db.rows("SELECT rest, slowed_to FROM postrider.turn WHERE subscription_id"
                            " = %s", (self.id,))[0]

    def wakes_in(self):
        """Seconds."""
        return self.db.value("SELECT extract(epoch FROM wake_at - now())::float8 FROM"
                             " postrider.turn WHERE subscription_id = %s", (self.id,))

    def set(self, of, **columns):
        assignments = ", ".join(f"{name} = %s" for name in columns)
        self.db.execute(f"UPDATE postrider.{of} SET {assignments} WHERE"
                        f" {'id' if of == 'subscription' else 'subscription_id'} = %s",
                        (*columns.values(), self.id))

    def wake(self):
        """The time has come."""
        self.set("turn", wake_at="now")
        self.transaction(lambda c: statement.statement(c, "turn_wake", 1000, None))

    def rest(self):
        self.transaction(lambda c: statement.rest(c, self.id))

    def answers(self, taken, refused, slows=0, age=JUST_NOW):
        """One record of many outcomes, whose lanes are gone."""
        n = taken + refused

        def work(connection):
            connection.execute("SELECT set_config('postrider.recorded', %s::bigint[]::text, true)",
                               (list(range(1, n + 1)),))
            statement.statement(connection, "turn_share", [self.id])
            statement.statement(
                connection, "turn_settle", [self.id] * n, [0] * n, [1] * taken + [-1] * refused,
                [None] * taken + [slows] * refused, [age] * n)
        self.transaction(work)

    def number(self):
        """How many it gets in flight."""
        return self.db.value("SELECT postrider.in_flight_limit(circuit, max_in_flight, slowed_to)"
                             " FROM postrider.turn JOIN postrider.subscription s"
                             " ON s.id = subscription_id WHERE s.id = %s", (self.id,))


# -- the rest --

def test_nothing_is_claimed_until_the_time_that_it_asked_for(slow):
    slow.accept_many(3)
    first, second, third = slow.claim()
    slow.refuse(first, 60 * SECOND)
    assert slow.turn()[0] == "slowed" and 59 < slow.wakes_in() <= 60
    slow.accept_many(5)
    slow.record(second, "release")
    slow.take(third)
    assert slow.turn()[0] == "slowed" and slow.claim() == []
    slow.wake()
    assert slow.turn()[0] is None and len(slow.claim()) >= 1


@pytest.mark.parametrize("why", ["idle", "limit", "rate", None])
def test_it_rests_whatever_its_turn_rested_for(why, slow):
    """And not until what that was for, which may be tomorrow."""
    slow.accept_many(1)
    lease, = slow.claim()
    slow.set("turn", rest=why, wake_at=why and "tomorrow",
             entered_at=None if why else "now")
    slow.refuse(lease, 60 * SECOND)
    assert slow.turn()[0] == "slowed" and 59 < slow.wakes_in() <= 60


def test_of_two_answers_the_longer_wait_counts(slow):
    slow.accept_many(3)
    first, second, third = slow.claim()
    slow.refuse(first, 60 * SECOND)
    slow.refuse(second, 10 * SECOND)
    assert 59 < slow.wakes_in() <= 60
    slow.refuse(third, 90 * SECOND, age=LONG_AGO)
    assert 89 < slow.wakes_in() <= 90, "also if it was claimed before the number was halved"


def test_an_answer_without_a_time_leaves_the_rest_as_it_is(slow):
    slow.accept_many(2)
    first, second = slow.claim()
    slow.refuse(first, 60 * SECOND)
    slow.refuse(second)
    assert slow.turn()[0] == "slowed" and 59 < slow.wakes_in() <= 60


def test_an_outcome_that_is_not_ours_slows_nothing_down(slow):
    slow.accept_many(1)
    lane, _, event = slow.claim()[0]
    slow.refuse((lane, "00000000-0000-0000-0000-000000000000", event), 60 * SECOND)
    assert slow.turn() == ("idle", None) or slow.turn() == (None, None)


# -- the circuit, a pause, a change --

def test_a_circuit_that_opens_lets_its_probe_wait_as_long(slow):
    slow.set("subscription", circuit_after=1, retry_base_ms=1000)
    slow.accept_many(2)
    first, second = slow.claim()
    slow.refuse(first, 60 * SECOND)
    assert slow.turn()[0] == "circuit" and 59 < slow.wakes_in() <= 60
    slow.refuse(second, 90 * SECOND)
    assert slow.turn()[0] == "circuit" and 89 < slow.wakes_in() <= 90


def test_a_circuit_that_waits_longer_by_itself_does_so(slow):
    slow.set("subscription", circuit_after=1, retry_base_ms=60000)
    slow.accept_many(1)
    slow.refuse(slow.claim()[0], 10 * SECOND)
    assert slow.turn()[0] == "circuit" and 59 < slow.wakes_in() <= 60


def test_a_probe_that_is_refused_is_followed_by_the_next_when_asked_for(slow):
    slow.set("subscription", circuit_after=1, retry_base_ms=10)
    slow.accept_many(2)
    first, second = slow.claim()
    slow.refuse(first)
    slow.record(second, "release")
    slow.wake()
    probe, = slow.claim()
    slow.refuse(probe, 60 * SECOND)
    assert slow.turn()[0] == "circuit" and 59 < slow.wakes_in() <= 60


def test_a_circuit_that_closes_lets_the_number_grow_from_where_it_was(slow):
    slow.set("subscription", circuit_after=1, retry_base_ms=10)
    slow.accept_many(6)
    first, *others = slow.claim()
    slow.refuse(first)
    for lease in others:
        slow.record(lease, "release")
    slow.wake()
    slow.take(slow.claim()[0])
    assert slow.db.value("SELECT circuit FROM postrider.turn") == "closed"
    assert slow.turn()[1] == pytest.approx(math.sqrt(9 + 2))


def move(slow, action, before, after):
    def work(connection):
        statement.statement(connection, "subscription_hold", None, slow.id)
        statement.statement(connection, "subscription_move", None, slow.id, None, "me", action,
                            [before], after)
    slow.transaction(work)


def test_a_pause_stays_one_and_a_resume_tries_all_at_once(slow):
    slow.accept_many(2)
    lease, _ = slow.claim()
    move(slow, "paused", "active", "paused")
    slow.refuse(lease, 60 * SECOND)
    assert slow.turn() == ("paused", 1)
    slow.set("turn", slowed_to=3)
    move(slow, "resumed", "paused", "active")
    assert slow.turn() == (None, None)


def change(slow, **fields):
    """As PATCH does it, in SQL's names."""
    names = update_parameters()
    values = [None] * max(names.values())
    values[names["subscription"] - 1], values[names["actor"] - 1] = slow.id, "me"
    for name, value in fields.items():
        values[names[name] - 1] = value

    def work(connection):
        statement.statement(connection, "subscription_hold", None, slow.id)
        statement.statement(connection, "subscription_update", *values)
    slow.transaction(work)


def update_parameters():
    """{its first word: n} of what subscription_update takes."""
    text = (statement.SQL / "subscription_update.sql").read_text()
    return {word.lower(): int(n) for n, word in
            re.findall(r"^--\s+\$(\d+)\s+\S+\s+(\w+)", text, re.MULTILINE)}


def test_another_url_is_tried_at_once_and_with_all(slow):
    slow.accept_many(1)
    slow.refuse(slow.claim()[0], 60 * SECOND)
    change(slow, max_attempts=5)
    assert slow.turn()[0] == "slowed" and slow.turn()[1] is not None
    change(slow, url="https://example.com/other")
    assert slow.turn() == (None, None)


# -- the number in flight --

def test_half_of_what_was_in_flight_is_left(slow):
    slow.accept_many(8)
    leases = slow.claim()
    slow.refuse(leases[0])
    assert slow.turn()[1] == 4
    slow.accept_many(20)
    assert slow.claim() == []
    slow.rest()
    assert slow.turn()[0] == "limit"
    for lease in leases[1:]:
        slow.record(lease, "release")
    assert len(slow.claim()) == 4


def test_what_was_under_way_halves_it_once(slow):
    slow.set("subscription", max_in_flight=100)
    slow.accept_many(64)
    leases = slow.claim()
    for lease in leases[:32]:
        slow.refuse(lease, age=LONG_AGO)
    assert slow.turn()[1] == 32
    slow.refuse(leases[32])
    assert slow.turn()[1] == 16, "what was claimed since then says so again"


def test_two_records_at_once_halve_it_once(slow, db, cluster, other):
    """Both have begun when neither has halved it: the second sees what the first did."""
    slow.accept_many(16)

    def conclude(lane, token):
        with cluster.connect(db.name) as connection, connection.transaction():
            record(connection, lane, token, "retry", 3600 * SECOND)
            settle(connection, slow.id, lane, -1, 0, LONG_AGO)

    threads = [threading.Thread(target=conclude, args=lease[:2]) for lease in slow.claim()[:2]]
    other.execute("SELECT FROM postrider.turn FOR NO KEY UPDATE")
    for thread in threads:
        thread.start()
    until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type ="
                           " 'Lock' AND datname = current_database()") == 2, "both wait")
    other.rollback()
    for thread in threads:
        thread.join()
    assert slow.turn()[1] == 8


def test_it_is_never_less_than_one(slow):
    for _ in range(3):
        slow.answers(0, 1)
    assert slow.turn()[1] == 1 and slow.number() == 1
    slow.accept_many(2)
    assert len(slow.claim()) == 1


def test_it_is_halved_also_when_the_clock_was_set_back(slow):
    slow.answers(0, 100)
    slow.db.execute("UPDATE postrider.turn SET slowed_at = slowed_at + interval '1 hour'")
    slow.answers(0, 1)
    assert slow.turn()[1] == 25


def test_it_grows_by_one_when_it_has_taken_as_many_again(slow):
    slow.answers(0, 20)
    assert slow.number() == 10
    slow.answers(9, 0)
    assert slow.number() == 10
    slow.answers(2, 0)
    assert slow.number() == 11


def test_many_successes_in_one_record_are_many_rounds(slow):
    slow.answers(0, 2)
    slow.answers(100, 0)
    assert slow.number() == 14


def test_it_ends_where_the_subscription_has_its_own_limit(slow):
    slow.set("subscription", max_in_flight=4)
    slow.answers(0, 10)
    assert slow.turn()[1] == 2
    slow.answers(5, 0)
    assert slow.turn()[1] is not None
    slow.answers(1, 0)
    assert slow.turn()[1] is None


def test_a_lower_limit_of_the_subscription_holds_at_once(slow):
    slow.answers(0, 20)
    slow.set("subscription", max_in_flight=3)
    assert slow.number() == 3
    slow.answers(1, 0)
    assert slow.turn()[1] is None


def test_no_lane_is_handed_back_while_it_is_slowed_down(slow):
    slow.accept("one")
    slow.accept("two")
    slow.accept("three")
    lane, token, _ = slow.claim()[0]
    rows = slow.transaction(lambda c: record(c, lane, token, "delivered"))
    assert len(rows) == 2, "it is, else"
    slow.set("turn", slowed_to=5)
    token = slow.db.value("SELECT lease_token FROM postrider.lane")
    rows = slow.transaction(lambda c: record(c, lane, token, "delivered"))
    assert len(rows) == 1


def test_an_endpoint_that_takes_all_is_not_written_about(slow):
    slow.accept_many(3)
    leases = slow.claim()
    before = slow.db.value("SELECT xmin::text FROM postrider.turn")
    for lease in leases[:2]:
        slow.take(lease)
    assert slow.db.value("SELECT xmin::text FROM postrider.turn") == before


# -- how it settles --

def rounds(slow, n, receiver):
    """Each sends as many as it may; `receiver(sent)` takes some.  The numbers, round by round."""
    numbers = []
    for _ in range(n):
        numbers.append(slow.number())
        taken = receiver(numbers[-1])
        slow.answers(taken, numbers[-1] - taken)
    return numbers


@pytest.mark.parametrize("capacity", [1, 2, 8, 40, 99])
def test_it_stays_near_what_the_endpoint_takes(slow, capacity):
    numbers = rounds(slow, 150, lambda sent: min(sent, capacity))
    settled = numbers[10:]
    assert max(settled) <= capacity + 1
    assert min(settled) >= capacity // 2
    assert sum(min(n, capacity) for n in settled) >= 0.6 * capacity * len(settled)
    refused = sum(n - min(n, capacity) for n in settled)
    assert refused <= 2 * len(settled) / max(capacity / 2, 1), "one in some rounds"


def test_one_refusal_in_a_thousand_does_not_stop_it(slow):
    """Nor half of it: as TCP, it has the root of 1500 or so in flight."""
    sent = 0

    def receiver(n):
        nonlocal sent
        sent += n
        return n - (sent % 1000 < n)

    numbers = rounds(slow, 400, receiver)[100:]
    assert sum(numbers) / len(numbers) > 25
    assert min(numbers) >= 10


def test_a_bad_minute_is_made_up_for(slow):
    rounds(slow, 20, lambda sent: 0)
    assert slow.number() == 1
    assert rounds(slow, 150, lambda sent: sent)[-1] == 100
    assert slow.turn()[1] is None
