"""Turns are fair: between tenants, and between the subscriptions of each."""

import json

import psycopg
import pytest

from .statement import statement
from .wait import until


def tenant(db, name, subscriptions, url="https://example.com/", limit=100):
    """A tenant with so many subscriptions in the round; returns its id."""
    made = db.value("INSERT INTO postrider.tenant (name) VALUES (%s) RETURNING id", (name,))
    db.execute("WITH s AS (INSERT INTO postrider.subscription (tenant_id, url, max_in_flight)"
               " SELECT %s, %s, %s FROM generate_series(1, %s) RETURNING id, tenant_id)"
               " INSERT INTO postrider.turn (subscription_id, tenant_id, rest, entered_at)"
               " SELECT id, tenant_id, NULL, clock_timestamp() FROM s", (made, url, limit, subscriptions))
    return made


def lanes(db, tenant_id, each):
    """So many due lanes for each subscription of the tenant."""
    db.execute(
        "WITH e AS (INSERT INTO postrider.event (tenant_id, fan_out, event_id, type,"
        " fingerprint, body) SELECT %(tenant)s, 1, s.id || '-' || g, 't', '\\x00', '{}'"
        " FROM postrider.subscription s, generate_series(1, %(each)s) g"
        " WHERE s.tenant_id = %(tenant)s RETURNING event_no, event_id),"
        " d AS (INSERT INTO postrider.delivery (id, event_no, subscription_id)"
        " SELECT nextval('postrider.position'), event_no, split_part(event_id, '-', 1)::bigint"
        " FROM e RETURNING id, event_no, subscription_id)"
        " INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id, head_event_no,"
        " due_at) SELECT id, subscription_id, id, id, event_no, now() FROM d",
        {"each": each, "tenant": tenant_id})


def take(connection, limit, asked, since=None):
    """Take turns; returns from when on to look next, and {subscription: row}."""
    cursor = statement(connection, "turn_take", limit, asked, since)
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, row)) for row in cursor.fetchall()]
    return rows[0]["look_from"], {row["subscription_id"]: row for row in rows
                                  if row["subscription_id"] is not None}


def taken(rows):
    return {subscription for subscription, row in rows.items() if row["is_taken"]}


def subscriptions(db, tenant_id):
    return [row[0] for row in db.rows("SELECT id FROM postrider.subscription WHERE tenant_id = %s"
                                      " ORDER BY id", (tenant_id,))]


def test_what_is_asked_for_comes_before_what_has_just_come(db, other):
    first, *rest = subscriptions(db, tenant(db, "one", 5))
    _, rows = take(other, 3, [rest[-1], rest[-2]])
    assert set(rows) == {first, *rest}, "all that came are told"
    assert taken(rows) == {rest[-1], rest[-2], first}, "and taken as far as there is room"


def test_what_came_is_told_once(db, other):
    of = tenant(db, "one", 2)
    old, new = subscriptions(db, of)
    db.execute("UPDATE postrider.turn SET entered_at = now() - interval '1 minute'")
    since, rows = take(other, 10, [])
    assert taken(rows) == {old, new}
    other.commit()
    db.execute("UPDATE postrider.turn SET entered_at = now() WHERE subscription_id = %s", (new,))
    _, rows = take(other, 10, [], since)
    assert set(rows) == {new}


def test_what_was_being_committed_during_a_look_is_found_by_the_next(db, other, cluster):
    tenant(db, "one", 1)
    db.execute("UPDATE postrider.turn SET rest = 'idle', entered_at = NULL")
    with cluster.connect(db.name) as waking, waking.transaction():
        waking.execute("UPDATE postrider.turn SET rest = NULL, entered_at = clock_timestamp()")
        since, rows = take(other, 10, [])
        assert not rows
        other.commit()
    _, rows = take(other, 10, [], since)
    assert len(taken(rows)) == 1


def test_a_look_goes_on_where_it_broke_off(db, other):
    made = set(subscriptions(db, tenant(db, "many", 10_001)))
    db.execute("UPDATE postrider.turn SET entered_at = now() - interval '1 hour'"
               " + subscription_id * interval '1 ms'")
    since, first = take(other, 200, [])
    _, second = take(other, 200, [], since)
    assert len(first) == 10_000 and set(second) == made - set(first)


def test_what_has_left_the_round_is_told(db, other):
    of = tenant(db, "one", 2)
    gone, there = subscriptions(db, of)
    db.execute("UPDATE postrider.turn SET rest = 'idle', entered_at = NULL"
               " WHERE subscription_id = %s", (gone,))
    _, rows = take(other, 10, [gone, there])
    assert (rows[gone]["tenant_id"], rows[there]["tenant_id"]) == (None, of)
    assert taken(rows) == {there}


def test_what_another_dispatcher_holds_is_passed_over(db, other, cluster):
    of = tenant(db, "one", 5)
    with cluster.connect(db.name) as first, first.transaction():
        held = taken(take(first, 2, [])[1])
        _, rows = take(other, 5, [])
    assert len(held) == 2 and len(taken(rows)) == 3 and not held & taken(rows)
    assert all(row["tenant_id"] == of for row in rows.values()), "it is still in the round"


def test_nothing_comes_into_the_round_unmarked(db):
    """What forgets when it came would be found by chance only."""
    tenant(db, "one", 1)
    db.execute("UPDATE postrider.turn SET rest = 'idle', entered_at = NULL")
    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute("UPDATE postrider.turn SET rest = NULL")


def test_a_claim_is_shared_between_tenants_not_subscriptions(db, other):
    busy = tenant(db, "busy", 30)
    quiet = tenant(db, "quiet", 1)
    for of in (busy, quiet):
        lanes(db, of, 200)
    take(other, 100, [])
    statement(other, "lane_claim", 120, "w", 5_000_000, 100_000, 0)
    other.commit()
    assert db.rows("SELECT s.tenant_id, count(*) FROM postrider.lane l JOIN"
                   " postrider.subscription s ON s.id = l.subscription_id WHERE"
                   " l.lease_token IS NOT NULL GROUP BY 1 ORDER BY 1") == [
        (busy, 60), (quiet, 60)]


def test_one_new_delivery_goes_at_once_beside_a_hundred_thousand(
        api, make_dispatch, db, make_endpoint):
    busy, fresh = make_endpoint(), make_endpoint()
    deep = tenant(db, "deep", 1, url=busy.url, limit=20)
    lanes(db, deep, 100_000)
    # No secret: each is found impossible to send, which is quicker than any server.
    db.execute("UPDATE postrider.subscription SET circuit_after = 0")
    api.subscribe(fresh.url, event_types=["fresh"])
    make_dispatch()
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") > 100, "it is busy")
    api.event({}, type="fresh")
    until(lambda: fresh.requests, "the new one is sent", seconds=5)
    assert json.loads(fresh.requests[0].body)["type"] == "fresh"
    left = db.value("SELECT count(*) FROM postrider.lane WHERE subscription_id ="
                    " (SELECT min(id) FROM postrider.subscription WHERE tenant_id = %s)",
                    (deep,))
    assert left > 50_000, "the backlog is still there"
