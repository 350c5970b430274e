"""The judge lets right histories pass and finds what is wrong with wrong ones."""

import base64
import dataclasses
import hashlib
import hmac

import pytest

from .history import (AttemptRow, Change, Circuit, DeliveryRow, EventRow, History, Order,
                      Post, Request, Subscription, Try, Worker, load)
from .judge import judge
from .judge_order import BLOCK

MARGIN = 1.0
WALL = 1_700_000_000.0  # what the wall clock said at second 0
KEYS = {0: b"k" * 32, 1: b"q" * 32}
FIELDS = {"state": "active", "max_in_flight": 1, "timeout_ms": 500, "max_attempts": 3,
          "retry_base_ms": 100, "retry_cap_ms": 1000, "on_dead": "skip"}


def kinds(history):
    return {violation.kind for violation in judge(history)}


class Story:
    """A right history, told step by step; tests bend it.

    Tenant t has subscriptions 0 and 1, of which 1 gets no event of type x.
    """

    def __init__(self):
        self.history = History(1, MARGIN)
        for number, types in enumerate((["x"], ["y.*"])):
            self.history.subscriptions.append(Subscription(
                number, 100 + number, "t",
                "whsec_" + base64.b64encode(KEYS[number]).decode(), types, "asset"))
            self.history.changes += [Change(number, name, value, 0.0, 0.1)
                                     for name, value in FIELDS.items()]
        self.history.workers = [Worker(0, 500), Worker(1, 501)]

    def post(self, id, at, asset="a", status=202, **more):
        post = Post("t", id, "x", asset, f'{{"fact":"{id}"}}', None, **more)
        post.tries.append(Try(at, at + 0.01, status))
        self.history.posts.append(post)
        if status == 202:
            self._accept(post, at)
        return post

    def _accept(self, post, at):
        number = 10_000_001 + BLOCK * len(self.history.events)
        asset = "null" if post.asset is None else f'"{post.asset}"'
        body = (f'{{"id":"{post.id}","type":"x","asset":{asset},"timestamp":"now",'
                f'"data":{post.data}}}')
        self.history.events.append(EventRow(
            "t", post.id, number, "x", post.asset, 1, body, WALL + at + 0.005))
        self.history.deliveries.append(DeliveryRow(
            number - 5_000_000, number, 100, "pending", 1, 0, None))

    def send(self, id, began, ended, status=200, attempt=1, worker=0):
        event = self.event(id)
        delivery = self.delivery(id)
        timestamp = str(int(WALL + began))
        request = Request(
            len(self.history.requests), 0, worker, began, WALL + began, "ok", "POST",
            {"webhook-id": id, "webhook-timestamp": timestamp,
             "postrider-position": str(delivery.id), "postrider-attempt": str(attempt)},
            event.body, ended, status)
        sign(request)
        self.history.requests.append(request)
        return request

    def keep(self, request, ended="answered", after=0.001):
        """The outcome is recorded, by its worker."""
        recorded = None if ended == "lease_expired" else WALL + request.ended + after
        row = AttemptRow(request.position, 1, request.attempt, ended, request.status,
                         recorded, 500 + request.worker)
        self.history.attempts.append(row)
        delivery = next(d for d in self.history.deliveries if d.id == row.delivery)
        delivery.attempts = row.attempt
        if ended == "answered" and request.status < 300:
            delivery.state = "delivered"
        elif ended == "answered" and request.status in (302, 404, 410):
            delivery.state = "dead"
        return row

    def deliver(self, id, began, **how):
        request = self.send(id, began, began + 0.1, **how)
        return request, self.keep(request)

    def event(self, id):
        return next(e for e in self.history.events if e.event_id == id)

    def delivery(self, id):
        return next(d for d in self.history.deliveries if d.event == self.event(id).number)


def sign(request, key=KEYS[0]):
    text = f"{request.event_id}.{request.headers['webhook-timestamp']}.{request.body}"
    digest = hmac.new(key, text.encode("latin-1"), hashlib.sha256).digest()
    request.headers["webhook-signature"] = "v1," + base64.b64encode(digest).decode()


