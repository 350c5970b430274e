"""Replays in the background: each step is one transaction, and moves the cursor on."""

from .replaying import Queue, run
from .statement import record, statement

DAY = 86400 * 1_000_000


def micros(db, ago="0"):
    """A time so long ago, as a statement takes it."""
    return db.value("SELECT (extract(epoch FROM clock_timestamp() - %s::interval)"
                    " * 1000000)::bigint", (ago,))


def run_down(queue, job):
    """All steps of a job, however far apart; returns how it ended."""
    for _ in range(20):
        queue.db.execute("UPDATE postrider.replay_job SET next_step_at = now()")
        queue.step()
        if queue.job(job)["state"] != "running":
            break
    return progress(queue, job)


def progress(queue, job):
    found = queue.job(job)
    return tuple(found[name] for name in ("state", "examined", "replayed", "refused"))


# -- dead letters --

def test_all_dead_letters_are_replayed_once_in_their_order(queue):
    events = [f"e{n}" for n in range(25)]
    queue.die(*events)
    job = queue.start("dead")
    assert run_down(queue, job) == ("done", 25, 25, 0)
    assert queue.drain() == events
    assert queue.db.rows("SELECT DISTINCT state, generation FROM postrider.delivery") == [
        ("delivered", 2)]


def test_what_dies_again_is_not_replayed_by_the_same_job(queue):
    queue.die(*(f"e{n}" for n in range(12)))
    job = queue.start("dead")
    queue.step()
    while queue.send("dead"):
        pass
    queue.die("later")
    assert run_down(queue, job) == ("done", 12, 12, 0)
    while queue.send("dead"):
        pass
    assert queue.db.rows("SELECT generation, count(*) FROM postrider.delivery"
                         " WHERE state = 'dead' GROUP BY 1 ORDER BY 1") == [(1, 1), (2, 12)]


def test_replaying_twice_sends_twice(queue):
    queue.die("one", "two")
    for generation in (2, 3):
        run_down(queue, queue.start("dead"))
        assert queue.send("dead") + queue.send("dead") == ["one", "two"]
        assert {queue.state(queue.delivery(event))[1] for event in ("one", "two")} == {
            generation}


def test_only_what_died_in_the_given_time_is_replayed(queue, db):
    for event, ago in (("old", "3 days"), ("middle", "2 days"), ("new", "1 day")):
        dead, = queue.die(event)
        db.execute("UPDATE postrider.dead_letter SET died_at = now() - %s::interval"
                   " WHERE delivery_id = %s", (ago, dead))
    job = queue.start("dead", micros(db, "60 hours"), micros(db, "36 hours"))
    assert run_down(queue, job) == ("done", 1, 1, 0)
    assert queue.drain() == ["middle"]


def test_only_its_own_dead_letters_are_replayed(queue):
    queue.die("mine")
    stranger = Queue(queue.db)
    theirs, = stranger.die("theirs")
    assert run_down(queue, queue.start("dead")) == ("done", 1, 1, 0)
    assert stranger.state(theirs) == ("dead", 1, 1)


def test_what_was_purged_is_refused_and_counted(queue, db):
    queue.die("one", "two")
    db.execute("UPDATE postrider.event SET body = NULL WHERE event_id = 'one'")
    assert run_down(queue, queue.start("dead")) == ("done", 2, 1, 1)
    assert queue.drain() == ["two"]


def test_a_step_takes_what_the_rate_allows_for_a_tenth_of_a_second(queue):
    queue.die(*(f"e{n}" for n in range(12)))
    job = queue.start("dead", rate=50)
    assert queue.step()["did"] == 5
    assert progress(queue, job) == ("running", 5, 5, 0)
    assert queue.db.value("SELECT next_step_at >= created_at + interval '100 ms'"
                          " FROM postrider.replay_job")
    queue.db.execute("UPDATE postrider.replay_job SET next_step_at = now() + interval '1 hour'")
    step = queue.step()
    assert step["did"] == 0 and step["next_in_us"] > 3_000_000_000, "it is not due yet"


