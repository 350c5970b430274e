"""Limits, circuit, leases and replays where transactions meet, step by step."""

import threading

import pytest

from . import statement
from .statement import MARGIN, accept, record, settle
from .wait import until


@pytest.fixture
def connect(db, cluster):
    """Make connections, each with a transaction of its own."""
    made = []

    def make():
        connection = cluster.connect(db.name)
        connection.autocommit = False
        connection.execute("SET lock_timeout = '10s'")
        connection.commit()
        made.append(connection)
        return connection

    yield make
    for connection in made:
        connection.close()


@pytest.fixture
def subscribe(db):
    """Make a subscription of a tenant of its own: (tenant, subscription)."""
    def make(**fields):
        tenant = db.value("INSERT INTO postrider.tenant (name) VALUES ('t' || (SELECT count(*)"
                          " FROM postrider.tenant)) RETURNING id")
        names = ", ".join(("tenant_id", "url", *fields))
        places = ", ".join(["%s"] * (len(fields) + 2))
        made = db.value(f"INSERT INTO postrider.subscription ({names}) VALUES ({places})"
                        " RETURNING id", (tenant, "https://example.com/", *fields.values()))
        db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id) VALUES (%s, %s)",
                   (made, tenant))
        return tenant, made
    return make


@pytest.fixture
def put(connect):
    """One event for each asset."""
    connection = connect()

    def put_all(subscription, *assets):
        for asset in assets:
            number = connection.execute("SELECT nextval('postrider.position')").fetchone()[0]
            accept(connection, *subscription, f"{asset}-{number}", asset)
        connection.commit()
    return put_all


@pytest.fixture
def claim(connect):
    """One pass; returns [(lane, token)]."""
    connection = connect()

    def claim_all(margin=MARGIN):
        statement.statement(connection, "turn_take", 200, [], None)
        rows = statement.statement(connection, "lane_claim", 500, "w", margin, 100_000,
                                   statement.STAYS)
        at = [column.name for column in rows.description].index("lease_token")
        made = [(row[0], row[at]) for row in rows.fetchall()]
        connection.commit()
        return made
    return claim_all


@pytest.fixture
def conclude(connect):
    """Record one outcome, as a whole transaction."""
    connection = connect()

    def conclude_one(subscription, lease, verdict, says=0, wait_us=0):
        rows = record(connection, *lease, verdict, wait_us)
        settle(connection, subscription[1], lease[0], says)
        connection.commit()
        return rows
    return conclude_one


@pytest.fixture
def rest(connect):
    connection = connect()

    def rest_one(subscription):
        statement.rest(connection, subscription[1])
        connection.commit()
    return rest_one


@pytest.fixture
def wake(db, connect):
    """The time has come for all that rest until some time."""
    connection = connect()

    def wake_all():
        db.execute("UPDATE postrider.turn SET wake_at = now() WHERE wake_at IS NOT NULL")
        statement.statement(connection, "turn_wake", 1000, None)
        connection.commit()
    return wake_all


def in_flight(db):
    return db.value("SELECT count(lease_token) FROM postrider.lane")


def turn(db):
    return db.rows("SELECT rest, circuit FROM postrider.turn")[0]


def at_once(db, first, second):
    """Run `second`, which waits for the first's transaction; then commit that."""
    raised = []

    def run():
        try:
            second()
        except BaseException as error:  # handed on to the test
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                           " AND datname = current_database()") == 1, "the second waits")
    first.commit()
    thread.join()
    if raised:
        raise raised[0]


def record_in_halves(db, connect, subscription, leases, verdict="delivered"):
    """Two records of half the leases each, of which neither sees the other's."""
    first, second = connect(), connect()
    half = len(leases) // 2
    for connection, part in ((first, leases[:half]), (second, leases[half:])):
        for lease in part:
            record(connection, *lease, verdict)
    settle(first, subscription[1], leases[0][0])
    at_once(db, first, lambda: settle(second, subscription[1], leases[-1][0]))
    second.commit()


