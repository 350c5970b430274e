"""What was delivered long ago, or a moment ago, and is still on record."""

STEP = 100_000

FINISHED = """
WITH made AS (
    INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, asset, fingerprint,
                                 body, accepted_at)
    SELECT 1, 1, 'old-' || g, 'reading', 'pump-' || g %% 1000, sha256(g::text::bytea),
           convert_to(repeat('x', %(octets)s), 'UTF8'), now() - %(age)s::interval
      FROM generate_series(%(first)s::bigint, %(last)s) g
    RETURNING event_no
)
INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id, state, status,
                                attempts, finished_at, duration_us, wait_us, receive_us,
                                worker, remote)
SELECT nextval('postrider.position'), event_no, 1, event_no %% 1000, 'delivered', 200, 1,
       now() - %(age)s::interval, 1000, 900, 50, 'a host:1:2', '192.0.2.1'
  FROM made
"""


def load(db, deliveries, age, octets):
    """So many finished ones of the first tenant's first subscription, ready to be used."""
    for first in range(1, deliveries + 1, STEP):
        db.execute(FINISHED, {"first": first, "last": min(first + STEP - 1, deliveries),
                              "age": age, "octets": octets})
    db.execute("VACUUM ANALYZE")
    db.execute("CHECKPOINT")
