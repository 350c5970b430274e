"""What a queue may be full of.

A shape is many rows of a kind that cannot be sent now, or that other claims
leave behind, beside SENDABLE lanes that can be sent.  The benchmark builds each
with a thousand and with a million rows, the tests with fewer.
"""

import random
from dataclasses import dataclass
from typing import Callable

chance = random.Random(1)

SENDABLE = 100
LIMIT = 100  # in flight, of what is at its limit
CHURN = 200  # lanes claimed and recorded at a time while vacuum is held back
DAY = 86_400_000_000  # microseconds

# Two subscriptions of every shape: whose lanes can be sent, and whose are many.
# Ours has the last turn of its tenant: a walk of the round comes past all others.
OURS, OTHER = 1_000_000, 1


# -- rows --

def tenants(db, n=1):
    """n more tenants; returns their ids."""
    return [row[0] for row in db.rows(
        "INSERT INTO postrider.tenant (name) SELECT 'tenant-' || m + g"
        " FROM (SELECT count(*) AS m FROM postrider.tenant) t,"
        " generate_series(1, %s) g RETURNING id", (n,))]


def subscriptions(db, owners, n):
    """n more subscriptions in the round, shared out among the owners; their ids."""
    made = [row[0] for row in db.rows(
        "INSERT INTO postrider.subscription (tenant_id, url, max_in_flight)"
        " SELECT (%(owners)s::bigint[])[1 + g %% cardinality(%(owners)s)],"
        " 'https://example.com/', 10000 FROM generate_series(0, %(n)s - 1) g RETURNING id",
        {"owners": owners, "n": n})]
    db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id, rest, entered_at)"
               " SELECT id, tenant_id, NULL, clock_timestamp() FROM postrider.subscription"
               " WHERE id = ANY (%s)", (made,))
    return made


ENQUEUE = """
WITH fresh AS MATERIALIZED (
    SELECT g,
           %(base)s + 2000 * g AS event_no,
           %(base)s + 2000 * g + 1000 AS id,
           %(base)s + 2000 * (g - g %% %(deep)s) + 1000 AS lane_id,
           s.id AS subscription_id,
           s.tenant_id
      FROM generate_series(0::bigint, %(n)s - 1) g
      JOIN postrider.subscription s
        ON s.id = (%(to)s::bigint[])[1 + g / %(deep)s %% cardinality(%(to)s)]
), accepted AS (
    INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type,
                                 asset, fingerprint, body)
    SELECT event_no, tenant_id, 1, event_no, 'reading', lane_id,
           sha256(event_no::text::bytea), '{"data": {"pressure": 4.2}}'
      FROM fresh
), queued AS (
    INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id,
                                    state, finished_at)
    SELECT id, event_no, subscription_id, lane_id, %(state)s,
           CASE WHEN %(state)s <> 'pending' THEN now() END
      FROM fresh
), buried AS (
    INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)
    SELECT id, subscription_id, 'HTTP status 400'
      FROM fresh
     WHERE %(state)s = 'dead'
)
INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id,
                            head_event_no, due_at, asset)
SELECT id, subscription_id, id,
       %(base)s + 2000 * (least(g + %(deep)s, %(n)s) - 1) + 1000,
       event_no,
       now() + %(due_in)s::interval - (%(n)s - g) * interval '0.1 ms', lane_id
  FROM fresh
 WHERE id = lane_id
   AND %(state)s = 'pending'
"""


def enqueue(db, to, n, due_in="0 s", deep=1, state="pending"):
    """n deliveries for the subscriptions in turn, `deep` to a lane."""
    base = db.value("SELECT setval('postrider.position', nextval('postrider.position')"
                    " + 2000 * %(n)s::bigint) - 2000 * %(n)s::bigint", {"n": n})
    db.execute(ENQUEUE, {"base": base, "to": to, "n": n, "due_in": due_in, "deep": deep,
                         "state": state})


# -- loads: many rows, of OTHER if not of OURS --

def one_asset(db, n):
    enqueue(db, [OTHER], n, deep=n)


def lanes(db, n):
    enqueue(db, [OTHER], n)


def later(db, n):
    enqueue(db, [OTHER], n, due_in="1 day")


def ours(db, n):
    enqueue(db, [OURS], n)


def ours_later(db, n):
    enqueue(db, [OURS], n, due_in="1 day")


def finished(db, n):
    enqueue(db, [OTHER], n, state="delivered")


def dead(db, n):
    enqueue(db, [OTHER], n, state="dead")