# -- in flight --

def test_two_records_at_once_wake_a_turn_that_was_above_its_limit(
        db, connect, subscribe, put, claim, rest):
    """Neither sees the slots that the other made free."""
    subscription = subscribe(max_in_flight=4)
    put(subscription, *"abcd")
    leases = claim()
    put(subscription, "e")
    db.execute("UPDATE postrider.subscription SET max_in_flight = 2, version = version + 1")
    rest(subscription)
    assert turn(db)[0] == "limit"
    record_in_halves(db, connect, subscription, leases)
    assert in_flight(db) == 0
    assert turn(db)[0] is None, "lane e is due, and nothing is left to wake the turn"


def test_two_records_at_once_wake_a_turn_whose_probe_waits_for_the_last_to_end(
        db, connect, subscribe, put, claim, conclude, rest, wake):
    subscription = subscribe(circuit_after=1)
    put(subscription, *"abcde")
    first, *leases = claim()
    conclude(subscription, first, "retry", -1, 60_000_000)
    assert turn(db) == ("circuit", "open")
    put(subscription, "f")
    wake()
    rest(subscription)
    assert turn(db) == ("limit", "open")
    record_in_halves(db, connect, subscription, leases, "release")
    assert turn(db) == (None, "open")


def test_a_lease_counts_until_its_outcome_is_recorded(
        db, connect, subscribe, put, claim, rest):
    """Also when it has run out, was taken over, and has run out again."""
    subscription = subscribe(max_in_flight=20)
    put(subscription, *(f"a{n}" for n in range(60)))
    assert len(claim()) == 20, "enough to remember from where leases are counted"
    connection = connect()
    for _ in range(2):
        db.execute("UPDATE postrider.lane SET lease_until = now(), look_at = now()"
                   " WHERE lease_token IS NOT NULL")
        assert claim() == []
        statement.statement(connection, "lane_reclaim", "other", 200, MARGIN, None)
        connection.commit()
        assert claim() == []
        db.execute("UPDATE postrider.turn SET swept_at = '-infinity'")
    rest(subscription)
    assert turn(db)[0] == "limit" and in_flight(db) == 20


def test_dispatchers_with_different_margins_keep_one_limit(db, subscribe, put, claim):
    subscription = subscribe(max_in_flight=40)
    put(subscription, *(f"a{n}" for n in range(30)))
    assert len(claim(margin=3_600_000_000)) == 30
    db.execute("UPDATE postrider.turn SET swept_at = '-infinity'")
    put(subscription, *(f"b{n}" for n in range(60)))
    assert len(claim(margin=100_000)) == 10
    assert claim() == [] and in_flight(db) == 40


def test_the_limit_holds_when_the_clock_was_set_back(
        db, subscribe, put, claim, conclude, rest):
    """What is remembered is then in the future, by as much."""
    subscription = subscribe(max_in_flight=20)
    put(subscription, *(f"a{n}" for n in range(60)))
    leases = claim()
    assert len(leases) == 20
    db.execute("UPDATE postrider.turn SET swept_at = swept_at + interval '1 hour', due_from ="
               " due_from + interval '1 hour', leased_from = leased_from + interval '1 hour'")
    db.execute("UPDATE postrider.lane SET lease_until = lease_until + interval '1 hour', look_at"
               " = look_at + interval '1 hour', leased_at = leased_at + interval '1 hour'")
    (lane, token), *_ = leases
    conclude(subscription, (lane, token), "delivered")
    for _ in range(3):
        claim()
        rest(subscription)
    assert in_flight(db) == 20


