"""Transactions of the queue that meet: who waits, in which order, and who is woken."""

import threading

import pytest

from . import statement
from .statement import accept, announce, append, record, settle
from .wait import until


@pytest.fixture
def subscription(db):
    """One subscription, and its tenant: (tenant, subscription)."""
    tenant = db.value("INSERT INTO postrider.tenant (name) VALUES ('acme') RETURNING id")
    made = db.value("INSERT INTO postrider.subscription (tenant_id, url) VALUES (%s,"
                    " 'https://example.com/') RETURNING id", (tenant,))
    db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id) VALUES (%s, %s)",
               (made, tenant))
    return tenant, made


@pytest.fixture
def sessions(db, cluster):
    """Two connections, each with a transaction of its own."""
    with cluster.connect(db.name) as first, cluster.connect(db.name) as second:
        for connection in (first, second):
            connection.autocommit = False
            connection.execute("SET lock_timeout = '10s'")
            connection.commit()
        yield first, second
        for connection in (first, second):
            connection.rollback()


def waiting(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()")


def in_thread(work):
    """Start `work`; returns a function that waits for it and raises what it raised."""
    raised = []

    def run():
        try:
            work()
        except BaseException as error:  # handed on to the test
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join()
        if raised:
            raise raised[0]
    return join


def put(db, cluster, subscription, *assets):
    """One event for each asset."""
    with cluster.connect(db.name) as connection, connection.transaction():
        for asset in assets:
            accept(connection, *subscription, f"{asset}-{len(assets)}", asset)


def claim(db, cluster):
    """Lease all that is due, as one dispatcher; returns {asset: (lane, token)}."""
    with cluster.connect(db.name) as connection, connection.transaction():
        statement.claim(connection)
    return {asset: (lane, token) for asset, lane, token in db.rows(
        "SELECT asset, id, lease_token FROM postrider.lane WHERE lease_token IS NOT NULL")}


def rest(db, cluster, subscription):
    with cluster.connect(db.name) as connection, connection.transaction():
        statement.rest(connection, subscription)


def turn(db):
    """Why the turn rests, and in how many seconds it wakes."""
    return db.rows("SELECT rest, extract(epoch FROM wake_at - now())::float8"
                   " FROM postrider.turn")[0]


def test_a_record_locks_lanes_in_the_order_of_acceptance(db, cluster, subscription, sessions):
    """Whatever the order of its outcomes; else the two wait for each other."""
    first, second = sessions
    put(db, cluster, subscription, "a", "b")
    leases = claim(db, cluster)
    append(first, *subscription, "next-a", "a")
    join = in_thread(lambda: statement.statement(
        second, "lane_hold", [leases[asset][0] for asset in "ba"]))
    until(lambda: waiting(db) == 1, "the record waits for lane a")
    append(first, *subscription, "next-b", "b")
    first.commit()
    join()


def test_two_records_at_once_wake_for_the_earlier_lane(db, cluster, subscription, sessions):
    """The later one does not see the lane of the other, whose row it waits for."""
    first, second = sessions
    put(db, cluster, subscription, "a", "b")
    leases = claim(db, cluster)
    rest(db, cluster, subscription[1])
    assert turn(db)[0] == "idle"
    record(first, *leases["a"], "retry", 1_000_000)
    settle(first, subscription[1], leases["a"][0])
    record(second, *leases["b"], "retry", 60_000_000)
    join = in_thread(lambda: settle(second, subscription[1], leases["b"][0]))
    until(lambda: waiting(db) == 1, "the second waits for the turn")
    first.commit()
    join()
    second.commit()
    why, wakes_in = turn(db)
    assert why == "idle" and wakes_in <= 1


def test_work_that_comes_while_a_slot_falls_free_is_not_forgotten(
        db, cluster, subscription, sessions):
    """A turn at its limit has no work for the record, and is none of acceptance's."""
    first, second = sessions
    db.execute("UPDATE postrider.subscription SET max_in_flight = 1")
    put(db, cluster, subscription, "a")
    leases = claim(db, cluster)
    rest(db, cluster, subscription[1])
    assert turn(db) == ("limit", None)
    append(first, *subscription, "b", "b")
    record(second, *leases["a"], "delivered", 0)
    settle(second, subscription[1], leases["a"][0])
    announce(first)
    first.commit()
    second.commit()
    rest(db, cluster, subscription[1])
    assert turn(db) == (None, None), "in the round: lane b is due"


def test_a_slot_that_is_handed_back_does_not_wake_a_turn_at_its_limit(
        db, cluster, subscription):
    db.execute("UPDATE postrider.subscription SET max_in_flight = 1")
    put(db, cluster, subscription, "a")
    leases = claim(db, cluster)
    put(db, cluster, subscription, "a", "a2")
    rest(db, cluster, subscription[1])
    assert turn(db) == ("limit", None)
    with cluster.connect(db.name) as connection, connection.transaction():
        record(connection, *leases["a"], "delivered", 0)
        settle(connection, subscription[1], leases["a"][0])
    assert db.value("SELECT count(lease_token) FROM postrider.lane") == 1, "handed back"
    assert turn(db) == ("limit", None)


def test_a_turn_that_gets_work_is_not_waited_for(db, cluster, subscription, sessions):
    """Letting it rest can be tried again; meanwhile all others would wait."""
    first, second = sessions
    put(db, cluster, subscription, "a")
    claim(db, cluster)
    append(first, *subscription, "b", "b")
    announce(first)
    second.execute("SET lock_timeout = '1s'")
    statement.statement(second, "turn_exclude", [subscription[1]])
    first.commit()
    statement.statement(second, "turn_rest", [subscription[1]])
    second.commit()
    assert turn(db) == (None, None)


def test_what_could_not_be_excluded_does_not_rest(db, cluster, subscription, sessions):
    """Even if it looks so to the statement: what it does not see may be on its way."""
    first, second = sessions
    put(db, cluster, subscription, "a")
    claim(db, cluster)
    second.execute("SET lock_timeout = '1s'")
    append(first, *subscription, "b", "b")
    announce(first)
    statement.statement(second, "turn_exclude", [subscription[1]])
    statement.statement(second, "turn_rest", [subscription[1]])
    first.commit()
    second.commit()
    assert turn(db) == (None, None)


def busy_lane(db, cluster, subscription, held_for):
    """At a limit of one, the head of a lane with more is recorded while another lane has waited."""
    db.execute("UPDATE postrider.subscription SET max_in_flight = 1")
    put(db, cluster, subscription, "a")
    leases = claim(db, cluster)
    put(db, cluster, subscription, "a", "b")
    db.execute("UPDATE postrider.lane SET due_at = due_at - interval '10 seconds',"
               " leased_at = leased_at - %s::interval", (held_for,))
    with cluster.connect(db.name) as connection, connection.transaction():
        record(connection, *leases["a"], "delivered", 0)
        settle(connection, subscription[1], leases["a"][0])


def test_a_busy_lane_lets_its_neighbours_have_a_turn(db, cluster, subscription):
    """At the limit a lane is not handed back for ever while another has waited."""
    busy_lane(db, cluster, subscription, held_for="1 second")
    assert set(claim(db, cluster)) == {"b"}


def test_a_lane_that_was_just_claimed_goes_on(db, cluster, subscription):
    """A claim serves more than one head, also while another lane has waited."""
    busy_lane(db, cluster, subscription, held_for="-1 minute")
    assert db.value("SELECT asset FROM postrider.lane WHERE lease_token IS NOT NULL") == "a"