@pytest.fixture
def story():
    return Story()


@pytest.fixture
def two(story):
    """Two events of one asset, delivered one after the other."""
    story.post("e1", 1.0)
    story.post("e2", 2.0)
    story.deliver("e1", 3.0)
    story.deliver("e2", 4.0)
    return story


@pytest.fixture
def frozen(story):
    """The owner of the first request is frozen, and another sends it again."""
    story.post("e1", 1.0)
    story.history.workers[0].frozen.append([2.1, 9.0])
    story.keep(story.send("e1", 2.0, 9.0, None), "lease_expired")
    story.deliver("e1", 4.0, attempt=2, worker=1)
    return story


# -- right histories --

def test_one_event_after_the_other_is_right(two):
    assert judge(two.history) == []


def test_a_frozen_owner_whose_lease_ran_out_excuses_an_overlap(frozen):
    assert judge(frozen.history) == []


def test_retries_with_their_waits_are_right(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=503)
    story.deliver("e1", 2.2, status=429, attempt=2)
    story.deliver("e1", 3.4, attempt=3)
    assert judge(story.history) == []


def test_a_lost_answer_to_the_app_is_right(story):
    story.post("e1", 1.0, status=503)
    post = story.post("e2", 1.1, status=504)
    post.tries.append(Try(1.3, 1.4, None))
    assert judge(story.history) == []


def test_a_delivery_that_waits_for_a_reason_is_right(story):
    story.post("e1", 1.0)
    story.delivery("e1").waits = "paused"
    assert judge(story.history) == []


def test_what_was_claimed_before_a_pause_may_begin_after_it(two):
    two.history.changes.append(Change(0, "state", "paused", 3.6, 3.7))
    assert judge(two.history) == []


def test_a_lower_limit_lets_the_running_requests_finish(story):
    story.history.changes.append(Change(0, "max_in_flight", 3, 0.2, 0.3))
    for n in range(3):
        story.post(f"e{n}", 1.0, asset=f"a{n}")
        story.keep(story.send(f"e{n}", 2.0, 2.4))
    story.history.changes.append(Change(0, "max_in_flight", 1, 2.1, 2.2))
    assert judge(story.history) == []


def test_a_position_drawn_before_its_predecessors_whole_life_is_right(two):
    """As src/README.md tells of the first position of a new lane."""
    first, second = two.history.deliveries
    for thing in (*two.history.requests, *two.history.attempts):
        swap_position(thing, first.id, second.id)
    first.id, second.id = second.id, first.id
    two.history.posts[1].tries[0] = Try(0.9, 3.6, 202)
    two.event("e2").committed = WALL + 3.5
    assert judge(two.history) == []


def test_a_dead_letter_that_is_retried_behind_its_successor_is_right(story):
    story.post("e1", 1.0)
    story.post("e2", 1.5)
    story.deliver("e1", 2.0, status=404)
    story.deliver("e2", 3.0)
    request, row = story.deliver("e1", 4.0)
    row.generation = story.delivery("e1").generation = 2
    assert judge(story.history) == []


def test_a_replay_of_what_was_missed_takes_its_events_place(story):
    story.history.changes += [Change(0, "state", "disabled", 0.5, 0.6),
                              Change(0, "state", "active", 1.5, 1.6)]
    story.post("e1", 1.0)
    story.post("e2", 2.0)
    story.deliver("e2", 3.0)
    missed = story.delivery("e1")
    missed.id = story.event("e1").number
    story.deliver("e1", 5.0)
    assert judge(story.history) == []


def test_a_hold_ends_with_a_retry(story):
    holding(story)
    story.history.orders.append(Order("retry", 0, 3.0, 3.1, 202, {
        "delivery": story.delivery("e1").id}))
    request, row = story.deliver("e1", 3.2)
    row.generation = story.delivery("e1").generation = 2
    story.deliver("e2", 4.0)
    assert judge(story.history) == []


