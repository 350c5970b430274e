"""A replay takes its event's own place, however its lane stands."""

import pytest

from .replaying import Queue

MINUTE = 60_000_000


@pytest.fixture
def held(db):
    """A queue whose dead letters hold their lanes."""
    made = Queue(db, on_dead="hold")
    yield made
    made.check()


def test_without_a_lane_one_is_made_under_a_new_id(queue, db):
    dead, = queue.die("one")
    lane = db.value("SELECT lane_id FROM postrider.delivery")
    assert queue.lane() is None
    answer = queue.retry(dead)
    assert answer["is_done"] and answer["held_by"] is None
    assert queue.state(dead) == ("pending", 2, 0)
    assert queue.lane() == (dead, None, 0, "due")
    # Under the old id all that it ever carried would be walked again.
    assert db.value("SELECT lane_id FROM postrider.delivery") != lane
    assert queue.drain() == ["one"]
    assert queue.state(dead) == ("delivered", 2, 1)
    assert queue.lane() is None


def test_what_comes_later_follows_in_the_lane_that_was_made(queue):
    dead, = queue.die("one")
    queue.retry(dead)
    queue.accept("two")
    assert queue.drain() == ["one", "two"]


def test_it_goes_before_a_head_that_was_not_sent(queue):
    dead, = queue.die("one")
    head = queue.accept("two")
    queue.accept("three")
    queue.retry(dead)
    assert queue.lane() == (dead, head, 0, "due")
    assert queue.drain() == ["one", "two", "three"]


def test_a_head_that_waits_for_its_retry_gives_way_and_keeps_its_attempts(queue):
    dead, = queue.die("one")
    head = queue.accept("two")
    queue.send("retry", MINUTE)
    assert queue.lane() == (head, None, 1, "waits")
    queue.retry(dead)
    assert queue.lane() == (dead, head, 0, "due")
    assert queue.state(head) == ("pending", 1, 1)
    assert queue.send() == ["one"]
    assert queue.lane() == (head, None, 1, "waits"), "as long as it had to"
    queue.fall_due()
    assert queue.send() == ["two"]
    assert queue.state(head) == ("delivered", 1, 2)


def test_it_waits_for_the_end_of_a_request_and_goes_next(queue):
    dead, = queue.die("one")
    queue.accept("two")
    queue.accept("three")
    lease, = queue.claim()
    queue.retry(dead)
    assert queue.waiting() == [dead]
    queue.check()
    queue.record(lease)
    assert queue.drain() == ["one", "three"]


def test_a_head_that_is_to_be_tried_again_gives_way_to_what_waits(queue):
    dead, = queue.die("one")
    head = queue.accept("two")
    lease, = queue.claim()
    queue.retry(dead)
    queue.record(lease, "retry", MINUTE)
    assert queue.lane() == (dead, head, 0, "due")
    assert queue.drain() == ["one"]
    queue.fall_due()
    assert queue.drain() == ["two"]
    assert queue.state(head) == ("delivered", 1, 2)


def test_several_are_sent_in_their_order_whatever_the_order_of_retries(queue):
    dead = queue.die("one", "two", "three", "four")
    head = queue.accept("five")
    queue.retry(dead[1])
    queue.retry(dead[3])
    queue.retry(dead[0])
    assert queue.lane() == (dead[0], head, 0, "due")
    assert queue.waiting() == [dead[1], dead[3]]
    queue.retry(dead[2])
    assert queue.drain() == ["one", "two", "three", "four", "five"]


def test_several_without_a_lane_are_sent_in_their_order(queue):
    dead = queue.die("one", "two", "three")
    queue.retry(dead[1])
    queue.retry(dead[0])
    queue.retry(dead[2])
    assert queue.drain() == ["one", "two", "three"]


def test_a_replay_that_gives_way_keeps_its_attempts(queue):
    dead = queue.die("one", "two")
    head = queue.accept("three")
    queue.retry(dead[1])
    queue.send("retry", MINUTE)
    queue.retry(dead[0])
    assert queue.lane() == (dead[0], head, 0, "due")
    assert queue.state(dead[1]) == ("pending", 2, 1)
    assert queue.drain() == ["one", "two", "three"]
    assert queue.state(dead[1]) == ("delivered", 2, 2)


def test_a_later_replay_waits_for_an_earlier_one(queue):
    dead = queue.die("one", "two")
    head = queue.accept("three")
    queue.retry(dead[0])
    queue.send("retry", MINUTE)
    queue.retry(dead[1])
    assert queue.lane() == (dead[0], head, 1, "waits")
    assert queue.waiting() == [dead[1]]


def test_a_lane_that_emptied_meanwhile_is_found_by_its_asset(queue, db):
    dead, = queue.die("one")
    queue.accept("two")
    lane = db.value("SELECT id FROM postrider.lane")
    assert lane != db.value("SELECT lane_id FROM postrider.delivery WHERE id = %s", (dead,))
    queue.retry(dead)
    assert db.rows("SELECT DISTINCT lane_id FROM postrider.delivery") == [(lane,)]


@pytest.mark.parametrize("asset", [None, "a"])
def test_one_without_order_gets_a_lane_of_its_own_again(queue, db, asset):
    dead = queue.accept_unordered("one", asset)
    queue.send("dead")
    assert db.value("SELECT count(*) FROM postrider.lane") == 0
    assert queue.retry(dead)["is_done"]
    assert db.rows("SELECT id, head_id, tail_id, asset FROM postrider.lane") == [
        (dead, dead, dead, None)]
    assert queue.drain() == ["one"]