def test_a_lane_that_is_due_below_the_remembered_place_is_found(
        db, subscribe, put, claim, rest, wake):
    """Its transaction took longer to commit than the others thought any would."""
    subscription = subscribe(max_in_flight=100)
    put(subscription, *(f"a{n}" for n in range(20)))
    assert len(claim()) == 20
    put(subscription, "late")
    db.execute("UPDATE postrider.lane SET due_at = due_at - interval '1 minute'"
               " WHERE due_at IS NOT NULL")
    assert claim() == []
    rest(subscription)
    assert db.value("SELECT wake_at <= now() + interval '10 seconds' FROM postrider.turn")
    db.execute("UPDATE postrider.turn SET swept_at = swept_at - interval '10 seconds'")
    wake()
    assert len(claim()) == 1


# -- the rate --

def test_a_turn_without_a_rate_does_not_rest_for_one(db, connect, subscribe, put, rest):
    """What an earlier rate has used up is of no account."""
    subscription = subscribe()
    put(subscription, "a")
    db.execute("UPDATE postrider.turn SET rate_at = now() + interval '1 minute'")
    other = connect()
    other.execute("SELECT FROM postrider.lane FOR NO KEY UPDATE")
    rest(subscription)
    assert turn(db)[0] is None


# -- the circuit --

@pytest.mark.parametrize("why", ["idle", "limit", "rate", None])
def test_a_circuit_opens_whatever_its_turn_rests_for(
        why, db, subscribe, put, claim, conclude, wake):
    subscription = subscribe(circuit_after=2)
    put(subscription, *"ab")
    leases = claim()
    db.execute("UPDATE postrider.turn SET rest = w.why, entered_at = CASE WHEN w.why IS NULL"
               " THEN now() END FROM (SELECT %s::text AS why) w", (why,))
    for lease in leases:
        conclude(subscription, lease, "retry", -1, 60_000_000)
    assert turn(db) == ("circuit", "open")
    assert 0 < db.value("SELECT extract(epoch FROM wake_at - now())::float8"
                        " FROM postrider.turn") <= 5
    wake()
    assert turn(db) == (None, "open")


def test_a_circuit_that_opens_while_paused_lets_a_probe_through_when_resumed(
        db, connect, subscribe, put, claim, conclude):
    subscription = subscribe(circuit_after=1)
    put(subscription, *"ab")
    lease, _ = claim()
    connection = connect()

    def move(action, before, after):
        statement.statement(connection, "subscription_hold", None, subscription[1])
        statement.statement(connection, "subscription_move", None, subscription[1], None, "me",
                            action, [before], after)
        connection.commit()

    move("paused", "active", "paused")
    conclude(subscription, lease, "retry", -1, 60_000_000)
    assert turn(db) == ("paused", "open")
    move("resumed", "paused", "active")
    assert turn(db) == (None, "open")


def test_the_probe_goes_once_all_that_was_under_way_is_over(
        db, subscribe, put, claim, conclude, wake):
    subscription = subscribe(circuit_after=1)
    put(subscription, *"abcd")
    first, second, *_ = leases = claim()
    assert len(leases) == 4
    for lease in leases[2:]:
        conclude(subscription, lease, "release", 0)
    conclude(subscription, first, "retry", -1, 60_000_000)
    wake()
    assert turn(db) == (None, "open") and claim() == []
    conclude(subscription, second, "release", 0)
    assert len(claim()) == 1 and claim() == []
    assert turn(db)[1] == "half_open"


def test_what_was_sent_before_the_circuit_opened_is_no_probe(
        db, subscribe, put, claim, conclude, wake):
    """A request may take longer than the circuit waits."""
    subscription = subscribe(circuit_after=1)
    put(subscription, *"ab")
    first, second = claim()
    conclude(subscription, first, "retry", -1, 60_000_000)
    wake()
    conclude(subscription, second, "retry", -1, 60_000_000)
    assert turn(db)[1] == "open"
    assert db.value("SELECT circuit_opens FROM postrider.turn") == 1, "no longer wait for it"


