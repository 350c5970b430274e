-- turn_take: take turns: those that are asked for, and of what has just come into
-- the round as many as there is room for.
--
--   $1 integer   most subscriptions
--   $2 bigint[]  subscriptions whose turn it is, no more than that
--   $3 bigint    what came into the round after that, microseconds since 1970;
--                null: all that is in it
--
-- Returns from when on the next is to look; and, if there are any, a row for each
-- that was asked for and each that came: its tenant, null if it has left the
-- round, and whether it was taken.
--
-- What is taken stays locked, so that lane_claim counts what is in flight exactly:
-- nobody else adds to it meanwhile.  What another dispatcher is claiming for is
-- passed over.  Nothing is written: lane_claim, in the same transaction, is told
-- by a setting, and whose turn is next is for the caller to keep.
--
-- Where something holds back vacuum, every turn that ever left the round lies dead
-- in its index.  So the index is for what comes; those that stay are looked up.
-- A look begins a second before the last, for what was being committed then.

WITH asked AS MATERIALIZED (
    SELECT o.subscription_id, t.tenant_id
      FROM unnest($2::bigint[]) AS o (subscription_id)
      LEFT JOIN LATERAL (
           SELECT tenant_id
             FROM postrider.turn
            WHERE subscription_id = o.subscription_id
              AND rest IS NULL
           OFFSET 0) t ON true
), entered AS MATERIALIZED (
    SELECT subscription_id, tenant_id, entered_at
      FROM postrider.turn
     WHERE rest IS NULL
       AND entered_at > coalesce('epoch'::timestamptz
                                 + $3::bigint * interval '1 microsecond',
                                 '-infinity')
     ORDER BY entered_at
     LIMIT 10000
), wanted AS (
    SELECT subscription_id
      FROM asked
     WHERE tenant_id IS NOT NULL
     UNION ALL
    (SELECT subscription_id
       FROM entered
      WHERE subscription_id <> ALL ($2)
      ORDER BY entered_at
      LIMIT greatest($1::integer - cardinality($2), 0))
), taken AS MATERIALIZED (
    SELECT t.subscription_id
      FROM wanted w
     CROSS JOIN LATERAL (
           SELECT subscription_id
             FROM postrider.turn
            WHERE subscription_id = w.subscription_id
              AND rest IS NULL
           OFFSET 0
              FOR NO KEY UPDATE SKIP LOCKED) t
), told AS MATERIALIZED (
    SELECT subscriptions,
           set_config('postrider.taken', subscriptions::text, true)
      FROM (SELECT coalesce(array_agg(subscription_id), '{}') AS subscriptions
              FROM taken) t
)
SELECT (extract(epoch FROM l.look_from) * 1000000)::bigint AS look_from,
       r.subscription_id,
       r.tenant_id,
       r.subscription_id = ANY (told.subscriptions) AS is_taken
  FROM told
 CROSS JOIN (
       SELECT CASE
                  WHEN count(*) = 10000 THEN max(entered_at)
                  ELSE statement_timestamp() - interval '1 second'
              END AS look_from
         FROM entered) l
  LEFT JOIN (
       SELECT subscription_id, tenant_id
         FROM asked
        UNION
       SELECT subscription_id, tenant_id
         FROM entered) r ON true;