def test_a_dead_letter_that_was_given_up_is_right(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=404)
    story.delivery("e1").state = "cancelled"
    story.history.orders.append(Order("discard", 0, 3.0, 3.1, 200, {
        "delivery": story.delivery("e1").id}))
    assert judge(story.history) == []


def test_a_history_comes_back_from_its_file(frozen, tmp_path):
    frozen.history.save(tmp_path / "history.json")
    assert load(tmp_path / "history.json") == frozen.history


# -- wrong histories --

def swap_position(thing, one, two):
    if isinstance(thing, Request):
        other = {one: two, two: one}[thing.position]
        thing.headers["postrider-position"] = str(other)
    else:
        thing.delivery = {one: two, two: one}[thing.delivery]


def test_an_acknowledged_event_that_is_not_there_is_lost(two):
    two.history.events.pop()
    assert "lost" in kinds(two.history)


def test_an_event_without_its_delivery_is_lost(story):
    story.post("e1", 1.0)
    story.history.deliveries.clear()
    assert kinds(story.history) == {"lost"}


def test_a_paused_subscription_gets_its_delivery_all_the_same(story):
    story.history.changes.append(Change(0, "state", "paused", 0.5, 0.6))
    story.post("e1", 1.0)
    story.history.deliveries.clear()
    assert kinds(story.history) == {"lost"}


def test_a_disabled_subscription_need_not_get_one(story):
    story.history.changes.append(Change(0, "state", "deleted", 0.5, 0.6))
    story.post("e1", 1.0)
    story.history.deliveries.clear()
    assert kinds(story.history) == set()


def test_what_a_replay_should_have_brought_is_lost(story):
    story.history.changes += [Change(0, "state", "disabled", 0.5, 0.6),
                              Change(0, "state", "active", 1.5, 1.6)]
    story.post("e1", 1.0)
    story.history.deliveries.clear()
    story.history.orders.append(Order("replay", 0, 3.0, 3.1, 202, {"since": WALL - 5}))
    assert kinds(story.history) == {"lost"}


def test_a_delivery_that_nobody_gave_up_is_lost(story):
    story.post("e1", 1.0)
    story.delivery("e1").state = "cancelled"
    assert kinds(story.history) == {"lost"}


def test_a_retry_that_was_promised_is_lost(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=404)
    story.history.orders.append(Order("retry", 0, 3.0, 3.1, 202, {
        "delivery": story.delivery("e1").id}))
    assert kinds(story.history) == {"lost"}


def test_a_delivery_without_an_end_is_lost(story):
    story.post("e1", 1.0)
    assert kinds(story.history) == {"lost"}


def test_a_refused_event_that_is_there_is_a_phantom(two):
    two.history.posts[1].tries[0].status = 503
    assert "phantom" in kinds(two.history)


def test_an_event_that_nobody_posted_is_a_phantom(two):
    two.history.posts.pop()
    assert {"phantom", "wrong subscription"} <= kinds(two.history)


def test_half_a_batch_is_a_phantom(two):
    for line, post in enumerate(two.history.posts):
        post.batch, post.line = "b", line
    two.history.posts.append(dataclasses.replace(
        two.history.posts[0], id="e3", line=2, tries=[Try(1.0, 1.1, None)]))
    assert kinds(two.history) == {"phantom"}


def test_a_second_acceptance_is_found(two):
    two.history.posts[0].tries.append(Try(5.0, 5.1, 202))
    assert kinds(two.history) == {"accepted twice"}


def test_an_answer_that_is_none_is_found(two):
    two.history.posts[0].tries.insert(0, Try(0.8, 0.9, 500))
    assert kinds(two.history) == {"accepted twice"}


def test_a_request_to_another_subscription_is_found(two):
    two.history.requests[0].subscription = 1
    assert "wrong subscription" in kinds(two.history)


def test_a_delivery_for_another_subscription_is_found(two):
    two.history.deliveries[0].subscription_id = 101
    assert "wrong subscription" in kinds(two.history)