def test_a_probe_that_was_not_sent_is_followed_by_another(
        db, subscribe, put, claim, conclude, rest, wake):
    subscription = subscribe(circuit_after=1)
    put(subscription, *"ab")
    first, second = claim()
    conclude(subscription, first, "retry", -1, 60_000_000)
    conclude(subscription, second, "release", 0)
    wake()
    for _ in range(2):
        probe, = claim()
        rest(subscription)
        assert turn(db) == ("limit", "half_open")
        conclude(subscription, probe, "release", 0)
        assert turn(db) == (None, "half_open")


def test_an_outcome_that_is_not_ours_says_nothing_of_the_endpoint(
        db, subscribe, put, claim, conclude):
    """Its lease was lost, or it is recorded a second time, after a lost answer."""
    subscription = subscribe(circuit_after=2)
    put(subscription, "a")
    lease, = claim()
    conclude(subscription, lease, "retry", -1, 60_000_000)
    assert conclude(subscription, lease, "retry", -1, 60_000_000) == []
    assert turn(db)[1] == "closed"


# -- outcomes and leases --

def test_of_two_outcomes_of_one_lane_only_the_one_with_the_lease_counts(
        db, connect, subscribe, put, claim):
    subscription = subscribe()
    put(subscription, "a", "a")
    (lane, stale), = claim()
    fresh = db.value("UPDATE postrider.lane SET lease_token = gen_random_uuid()"
                     " RETURNING lease_token")
    connection = connect()
    rows = statement.record_all(connection, [lane, lane], [stale, fresh], ["dead", "delivered"],
                                statuses=[404, 200], hands_back=False)
    connection.commit()
    assert [row[0] for row in rows] == [2]
    assert db.rows("SELECT state FROM postrider.delivery ORDER BY id") == [
        ("delivered",), ("pending",)]


def test_two_dispatchers_take_over_a_lease_once(db, connect, subscribe, put, claim):
    subscription = subscribe()
    put(subscription, *"ab")
    claim()
    db.execute("UPDATE postrider.lane SET look_at = now(), lease_until = now()"
               " + CASE asset WHEN 'a' THEN interval '0' ELSE interval '1 minute' END")
    first, second = connect(), connect()
    taken = [statement.statement(of, "lane_reclaim", "w", 200, MARGIN, None).fetchall()
             for of in (first, second)]
    first.commit()
    second.commit()
    assert [len(rows) for rows in taken] == [1, 0]
    assert db.value("SELECT bool_and(look_at > now() AND look_at <= lease_until)"
                    " FROM postrider.lane")


def test_a_long_outage_is_caught_up_with_at_once(db, subscribe, put, claim, make_dispatch):
    """More leases have run out than one pass takes over, and a while ago."""
    subscription = subscribe(max_in_flight=1000, retry_base_ms=3600000)
    put(subscription, *(f"a{n}" for n in range(450)))
    assert len(claim()) == 450
    db.execute("UPDATE postrider.lane SET lease_until = now() - interval '2 minutes',"
               " look_at = now() - interval '2 minutes'")
    make_dispatch()
    until(lambda: in_flight(db) == 0, "all are recorded as expired", seconds=8)


def test_a_long_outage_ends_for_all_turns_at_once(db, subscribe, make_dispatch):
    """More are to wake than one pass wakes."""
    tenant, _ = subscribe()
    db.execute("INSERT INTO postrider.subscription (tenant_id, url) SELECT %s,"
               " 'https://example.com/' FROM generate_series(1, 2500)", (tenant,))
    db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id, rest, wake_at)"
               " SELECT id, tenant_id, 'idle', now() - interval '2 minutes'"
               " FROM postrider.subscription ON CONFLICT DO NOTHING")
    make_dispatch()
    until(lambda: db.value("SELECT count(*) FROM postrider.turn WHERE wake_at < now()") == 0,
          "all have been awake", seconds=8)


