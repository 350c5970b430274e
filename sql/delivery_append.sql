-- delivery_append: put deliveries of new events at the tails of their lanes.
--
--   $1 bigint[]  tenant
--   $2 text[]    event id
--   $3 bigint[]  subscription
--   $4 text[]    asset
--
-- In the order in which they are to be sent.  Events that this transaction did
-- not accept itself are passed over.  At most 1000 for one lane: the block of
-- positions that it takes.
--
-- The upsert takes each lane's row lock, in one order for all; the position of
-- a lane that stands already is drawn after that, and the lock lasts until the
-- commit.  So order is commit order, even when two transactions race.
--
-- The last join is FULL though every row has its partner: only hash and merge
-- joins can be, and the nested loop that the planner takes for what it thinks
-- are ten rows costs the square of the batch.

WITH given AS MATERIALIZED (
    SELECT e.event_no,
           g.subscription_id,
           g.asset,
           row_number() OVER lane_order - 1 AS nth,
           count(*) OVER lane AS n,
           first_value(e.event_no) OVER lane_order AS first_event_no
      FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])
           WITH ORDINALITY
           AS g (tenant_id, event_id, subscription_id, asset, ord)
     CROSS JOIN LATERAL (
           SELECT event_no
             FROM postrider.event
            WHERE tenant_id = g.tenant_id
              AND event_id = g.event_id
              AND xmin = pg_current_xact_id()::xid
           OFFSET 0) e
    WINDOW lane AS (PARTITION BY g.subscription_id, g.asset),
           lane_order AS (lane ORDER BY g.ord)
), appended AS (
    INSERT INTO postrider.lane AS l
           (id, subscription_id, asset, head_id, tail_id, head_event_no,
            due_at)
    SELECT f.first_id, f.subscription_id, f.asset, f.first_id,
           f.first_id + f.n - 1, f.first_event_no, statement_timestamp()
      FROM (SELECT nextval('postrider.position') AS first_id,
                   subscription_id, asset, n, first_event_no
              FROM given
             WHERE nth = 0
             ORDER BY subscription_id, asset COLLATE "C") f
        ON CONFLICT (subscription_id, asset) WHERE asset IS NOT NULL
        DO UPDATE
       SET tail_id = nextval('postrider.position')
                     + EXCLUDED.tail_id - EXCLUDED.head_id
    RETURNING l.id, l.subscription_id, l.asset, l.tail_id
)
INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id)
SELECT a.tail_id - g.n + 1 + g.nth, g.event_no, g.subscription_id, a.id
  FROM given g
  FULL JOIN appended a
    ON a.subscription_id = g.subscription_id
   AND a.asset = g.asset;
