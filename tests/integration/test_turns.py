"""Turns are fair: between tenants, and between the subscriptions of each."""

import collections
import json

from .statement import statement
from .wait import until


def tenant(db, name, subscriptions, url="https://example.com/", limit=100):
    """A tenant with so many subscriptions in the round; returns its id."""
    made = db.value("INSERT INTO postrider.tenant (name) VALUES (%s) RETURNING id", (name,))
    db.execute("WITH s AS (INSERT INTO postrider.subscription (tenant_id, url, max_in_flight)"
               " SELECT %s, %s, %s FROM generate_series(1, %s) RETURNING id, tenant_id)"
               " INSERT INTO postrider.turn (subscription_id, tenant_id, rest)"
               " SELECT id, tenant_id, NULL FROM s", (made, url, limit, subscriptions))
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


class Rota:
    """What a dispatcher remembers between its passes."""

    def __init__(self):
        self.tenant, self.after = 0, {}

    def take(self, session, limit):
        rows = statement(session, "turn_take", limit, self.tenant, list(self.after),
                         list(self.after.values())).fetchall()
        for tenant_id, _, last_id in rows:
            self.tenant = tenant_id
            self.after.pop(tenant_id, None)
            if last_id is not None:
                self.after[tenant_id] = last_id
        session.commit()
        return [(tenant_id, subscription) for tenant_id, subscription, _ in rows]


def test_a_tenant_with_many_does_not_push_away_one_with_few(db, other):
    busy = tenant(db, "busy", 10000)
    quiet = tenant(db, "quiet", 1)
    rota = Rota()
    for _ in range(10):
        taken = collections.Counter(of for of, _ in rota.take(other, 200))
        assert taken == {busy: 100, quiet: 1}


def test_all_subscriptions_of_a_tenant_have_their_turn(db, other):
    tenant(db, "one", 1000)
    tenant(db, "other", 3)
    rota = Rota()
    seen = collections.Counter()
    for _ in range(30):
        seen.update(subscription for _, subscription in rota.take(other, 200))
    turns = collections.Counter(seen.values())
    assert turns == {3: 1000, 30: 3}


def test_more_tenants_than_turns_have_theirs_one_after_the_other(db, other):
    made = [tenant(db, f"t{n}", 2) for n in range(50)]
    rota = Rota()
    served = [of for _ in range(10) for of, _ in rota.take(other, 20)]
    assert collections.Counter(served) == {of: 4 for of in made}


def test_what_another_dispatcher_holds_is_passed_over(db, other, cluster):
    tenant(db, "one", 5)
    with cluster.connect(db.name) as first, first.transaction():
        held = {row[1] for row in statement(first, "turn_take", 2, 0, [], [])}
        taken = {subscription for _, subscription in Rota().take(other, 5)}
    assert len(held) == 2 and len(taken) == 3 and not held & taken


def test_a_claim_is_shared_between_tenants_not_subscriptions(db, other):
    busy = tenant(db, "busy", 30)
    quiet = tenant(db, "quiet", 1)
    for of in (busy, quiet):
        lanes(db, of, 200)
    statement(other, "turn_take", 100, 0, [], [])
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