def many(n):
    """How many share n lanes: no fewer than have a turn in one pass, or cost could but grow."""
    return min(max(n // 10, 100), 10_000)


def many_subscriptions(db, n):
    enqueue(db, subscriptions(db, [1], many(n)), n)


def many_tenants(db, n):
    enqueue(db, subscriptions(db, tenants(db, many(n)), many(n)), n)


# -- states: what OTHER is like --

def turn(db, **columns):
    for name, value in columns.items():
        db.execute(f"UPDATE postrider.turn SET {name} = %s WHERE subscription_id = {OTHER}",
                   (value,))


def rest(db, why, **columns):
    turn(db, **columns)
    db.execute("UPDATE postrider.turn SET rest = %s, entered_at = NULL"
               f" WHERE subscription_id = {OTHER}", (why,))


def subscription(db, **columns):
    for name, value in columns.items():
        db.execute(f"UPDATE postrider.subscription SET {name} = %s WHERE id = {OTHER}", (value,))


def in_the_round(_db):
    pass


def idle(db):
    rest(db, "idle")


def waiting(db):
    rest(db, "idle", wake_at="tomorrow")


def paused(db):
    subscription(db, state="paused")
    rest(db, "paused")


def full(db):
    """All that it may have in flight is so, with a worker that takes its time."""
    subscription(db, max_in_flight=LIMIT)
    db.execute(
        "UPDATE postrider.lane SET due_at = NULL, lease_worker = 'busy',"
        " lease_token = gen_random_uuid(), lease_until = now() + interval '1 hour',"
        " look_at = now() + interval '1 hour', leased_at = now() WHERE id IN"
        " (SELECT id FROM postrider.lane WHERE subscription_id = %s ORDER BY due_at, id"
        " LIMIT %s)", (OTHER, LIMIT))


def at_its_limit(db):
    full(db)
    rest(db, "limit")


def spent(db):
    """All that its rate allows until tomorrow was sent."""
    subscription(db, rate_per_second=1)
    turn(db, rate_at="tomorrow")


def at_its_rate(db):
    spent(db)
    rest(db, "rate", wake_at="tomorrow")


def circuit_open(db):
    rest(db, "circuit", wake_at="tomorrow", circuit="open", circuit_opens=1, failures=20)


def slowed_down(db):
    rest(db, "slowed", wake_at="tomorrow", slowed_to=1)


def full_for_now(db):
    """Of an endpoint that is slowed down to what it has in flight."""
    full(db)
    subscription(db, max_in_flight=10000)
    turn(db, slowed_to=LIMIT)


@dataclass(frozen=True)
class Shape:
    name: str
    load: Callable        # many rows: (db, n)
    state: Callable       # of OTHER: (db)
    churns: bool = False  # vacuum is held back while the many are claimed and recorded


# Shapes of the same load stand together: the benchmark loads once for them.
SHAPES = (
    Shape("one_asset", one_asset, in_the_round),
    Shape("ready", lanes, in_the_round),
    Shape("paused", lanes, paused),
    Shape("at_its_limit", lanes, at_its_limit),
    Shape("at_its_limit_in_the_round", lanes, full),
    Shape("at_its_rate", lanes, at_its_rate),
    Shape("at_its_rate_in_the_round", lanes, spent),
    Shape("circuit_open", lanes, circuit_open),
    Shape("slowed_down", lanes, slowed_down),
    Shape("slowed_down_in_the_round", lanes, full_for_now),
    Shape("waiting_for_a_retry", later, waiting),
    Shape("waiting_beside_the_sendable", ours_later, idle),
    Shape("many_subscriptions", many_subscriptions, idle),
    Shape("held_back_many_subscriptions", many_subscriptions, idle, churns=True),
    Shape("many_tenants", many_tenants, idle),
    Shape("finished", finished, idle),
    Shape("dead", dead, idle),
    Shape("held_back", ours, idle, churns=True),
)


# -- what is done to each --

def found(db):
    """The tenant and the two subscriptions of every shape."""
    owner = tenants(db)
    for first in (OURS, OTHER):
        db.execute("SELECT setval('postrider.subscription_id_seq', %s, false)", (first,))
        subscriptions(db, owner, 1)


def offer(db):
    """Lanes of OURS that can be sent, and OURS in the round."""
    enqueue(db, [OURS], SENDABLE)
    wake(db, [OURS])


def wake(db, taken):
    db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = clock_timestamp(),"
               " wake_at = NULL"
               " WHERE subscription_id = ANY (%s) AND rest IS NOT NULL", (taken,))


def refill(db, leases):
    """A new lane for each that was leased and is gone."""
    left = {row[0] for row in db.rows(
        "SELECT id FROM postrider.lane WHERE id = ANY (%s)", ([x.lane for x in leases],))}
    gone = [x.subscription for x in leases if x.lane not in left]
    if gone:
        enqueue(db, gone, len(gone))


def hold_back_vacuum(connection):
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT")


def verdicts(leases):
    """One for each: some fail, but never so many in a row that a circuit opens."""
    return ["retry" if chance.random() < 0.25 else "delivered" for _ in leases]


def churn(dispatcher):
    """Claim and record all there is, which leaves behind what vacuum may not take away.

    What is to be tried again waits until tomorrow.
    """
    while taken := dispatcher.claim(CHURN):
        leases = dispatcher.leases()
        vain = set(taken) - {lease.subscription for lease in leases}
        if vain:
            dispatcher.rest(sorted(vain))
        if leases:
            dispatcher.record(leases, verdicts(leases), wait=DAY, hands_back=False)
