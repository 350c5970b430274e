"""A replay that meets acceptance, records, purges, and others like itself."""

import random
import threading

import pytest

from .replaying import Queue
from .statement import announce, append, record, statement
from .wait import until

SEEDS = 6
MOVES = 60


@pytest.fixture
def waits(db, cluster):
    """Begin `work(connection)` in a transaction that has to wait for somebody.

    Returns a function that waits for its end, and returns what it returned.
    """
    def begin(work):
        results = []

        def run():
            with cluster.connect(db.name) as connection, connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '10s'")
                results.append(work(connection))

        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: db.value(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()") == 1, "it waits")

        def end():
            thread.join()
            assert results, "it failed"
            return results[0]
        return end
    return begin


def outcome(connection, lease, verdict):
    lane, token, _ = lease
    record(connection, lane, token, verdict, hands_back=False)


def test_a_lane_that_acceptance_is_just_making_is_waited_for(queue, other, waits):
    dead, = queue.die("one")
    append(other, queue.tenant, queue.id, "two", "a")
    announce(other)
    end = waits(lambda c: queue.begin_retry(c, dead))
    other.commit()
    assert end()["is_done"]
    assert queue.lane() == (dead, queue.delivery("two"), 0, "due")
    assert queue.drain() == ["one", "two"]


def test_acceptance_waits_for_a_lane_that_a_replay_is_just_making(queue, other, waits):
    dead, = queue.die("one")
    queue.begin_retry(other, dead)
    end = waits(lambda c: append(c, queue.tenant, queue.id, "two", "a") or True)
    other.commit()
    end()
    assert queue.drain() == ["one", "two"]


def test_a_lane_that_is_just_emptied_is_made_anew(queue, other, waits):
    dead, = queue.die("one")
    queue.accept("two")
    lease, = queue.claim()
    outcome(other, lease, "delivered")
    end = waits(lambda c: queue.begin_retry(c, dead))
    other.commit()
    assert end()["is_done"]
    assert queue.lane() == (dead, None, 0, "due")


def test_a_record_that_waits_for_a_replay_sends_it_next(queue, other, waits):
    dead, = queue.die("one")
    queue.accept("two")
    queue.accept("three")
    lease, = queue.claim()
    queue.begin_retry(other, dead)
    end = waits(lambda c: outcome(c, lease, "delivered") or True)
    other.commit()
    end()
    assert queue.drain() == ["one", "three"]


def test_a_holder_that_dies_meanwhile_keeps_what_waits(db, other, waits):
    """The replay sees how the lane stands once it has it, not before."""
    queue = Queue(db, on_dead="hold")
    db.execute("UPDATE postrider.subscription SET on_dead = 'skip'")
    dead, = queue.die("one")
    db.execute("UPDATE postrider.subscription SET on_dead = 'hold'")
    holder = queue.accept("two")
    lease, = queue.claim()
    outcome(other, lease, "dead")
    end = waits(lambda c: queue.begin_retry(c, dead))
    other.commit()
    assert end()["held_by"] == holder
    assert queue.waiting() == [dead]
    queue.check()


def test_a_discard_waits_for_a_replay_and_lets_it_go_first(db, other, waits):
    queue = Queue(db)
    dead, = queue.die("one")
    db.execute("UPDATE postrider.subscription SET on_dead = 'hold'")
    holder, = queue.die("two")
    queue.begin_retry(other, dead)
    end = waits(lambda c: queue.begin_discard(c, holder))
    other.commit()
    assert end()["is_done"]
    queue.check()
    assert queue.drain() == ["one"]


@pytest.mark.parametrize("accept", [Queue.accept, Queue.accept_unordered])
def test_of_twenty_retries_of_one_dead_letter_one_wins(queue, db, cluster, accept):
    dead = accept(queue, "one")
    queue.send("dead")
    answers, go = [], threading.Barrier(20)

    def retry():
        with cluster.connect(db.name) as connection:
            go.wait()
            with connection.transaction():
                answers.append(queue.begin_retry(connection, dead))

    threads = [threading.Thread(target=retry) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["is_done"] for answer in answers) == [False] * 19 + [True]
    assert queue.state(dead) == ("pending", 2, 0)
    assert queue.drain() == ["one"]


@pytest.mark.parametrize("accept", [Queue.accept, Queue.accept_unordered])
def test_a_retry_and_a_discard_do_not_both_happen(queue, db, cluster, other, waits, accept):
    dead = accept(queue, "one")
    queue.send("dead")
    queue.begin_retry(other, dead)
    end = waits(lambda c: queue.begin_discard(c, dead))
    other.commit()
    answer = end()
    assert (answer["is_done"], answer["state"]) == (False, "pending")
    assert queue.drain() == ["one"]


def test_a_purge_that_is_under_way_is_waited_for(queue, other, waits):
    dead, = queue.die("one")
    number = queue.db.value("SELECT event_no FROM postrider.event")
    other.execute("SELECT set_config('postrider.retention', %s, true)", (f"{{{number}}}",))
    statement(other, "retention_hold")
    statement(other, "retention_payload")
    end = waits(lambda c: queue.begin_retry(c, dead))
    other.commit()
    answer = end()
    assert (answer["is_done"], answer["is_purged"]) == (False, True)
    assert queue.lane() is None


def test_a_purge_passes_over_what_is_just_being_replayed(queue, other, db):
    dead, = queue.die("one")
    number = db.value("SELECT event_no FROM postrider.event")
    queue.begin_retry(other, dead)

    def purge(connection):
        connection.execute("SELECT set_config('postrider.retention', %s, true)",
                           (f"{{{number}}}",))
        statement(connection, "retention_hold")
        statement(connection, "retention_payload")
    queue.transaction(purge)
    other.commit()
    assert db.value("SELECT body IS NOT NULL FROM postrider.event")
    assert queue.drain() == ["one"]


def test_a_step_takes_lanes_in_the_order_of_acceptance(queue, other, waits):
    """Else the two would wait for each other."""
    for asset in "ba":
        queue.accept(f"old-{asset}", asset)
    queue.send("dead")
    queue.start("dead")
    append(other, queue.tenant, queue.id, "new-a", "a")
    end = waits(queue.begin_step)
    append(other, queue.tenant, queue.id, "new-b", "b")
    other.commit()
    assert end()["did"] == 2
    assert sorted(queue.drain()) == ["new-a", "new-b", "old-a", "old-b"]


def test_a_turn_is_not_let_rest_while_it_gets_a_replay(queue, other, db):
    """It cannot be excluded while a replay shares it: what it does not see may be due."""
    dead, = queue.die("one")
    queue.begin_retry(other, dead)

    def rest(connection):
        statement(connection, "turn_exclude", [queue.id])
        statement(connection, "turn_rest", [queue.id])
    queue.transaction(rest)
    other.commit()
    assert db.value("SELECT rest FROM postrider.turn") is None


def test_what_was_replayed_and_delivered_meanwhile_is_passed_over(queue, db, other, waits):
    """What would be kept of it is of an earlier generation than what would be lost."""
    queue.accept_unordered("one")
    [lease] = queue.claim()
    assert queue.take(lease)
    job = queue.start("events", 0)
    other.execute("UPDATE postrider.delivery SET generation = 2, worker = 'later'")
    end = waits(queue.begin_step)
    other.commit()
    end()
    assert queue.job(job)["replayed"] == 0
    assert queue.state(queue.delivery("one")) == ("delivered", 2, 1)
    assert db.rows("SELECT generation, worker FROM postrider.attempt") == [(2, "later")]


class Player:
    """Makes moves by chance on a queue, and knows what must come of it."""

    def __init__(self, queue, seed):
        self.queue = queue
        self.chance = random.Random(seed)
        self.leases = []
        self.accepted = 0

    def accept(self):
        self.accepted += 1
        self.queue.accept(f"e{self.accepted}", self.chance.choice("abb"))

    def claim(self):
        self.leases += self.queue.claim()

    def record(self):
        if self.leases:
            lease = self.leases.pop(self.chance.randrange(len(self.leases)))
            verdict = self.chance.choice(["taken", "delivered", "dead", "dead", "retry"])
            if verdict == "taken" and self.queue.take(lease):
                return
            self.queue.record(lease, "delivered" if verdict == "taken" else verdict)

    def a_dead_letter(self):
        rows = self.queue.db.rows("SELECT delivery_id FROM postrider.dead_letter")
        return self.chance.choice(rows)[0] if rows else 0

    def retry(self):
        self.queue.retry(self.a_dead_letter())

    def discard(self):
        self.queue.discard(self.a_dead_letter())

    def miss(self):
        self.accepted += 1
        self.queue.accept_for_nobody(f"e{self.accepted}", self.chance.choice("abb"))

    def replay(self):
        self.queue.start(self.chance.choice(["dead", "events"]), 0)
        self.queue.step()

    def turn_about(self):
        self.queue.db.execute("UPDATE postrider.subscription SET on_dead = %s",
                              (self.chance.choice(["skip", "hold"]),))

    def move(self):
        self.chance.choice([self.accept] * 4 + [self.claim] * 3 + [self.record] * 4
                           + [self.retry] * 3 + [self.discard, self.miss, self.replay,
                                                 self.turn_about])()
        self.queue.check()

    def finish(self):
        """Deliver all that can be; nothing may be left."""
        for lease in self.leases:
            self.queue.record(lease)
        while self.queue.drain() or self.retry_holders():
            self.queue.check()

    def retry_holders(self):
        rows = self.queue.db.rows("SELECT head_id FROM postrider.lane WHERE due_at IS NULL")
        for head, in rows:
            self.queue.retry(head)
        return rows


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_everything_has_its_place_and_nothing_is_left(queue, db, seed):
    player = Player(queue, seed)
    for _ in range(MOVES):
        player.move()
    player.finish()
    assert db.value("SELECT count(*) FROM postrider.lane") == 0
    assert db.value("SELECT count(*) FROM postrider.replay") == 0
    assert db.value("SELECT count(*) FROM postrider.delivery WHERE state = 'pending'") == 0