def many_dead(queue, n, died_at):
    """n dead letters without order."""
    queue.db.execute(
        "INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, fingerprint, body)"
        " SELECT %s, 1, 'e' || g, 't', '\\x00', '{}' FROM generate_series(1, %s) g",
        (queue.tenant, n))
    queue.db.execute(
        "INSERT INTO postrider.delivery (id, event_no, subscription_id, state, finished_at)"
        " SELECT event_no + 1, event_no, %s, 'dead', %s FROM postrider.event",
        (queue.id, died_at))
    queue.db.execute("INSERT INTO postrider.dead_letter SELECT id, subscription_id,"
                     " finished_at, 'x' FROM postrider.delivery")


def test_a_step_takes_at_most_200(queue):
    many_dead(queue, 250, "now")
    queue.start("dead", rate=10000)
    assert queue.step()["did"] == 200


def test_it_walks_past_dead_letters_of_another_time_in_steps(queue, db):
    many_dead(queue, 4500, "yesterday")
    queue.die("new")
    job = queue.start("dead", micros(db, "1 hour"))
    steps = [queue.step() for _ in range(3)]
    assert [step["did"] for step in steps] == [1, 1, 1]
    assert steps[0]["next_in_us"] == 0, "what does not match costs no rate"
    assert progress(queue, job) == ("done", 1, 1, 0)


def test_a_step_that_does_not_commit_has_not_been(queue, other):
    queue.die(*(f"e{n}" for n in range(12)))
    job = queue.start("dead")
    queue.begin_step(other)
    other.rollback()
    assert progress(queue, job) == ("running", 0, 0, 0)
    assert run_down(queue, job) == ("done", 12, 12, 0)
    assert queue.db.rows("SELECT DISTINCT generation FROM postrider.delivery") == [(2,)]


def test_two_dispatchers_do_not_take_the_same_step(queue, other):
    queue.die(*(f"e{n}" for n in range(12)))
    job = queue.start("dead")
    assert queue.begin_step(other)["did"] == 10
    step = queue.step()
    assert step["did"] == 0 and step["next_in_us"] >= 50_000, "and does not ask at once"
    other.commit()
    assert run_down(queue, job) == ("done", 12, 12, 0)


def test_it_begins_when_what_was_under_way_is_committed(queue, other, db):
    """A record that died before the job was made may have a place behind the cursor."""
    queue.die("one")
    queue.accept("two")
    (lane, token, _), = queue.claim()
    record(other, lane, token, "dead", statuses=[400], hands_back=False)
    job = queue.start("dead")
    assert queue.step()["did"] == 0
    other.commit()
    assert run_down(queue, job) == ("done", 2, 2, 0)


def test_it_does_not_wait_for_ever_for_a_transaction_that_is_not_ours(queue, other, db):
    queue.die("one")
    other.execute("SELECT pg_current_xact_id()")
    job = queue.start("dead")
    assert queue.step()["did"] == 0
    db.execute("UPDATE postrider.replay_job SET created_at = created_at - interval '1 minute',"
               " next_step_at = now()")
    db.execute("UPDATE postrider.dead_letter SET died_at = died_at - interval '1 minute'")
    queue.step()
    assert progress(queue, job) == ("done", 1, 1, 0)


def test_a_cancelled_one_goes_no_further(queue):
    queue.die(*(f"e{n}" for n in range(12)))
    job = queue.start("dead")
    queue.step()
    queue.transaction(lambda c: statement(c, "replay_cancel", None, queue.id, job, "test"))
    assert queue.step()["next_in_us"] is None
    assert progress(queue, job) == ("cancelled", 10, 10, 0)
    assert queue.db.rows("SELECT action FROM postrider.audit ORDER BY id") == [
        ("replay.started",), ("replay.cancelled",)]


def test_it_ends_with_its_subscription(queue, db):
    queue.die("one")
    job = queue.start("dead")
    db.execute("UPDATE postrider.subscription SET state = 'deleted'")
    queue.step()
    assert db.rows("SELECT state, replayed FROM postrider.replay_job WHERE id = %s",
                   (job,)) == [("cancelled", 0)]


def test_the_newest_comes_first_in_the_list(queue):
    jobs = [queue.start("dead") for _ in range(3)]
    rows = queue.transaction(lambda c: run(c, "replay_list", None, queue.id, 2))
    assert [row["id"] for row in rows] == [jobs[2], jobs[1]]


# -- events --