def test_a_request_under_anothers_position_is_found(two):
    two.history.requests[0].headers["postrider-position"] = str(two.delivery("e2").id)
    assert "wrong subscription" in kinds(two.history)


def test_changed_data_are_found(two):
    request = two.history.requests[0]
    request.body = request.body.replace('"fact":"e1"', '"fact": "e1"')
    sign(request)
    assert kinds(two.history) == {"changed bytes"}


def test_a_changed_envelope_is_found(two):
    request = two.history.requests[0]
    request.body = two.event("e1").body = request.body.replace('"asset":"a"', '"asset":"b"')
    sign(request)
    assert kinds(two.history) == {"changed bytes"}


def test_bytes_that_change_between_attempts_are_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=503)
    request, _ = story.deliver("e1", 3.0, attempt=2)
    request.body = request.body.replace('"now"', '"later"')
    sign(request)
    assert kinds(story.history) == {"changed bytes"}


def test_a_signature_with_anothers_secret_is_found(two):
    sign(two.history.requests[0], KEYS[1])
    assert kinds(two.history) == {"wrong signature"}


def test_an_old_timestamp_is_found(two):
    request = two.history.requests[0]
    request.headers["webhook-timestamp"] = str(int(WALL - 1000))
    sign(request)
    assert kinds(two.history) == {"wrong signature"}


def test_an_overlap_in_a_lane_is_found(two):
    two.history.requests[0].ended = 4.05
    two.history.attempts[0].recorded = WALL + 3.5
    assert "overlap" in kinds(two.history)


def test_an_overlap_of_a_killed_owner_has_no_excuse(frozen):
    """Its socket closes; what is still open belongs to somebody who lives."""
    frozen.history.workers[0].frozen.clear()
    assert "overlap" in kinds(frozen.history)


def test_a_frozen_owner_is_no_excuse_while_its_lease_holds(frozen):
    """Time-out and half the margin: from 2.0 to 3.0."""
    again = frozen.history.requests[1]
    again.began, again.ended, again.wall = 2.9, 3.1, WALL + 2.9
    assert "overlap" in kinds(frozen.history)


def test_another_owners_being_frozen_is_no_excuse(frozen):
    one, two = frozen.history.workers
    one.frozen, two.frozen = two.frozen, one.frozen
    assert "overlap" in kinds(frozen.history)


def test_a_freeze_before_the_request_is_no_excuse(frozen):
    frozen.history.workers[0].frozen[0] = [0.5, 1.9]
    assert "overlap" in kinds(frozen.history)


def test_one_more_in_flight_than_allowed_is_found(story):
    for n in range(2):
        story.post(f"e{n}", 1.0, asset=f"a{n}")
        story.keep(story.send(f"e{n}", 2.0 + 0.05 * n, 2.2))
    assert kinds(story.history) == {"too many in flight"}


def test_a_limit_that_was_lowered_before_the_claim_is_kept(story):
    story.history.changes += [Change(0, "max_in_flight", 2, 0.2, 0.3),
                              Change(0, "max_in_flight", 1, 1.0, 1.1)]
    for n in range(2):
        story.post(f"e{n}", 1.0, asset=f"a{n}")
        story.keep(story.send(f"e{n}", 2.0, 2.2))
    assert kinds(story.history) == {"too many in flight"}


def gone(story):
    story.post("e1", 1.0)
    story.post("e2", 1.1, asset="b")
    story.deliver("e1", 2.0, status=410)
    story.deliver("e2", 5.0)


def test_a_request_after_the_receiver_was_gone_is_found(story):
    gone(story)
    assert kinds(story.history) == {"sent while stopped"}


def test_an_order_that_was_under_way_may_come_after_the_410(story):
    story.history.changes.append(Change(0, "state", "active", 1.9, 4.5))
    gone(story)
    assert judge(story.history) == []


def deliver_many(story, times):
    for n, at in enumerate(times):
        story.post(f"e{n}", 1.0, asset=f"a{n}")
        story.keep(story.send(f"e{n}", at, at + 0.001))