def test_a_change_and_a_record_that_disables_do_not_wait_for_each_other(
        db, connect, subscribe, put, claim):
    subscription = subscribe()
    put(subscription, "a")
    (lane, token), = claim()
    changing, recording = connect(), connect()
    statement.statement(changing, "subscription_hold", None, subscription[1])

    def disable():
        record(recording, lane, token, "dead", statuses=[410], disables=True)
        settle(recording, subscription[1], lane, -1)
        recording.commit()

    at_once(db, changing, disable)
    assert db.value("SELECT state FROM postrider.subscription") == "disabled"


# -- replays --

@pytest.fixture
def lane(db, subscribe, put):
    """A lane of three deliveries: subscription, lane, deliveries."""
    subscription = subscribe()
    put(subscription, "a", "a", "a")
    made = db.value("SELECT id FROM postrider.lane")
    return subscription, made, [row[0] for row in db.rows(
        "SELECT id FROM postrider.delivery ORDER BY id")]


def send_again(db, lane_id, delivery, attempts=0):
    db.execute("UPDATE postrider.delivery SET state = 'pending', finished_at = NULL, generation ="
               " generation + 1, attempts = %s WHERE id = %s", (attempts, delivery))
    db.execute("INSERT INTO postrider.replay VALUES (%s, %s)", (lane_id, delivery))


def lane_now(db):
    return db.rows("SELECT head_id, resume_id, attempts FROM postrider.lane")


def test_a_head_that_waits_gives_way_to_an_earlier_replay_and_goes_on_counting(
        db, lane, claim, conclude):
    subscription, lane_id, (one, two, three) = lane
    conclude(subscription, *claim(), "delivered")
    conclude(subscription, (lane_id, db.value("SELECT lease_token FROM postrider.lane")), "retry")
    assert lane_now(db) == [(two, None, 1)]
    lease, = claim()
    send_again(db, lane_id, one)
    conclude(subscription, lease, "retry", wait_us=60_000_000)
    assert lane_now(db) == [(one, two, 0)]
    conclude(subscription, *claim(), "delivered")
    assert lane_now(db) == [(two, None, 2)]
    assert db.value("SELECT due_at > now() + interval '50 seconds' FROM postrider.lane")
    db.execute("UPDATE postrider.lane SET due_at = now()")
    conclude(subscription, *claim(), "delivered")
    assert lane_now(db)[0][0] == three
    assert db.value("SELECT count(*) FROM postrider.replay") == 0


def test_a_replay_gives_way_to_an_earlier_one_and_comes_back(db, lane, claim, conclude):
    subscription, lane_id, (one, two, three) = lane
    db.execute("UPDATE postrider.delivery SET state = 'dead' WHERE id = %s", (one,))
    db.execute("UPDATE postrider.lane SET head_id = %s, resume_id = %s", (two, three))
    lease, = claim()
    send_again(db, lane_id, one)
    conclude(subscription, lease, "retry", wait_us=60_000_000)
    assert lane_now(db) == [(one, three, 0)]
    assert db.rows("SELECT delivery_id FROM postrider.replay") == [(two,)]
    conclude(subscription, *claim(), "delivered")
    assert lane_now(db) == [(two, three, 1)]
    conclude(subscription, *claim(), "delivered")
    assert lane_now(db)[0][:2] == (three, None)


def test_a_replay_whose_delivery_is_gone_keeps_no_other_from_being_sent(
        db, lane, claim, conclude):
    subscription, lane_id, (one, two, three) = lane
    db.execute("UPDATE postrider.delivery SET state = 'dead' WHERE id < %s", (three,))
    db.execute("UPDATE postrider.lane SET head_id = %s", (three,))
    lease, = claim()
    for delivery in (one, two):
        send_again(db, lane_id, delivery)
    db.execute("DELETE FROM postrider.delivery WHERE id = %s", (one,))
    conclude(subscription, lease, "delivered")
    assert [row[0] for row in lane_now(db)] == [two]