def test_what_came_while_it_was_disabled_goes_before_what_waits(queue, db):
    since = micros(db)
    missed = [queue.accept_for_nobody(f"missed-{n}") for n in range(3)]
    queue.accept("waits")
    assert run_down(queue, queue.start("events", since)) == ("done", 4, 3, 0)
    assert queue.drain() == ["missed-0", "missed-1", "missed-2", "waits"]
    assert [queue.delivery(f"missed-{n}") for n in range(3)] == [no + 1 for no in missed], (
        "each in the place that its event's number keeps for it")
    assert queue.state(queue.delivery("waits")) == ("delivered", 1, 1)


def test_what_is_over_is_sent_again_and_what_is_under_way_is_not(queue, db):
    since = micros(db)
    dead, discarded = queue.die("dead", "discarded")
    queue.discard(discarded)
    queue.accept("delivered")
    queue.drain()
    queue.accept("waits")
    assert run_down(queue, queue.start("events", since)) == ("done", 4, 3, 0)
    assert queue.drain() == ["dead", "discarded", "delivered", "waits"]
    assert [queue.state(queue.delivery(event))[1] for event in (
        "dead", "discarded", "delivered", "waits")] == [2, 2, 2, 1]
    assert db.value("SELECT count(*) FROM postrider.dead_letter") == 0
    assert dead == queue.delivery("dead")


def test_an_attempt_that_its_delivery_kept_stays_on_record(queue, db):
    since = micros(db)
    queue.accept_unordered("one")
    [lease] = queue.claim()
    assert queue.take(lease)
    kept = db.rows("SELECT * FROM postrider.attempt")
    assert len(kept) == 1 and db.value("SELECT count(*) FROM postrider.other_attempt") == 0
    assert run_down(queue, queue.start("events", since)) == ("done", 1, 1, 0)
    queue.check()
    assert db.rows("SELECT * FROM postrider.attempt") == kept
    [lease] = queue.claim()
    assert queue.take(lease)
    queue.check()
    assert db.rows("SELECT generation, attempt FROM postrider.attempt ORDER BY 1") == [
        (1, 1), (2, 1)]
    assert db.rows("SELECT * FROM postrider.attempt WHERE generation = 1") == kept


def test_what_is_under_way_costs_no_rate(queue, db):
    since = micros(db)
    queue.accept("one")
    queue.accept("two")
    queue.start("events", since, rate=1)
    assert queue.step() == {"did": 1, "next_in_us": 0}


def test_only_what_its_event_types_match_is_sent(queue, db):
    db.execute("UPDATE postrider.subscription SET event_types = '{order.*,exact,a.b}'")
    since = micros(db)
    for type in ("order.paid", "order.paid.late", "order", "orders.x", "exact", "exact.not",
                 "a.b", "a.b.c", "b"):
        queue.accept_for_nobody(f"of-{type}", asset="a", type=type)
    run_down(queue, queue.start("events", since))
    assert queue.drain() == ["of-order.paid", "of-order.paid.late", "of-exact", "of-a.b"]


def test_an_event_goes_to_nobody_whom_its_post_did_not_name(queue, db):
    since = micros(db)
    queue.accept_for_nobody("for-another", named=f"{{{queue.id + 1}}}")
    queue.accept_for_nobody("for-it", named=f"{{{queue.id + 1},{queue.id}}}", type="strange")
    db.execute("UPDATE postrider.subscription SET event_types = '{t}'")
    run_down(queue, queue.start("events", since))
    assert queue.drain() == ["for-it"]


def test_another_tenants_events_are_not_its_own(queue, db):
    since = micros(db)
    Queue(db).accept_for_nobody("theirs")
    assert run_down(queue, queue.start("events", since)) == ("done", 0, 0, 0)


def test_what_was_purged_is_not_made_up(queue, db):
    since = micros(db)
    queue.accept_for_nobody("purged")
    queue.accept_for_nobody("kept")
    db.execute("UPDATE postrider.event SET body = NULL WHERE event_id = 'purged'")
    assert run_down(queue, queue.start("events", since)) == ("done", 2, 1, 1)
    assert queue.drain() == ["kept"]


def test_events_without_an_asset_have_no_order(queue, db):
    since = micros(db)
    queue.accept_for_nobody("one", asset=None)
    queue.accept_for_nobody("two", asset=None)
    run_down(queue, queue.start("events", since))
    assert db.value("SELECT count(*) FROM postrider.lane WHERE id = head_id") == 2
    assert sorted(queue.drain()) == ["one", "two"]