def test_a_rate_that_is_kept_to_the_last_is_right(story):
    """A second's worth at once, then evenly."""
    story.history.changes.append(Change(0, "rate_per_second", 4, 0.2, 0.3))
    deliver_many(story, [2.0, 2.01, 2.02, 2.03, 2.28, 2.53])
    assert judge(story.history) == []


def test_one_request_over_the_rate_is_found(story):
    story.history.changes.append(Change(0, "rate_per_second", 4, 0.2, 0.3))
    deliver_many(story, [2.0, 2.01, 2.02, 2.03, 2.04, 2.05])
    assert kinds(story.history) == {"too fast"}


def test_a_rate_below_one_a_second_is_kept(story):
    story.history.changes.append(Change(0, "rate_per_second", 0.5, 0.2, 0.3))
    deliver_many(story, [2.0, 4.001])
    assert judge(story.history) == []
    deliver_many(story, [5.4])
    assert "too fast" in kinds(story.history)


def open_circuit(story, *probes):
    story.history.changes.append(Change(0, "max_in_flight", 5, 0.2, 0.3))
    story.history.circuits.append(Circuit(0, WALL + 2.0, WALL + 9.0))
    for n, (began, ended) in enumerate(probes):
        story.post(f"e{n}", 1.0, asset=f"a{n}")
        story.keep(story.send(f"e{n}", began, ended))


def test_one_probe_at_a_time_is_right(story):
    open_circuit(story, (2.3, 2.7), (2.4, 2.8), (4.0, 4.2), (5.0, 5.2))
    assert judge(story.history) == []


def test_two_probes_at_once_are_found(story):
    open_circuit(story, (4.0, 4.2), (4.1, 4.3))
    assert kinds(story.history) == {"too many probes"}


def test_a_request_of_a_paused_subscription_is_found(two):
    two.history.changes.append(Change(0, "state", "paused", 3.2, 3.3))
    assert kinds(two.history) == {"sent while stopped"}


def test_one_fact_under_two_ids_is_found(two):
    first, second = two.history.posts
    second.data = first.data
    for request in two.history.requests[1:]:
        request.body = two.event("e2").body = request.body.replace(
            '"fact":"e2"', '"fact":"e1"')
        sign(request)
    assert kinds(two.history) == {"double effect"}


def test_a_successor_sent_first_is_found(story):
    story.post("e1", 1.0)
    story.post("e2", 2.0)
    story.deliver("e2", 3.0)
    story.deliver("e1", 4.0)
    assert kinds(story.history) == {"out of order"}


def test_a_successor_sent_between_two_attempts_is_found(story):
    story.post("e1", 1.0)
    story.post("e2", 2.0)
    story.deliver("e1", 3.0, status=503)
    story.deliver("e2", 3.2)
    story.deliver("e1", 4.0, attempt=2)
    assert kinds(story.history) == {"out of order"}


def test_a_successor_sent_before_the_outcome_is_on_record_is_found(two):
    """Although the receiver had answered: nobody could know."""
    two.history.attempts[0].recorded = WALL + 4.01
    assert kinds(two.history) == {"out of order"}


def test_a_successor_sent_while_its_predecessor_waits_is_found(story):
    story.post("e1", 1.0)
    story.post("e2", 2.0)
    story.delivery("e1").waits = "held"
    story.deliver("e2", 4.0)
    assert kinds(story.history) == {"out of order"}


def holding(story):
    """e1 dies and holds the lane in which e2 waits."""
    story.history.changes.append(Change(0, "on_dead", "hold", 0.2, 0.3))
    story.post("e1", 1.0)
    story.post("e2", 1.1)
    story.deliver("e1", 2.0, status=404)


def test_a_successor_that_passes_a_hold_is_found(story):
    holding(story)
    story.deliver("e2", 4.0)
    assert kinds(story.history) == {"out of order"}


def test_an_order_that_is_not_that_of_the_commits_is_found(two):
    two.event("e1").committed = WALL + 2.5
    assert "out of order" in kinds(two.history)