def test_a_dead_letter_that_holds_its_lane_is_sent_again_and_the_lane_goes_on(held):
    dead, = held.die("one")
    held.accept("two")
    assert held.send() == []
    assert held.retry(dead)["held_by"] is None
    assert held.lane() == (dead, None, 0, "due")
    assert held.drain() == ["one", "two"]


def test_another_waits_behind_the_one_that_holds_its_lane_and_says_so(held, db):
    db.execute("UPDATE postrider.subscription SET on_dead = 'skip'")
    first, = held.die("one")
    db.execute("UPDATE postrider.subscription SET on_dead = 'hold'")
    holder, = held.die("two")
    held.accept("three")
    answer = held.retry(first)
    assert answer["is_done"] and answer["held_by"] == holder
    assert held.waiting() == [first]
    assert held.send() == []
    held.check()
    held.retry(holder)
    assert held.drain() == ["one", "two", "three"], "each in its place"
    assert held.state(first)[:2] == held.state(holder)[:2] == ("delivered", 2)


def test_a_discarded_holder_lets_a_waiting_replay_go_first(held, db):
    db.execute("UPDATE postrider.subscription SET on_dead = 'skip'")
    first, = held.die("one")
    db.execute("UPDATE postrider.subscription SET on_dead = 'hold'")
    holder, = held.die("two")
    third = held.accept("three")
    held.retry(first)
    assert held.discard(holder)["state"] == "cancelled"
    assert held.lane() == (first, holder + 1, 0, "due")
    held.check()
    assert held.drain() == ["one", "three"]
    assert held.state(third) == ("delivered", 1, 1)


def test_a_discarded_holder_lets_the_next_go_on(held):
    holder, = held.die("one")
    held.accept("two")
    held.accept("three")
    held.discard(holder)
    assert held.state(holder) == ("cancelled", 1, 1)
    assert held.drain() == ["two", "three"]


def test_a_discarded_holder_without_a_next_ends_its_lane(held):
    holder, = held.die("one")
    held.discard(holder)
    assert held.lane() is None
    held.accept("two")
    assert held.drain() == ["two"]


def test_a_discarded_replay_that_held_its_lane_lets_its_course_go_on(held, db):
    holder, = held.die("one")
    second = held.accept("two")
    held.retry(holder)
    held.send("dead")
    assert held.lane() == (holder, None, 1, "held")
    held.discard(holder)
    assert held.lane() == (second, None, 0, "due")
    db.execute("UPDATE postrider.subscription SET on_dead = 'skip'")
    assert held.drain() == ["two"]


def test_a_discarded_replay_lets_the_other_replays_go_first(held, db):
    db.execute("UPDATE postrider.subscription SET on_dead = 'skip'")
    dead = held.die("one", "two", "three")
    db.execute("UPDATE postrider.subscription SET on_dead = 'hold'")
    head = held.accept("four")
    held.retry(dead[0])
    held.send("dead")
    held.retry(dead[1])
    held.retry(dead[2])
    held.discard(dead[0])
    assert held.lane() == (dead[1], head, 0, "due")
    held.check()
    assert held.drain() == ["two", "three", "four"]


def test_a_discard_leaves_a_lane_alone_that_it_does_not_hold(queue):
    dead, head = queue.accept("one"), queue.accept("two")
    queue.send("dead")
    queue.send("retry", MINUTE)
    queue.discard(dead)
    assert queue.lane() == (head, None, 1, "waits")


def test_only_a_dead_letter_is_retried_or_discarded(queue):
    made = queue.accept("one")
    for act in (queue.retry, queue.discard):
        answer = act(made)
        assert (answer["is_done"], answer["state"]) == (False, "pending")
    queue.drain()
    for act in (queue.retry, queue.discard):
        answer = act(made)
        assert (answer["is_done"], answer["state"]) == (False, "delivered")
    assert queue.lane() is None, "nothing is left behind by what was refused"


def test_a_purged_one_stays_dead_and_leaves_no_lane(queue, db):
    dead, = queue.die("one")
    db.execute("UPDATE postrider.event SET body = NULL")
    answer = queue.retry(dead)
    assert (answer["is_done"], answer["is_purged"]) == (False, True)
    assert queue.state(dead)[0] == "dead"
    assert queue.lane() is None


def test_a_paused_subscription_waits_with_its_replays(queue, db):
    dead, = queue.die("one")
    db.execute("UPDATE postrider.subscription SET state = 'paused'")
    db.execute("UPDATE postrider.turn SET rest = 'paused', entered_at = NULL")
    queue.retry(dead)
    assert queue.send() == []
    db.execute("UPDATE postrider.subscription SET state = 'active'")
    db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now()")
    assert queue.send() == ["one"]


def test_a_resting_turn_comes_back_for_a_replay(queue, db):
    dead, = queue.die("one")
    db.execute("UPDATE postrider.turn SET rest = 'idle', entered_at = NULL, wake_at = NULL")
    queue.retry(dead)
    assert db.value("SELECT rest FROM postrider.turn") is None


def test_a_resting_turn_comes_back_for_a_lane_that_goes_on(held, db):
    dead = held.accept("one")
    held.accept("two")
    held.send("dead")
    db.execute("UPDATE postrider.turn SET rest = 'idle', entered_at = NULL, wake_at = NULL")
    held.discard(dead)
    assert db.value("SELECT rest FROM postrider.turn") is None
    assert held.drain() == ["two"]


def test_each_is_noted_once(queue, db):
    first, second = queue.die("one", "two")
    queue.retry(first)
    queue.retry(first)
    queue.discard(second)
    queue.discard(second)
    assert db.rows("SELECT action, subject, actor FROM postrider.audit ORDER BY id") == [
        ("delivery.retried", str(first), "test"), ("delivery.discarded", str(second), "test")]
