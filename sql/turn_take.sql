-- turn_take: whose turn it is: tenant after tenant, and of each the
-- subscriptions that follow those that had theirs.
--
--   $1 integer   most subscriptions
--   $2 bigint    the tenant that was served last
--   $3 bigint[]  tenants with more in the round than they had turns,
--   $4 bigint[]  and the subscription of each that was served last
--
-- Returns a row for each: tenant and subscription, in the order of the tenants;
-- and, for a tenant that is to go on from there, the one that was served last.
-- The rows stay locked, so that lane_claim counts what is in flight exactly:
-- nobody else adds to it meanwhile.  What another dispatcher is claiming for is
-- passed over.  Nothing is written: lane_claim, in the same transaction, is told
-- by a setting, and where to go on is for the caller to keep.
--
-- Each tenant has an even share of $1, whatever the number of its subscriptions.
-- The first of each is where the walk to it ended: what lies before may be dead.

WITH RECURSIVE beyond AS (
    SELECT 0 AS nth, $2::bigint AS tenant_id, 0::bigint AS first
     UNION ALL
    SELECT b.nth + 1, t.tenant_id, t.subscription_id
      FROM beyond b
     CROSS JOIN LATERAL (
           SELECT tenant_id, subscription_id
             FROM postrider.turn
            WHERE rest IS NULL
              AND tenant_id > b.tenant_id
            ORDER BY tenant_id, subscription_id
            LIMIT 1) t
     WHERE b.nth < $1::integer
), from_start AS (
    SELECT (SELECT max(nth) FROM beyond) AS nth, 0::bigint AS tenant_id,
           0::bigint AS first
     UNION ALL
    SELECT f.nth + 1, t.tenant_id, t.subscription_id
      FROM from_start f
     CROSS JOIN LATERAL (
           SELECT tenant_id, subscription_id
             FROM postrider.turn
            WHERE rest IS NULL
              AND tenant_id > f.tenant_id
              AND tenant_id <= $2
            ORDER BY tenant_id, subscription_id
            LIMIT 1) t
     WHERE f.nth < $1
), tenants AS MATERIALIZED (
    SELECT nth,
           tenant_id,
           first,
           greatest($1 / count(*) OVER (), 1) AS share,
           coalesce(($4::bigint[])[array_position($3::bigint[], tenant_id)],
                    0) AS after
      FROM (SELECT nth, tenant_id, first
              FROM beyond
             WHERE nth > 0
             UNION ALL
            SELECT nth, tenant_id, first
              FROM from_start
             WHERE tenant_id > 0) both_ways
), taken AS MATERIALIZED (
    SELECT n.nth, n.tenant_id, n.share, n.after, t.subscription_id
      FROM tenants n
     CROSS JOIN LATERAL (
           SELECT subscription_id
             FROM (SELECT subscription_id
                     FROM postrider.turn
                    WHERE rest IS NULL
                      AND tenant_id = n.tenant_id
                      AND subscription_id >= greatest(n.first, n.after + 1)
                    ORDER BY subscription_id
                    LIMIT n.share
                      FOR NO KEY UPDATE SKIP LOCKED) following
            UNION ALL
           SELECT subscription_id
             FROM (SELECT subscription_id
                     FROM postrider.turn
                    WHERE rest IS NULL
                      AND tenant_id = n.tenant_id
                      AND subscription_id BETWEEN n.first AND n.after
                    ORDER BY subscription_id
                    LIMIT n.share
                      FOR NO KEY UPDATE SKIP LOCKED) from_start
            LIMIT n.share) t
), told AS MATERIALIZED (
    SELECT set_config('postrider.taken',
                      coalesce(array_agg(subscription_id), '{}')::text,
                      true)
      FROM taken
)
SELECT tenant_id,
       subscription_id,
       CASE
           WHEN count(*) OVER tenant = share
           THEN coalesce(max(subscription_id)
                         FILTER (WHERE subscription_id <= after) OVER tenant,
                         max(subscription_id) OVER tenant)
       END AS last_id
  FROM taken, told
WINDOW tenant AS (PARTITION BY tenant_id)
 ORDER BY nth;