def test_an_order_against_what_the_apps_saw_is_found(two):
    """e2 was posted once e1 was acknowledged, and was committed before it."""
    two.history.posts[1].tries[0] = Try(0.1, 0.2, 202)
    assert "out of order" in kinds(two.history)


def test_an_attempt_that_comes_after_the_next_one_is_found(frozen):
    """Its owner woke up too late, and sent it all the same."""
    one, two = frozen.history.requests
    one.began, one.ended, one.wall = 4.5, 4.6, WALL + 4.5
    two.ended = 4.2
    assert "late attempt" in kinds(frozen.history)


def test_lines_of_a_batch_out_of_order_are_found(two):
    for line, post in enumerate(two.history.posts):
        post.batch, post.line = "b", 1 - line
    assert "out of order" in kinds(two.history)


def test_one_attempt_in_two_requests_is_found(story):
    story.post("e1", 1.0)
    story.send("e1", 2.0, 2.1, None)
    story.deliver("e1", 2.5)
    assert kinds(story.history) == {"off the record"}


def test_a_request_without_a_record_is_found(two):
    two.send("e2", 5.0, 5.1, attempt=2)
    assert kinds(two.history) == {"off the record"}


def test_an_outcome_that_the_receiver_never_gave_is_found(two):
    """As when a stale worker's answer is kept under its successor's lease."""
    two.history.requests[0].status = 503
    assert kinds(two.history) == {"stale record"}


def test_an_outcome_of_anothers_request_is_found(two):
    two.history.attempts[0].pid = 501
    assert kinds(two.history) == {"stale record"}


def test_an_outcome_recorded_after_the_lease_is_found(story):
    """The request began at 2.0 at the earliest: time-out and margin end at 3.5."""
    story.post("e1", 1.0)
    story.keep(story.send("e1", 2.0, 2.1), after=1.5)
    assert kinds(story.history) == {"stale record"}


def test_a_request_on_record_as_never_sent_is_found(story):
    story.post("e1", 1.0)
    story.keep(story.send("e1", 2.0, 2.1, None), "connect_failed")
    story.deliver("e1", 3.0, attempt=2)
    assert kinds(story.history) == {"stale record"}


def test_a_gap_between_attempts_is_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, attempt=2)
    assert kinds(story.history) == {"wrong verdict"}


def test_an_attempt_after_the_end_is_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0)
    story.deliver("e1", 3.0, attempt=2)
    assert kinds(story.history) == {"wrong verdict"}


def test_a_refusal_that_is_retried_is_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=302)
    story.deliver("e1", 3.0, attempt=2)
    assert kinds(story.history) == {"wrong verdict"}


def test_more_attempts_than_allowed_are_found(story):
    story.post("e1", 1.0)
    for n in range(1, 4):
        story.deliver("e1", 2.0 * n, attempt=n, status=503)
    story.deliver("e1", 9.0, attempt=4)
    assert kinds(story.history) == {"wrong verdict"}


def test_a_death_before_the_last_attempt_is_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=503)
    story.delivery("e1").state = "dead"
    assert kinds(story.history) == {"wrong verdict"}


def test_a_delivery_without_an_answer_is_found(story):
    story.post("e1", 1.0)
    story.keep(story.send("e1", 2.0, 2.1, None), "timed_out")
    story.delivery("e1").state = "delivered"
    assert kinds(story.history) == {"wrong verdict"}


def test_a_retry_before_its_backoff_is_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=503)
    story.deliver("e1", 2.14, attempt=2)
    assert kinds(story.history) == {"too early"}


def test_a_retry_before_the_receiver_asked_for_it_is_found(story):
    story.post("e1", 1.0)
    story.deliver("e1", 2.0, status=429)
    story.deliver("e1", 3.0, attempt=2)
    assert kinds(story.history) == {"too early"}


def test_a_lane_that_stands_for_nothing_is_found(two):
    two.history.lanes_left = 1
    assert kinds(two.history) == {"left behind"}