def test_a_subscription_without_order_gets_its_events_without_order(db):
    queue = Queue(db, ordering="none")
    since = micros(db)
    queue.accept_for_nobody("one")
    queue.accept_for_nobody("two")
    run_down(queue, queue.start("events", since))
    assert db.rows("SELECT asset FROM postrider.lane") == [(None,), (None,)]
    queue.check()


def test_since_is_included_and_until_is_not(queue, db):
    for hours in (5, 4.01, 4, 3, 2):
        queue.accept_for_nobody(f"{hours}-ago")
        db.execute("UPDATE postrider.event SET accepted_at = date_trunc('hour', now())"
                   " - %s * interval '1 hour' WHERE event_id = %s", (hours, f"{hours}-ago"))
    hour = db.value("SELECT (extract(epoch FROM date_trunc('hour', now()))"
                    " * 1000000)::bigint")
    run_down(queue, queue.start("events", hour - DAY // 6, hour - DAY // 12))
    assert queue.drain() == ["4-ago", "3-ago"]


def test_it_begins_where_its_time_begins(queue, db):
    db.execute("INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, fingerprint,"
               " accepted_at) SELECT %s, 0, 'e' || g, 't', '\\x00', now()"
               " - make_interval(mins => 3000 - g) FROM generate_series(1, 3000) g",
               (queue.tenant,))
    for minutes in (0, 1, 2, 1500, 2998, 2999, 4000):
        since = micros(db, f"{minutes} minutes")
        found = queue.job(queue.start("events", since))["reached"]
        assert found == db.value(
            "SELECT coalesce(max(event_no), 0) FROM postrider.event WHERE accepted_at <"
            " timestamptz 'epoch' + %s * interval '1 microsecond' - interval '1 minute'",
            (since,)), minutes


def test_it_walks_past_what_does_not_match_in_steps(queue, db):
    since = micros(db)
    stranger = db.value("INSERT INTO postrider.tenant (name) VALUES ('noisy') RETURNING id")
    db.execute("INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, fingerprint,"
               " body) SELECT %s, 0, 'e' || g, 't', '\\x00', '{}'"
               " FROM generate_series(1, 4500) g", (stranger,))
    queue.accept_for_nobody("mine")
    job = queue.start("events", since)
    steps = []
    while queue.job(job)["state"] == "running":
        steps.append(queue.step())
        queue.db.execute("UPDATE postrider.replay_job SET next_step_at = now()")
    assert [step["did"] for step in steps] == [1, 1, 1]
    assert steps[0]["next_in_us"] == 0, "what does not match costs no rate"
    assert progress(queue, job) == ("done", 1, 1, 0)


def test_two_subscriptions_share_the_places_of_an_event(queue, db):
    since = micros(db)
    number = queue.accept_for_nobody("one")
    first = queue.id
    run_down(queue, queue.start("events", since))
    queue.id = queue.subscribe()
    run_down(queue, queue.start("events", since))
    assert db.rows("SELECT subscription_id, id FROM postrider.delivery ORDER BY id") == [
        (first, number + 1), (queue.id, number + 2)]


def test_only_one_step_at_a_time_makes_deliveries(queue, other, db):
    """Two would take the same place for one event."""
    since = micros(db)
    queue.accept_for_nobody("one")
    queue.start("events", since)
    first, queue.id = queue.id, queue.subscribe()
    job = queue.start("events", since)
    assert queue.begin_step(other)["did"] == 1
    assert queue.step()["did"] == 0
    other.commit()
    assert run_down(queue, job) == ("done", 1, 1, 0)
    assert db.rows("SELECT subscription_id FROM postrider.delivery ORDER BY id") == [
        (first,), (queue.id,)]


def test_an_event_whose_places_are_taken_goes_where_acceptance_would_put_it(queue, db):
    since = micros(db)
    number = queue.accept_for_nobody("one")
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, state)"
               " VALUES (%s, %s, %s, 'delivered')", (number + 999, number, queue.id + 999))
    following = queue.accept_for_nobody("two")
    run_down(queue, queue.start("events", since))
    assert queue.delivery("one") > following + 999
    assert queue.drain() == ["two", "one"]
