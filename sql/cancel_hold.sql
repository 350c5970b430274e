-- cancel_hold: lock the next lanes of a deleted subscription.
--
--   $1 integer   most lanes
--
-- Returns nothing of interest: what follows in the same transaction is told by
-- settings, and sees all deliveries of these lanes, since only a statement that
-- begins after the locks were had does.
--
-- Lanes with an asset come first, in its order: due, held by a dead letter, or
-- leased, which are passed.  Then all that is due, lanes without an asset among
-- them.  What somebody else has locked is passed too, and waited for by nobody:
-- the walk ends with a look from the start.

WITH job AS MATERIALIZED (
    SELECT subscription_id, due_from, after_asset
      FROM postrider.cancelling
     WHERE look_at <= statement_timestamp()
     ORDER BY look_at
     LIMIT 1
       FOR UPDATE SKIP LOCKED
), by_asset AS MATERIALIZED (
    SELECT l.id
      FROM job j
     CROSS JOIN LATERAL (
           SELECT id
             FROM postrider.lane
            WHERE subscription_id = j.subscription_id
              AND asset > j.after_asset
            ORDER BY asset
            LIMIT $1::integer
              FOR NO KEY UPDATE SKIP LOCKED) l
), by_due AS MATERIALIZED (
    SELECT l.id
      FROM job j
     CROSS JOIN LATERAL (
           SELECT id
             FROM postrider.lane
            WHERE subscription_id = j.subscription_id
              AND due_at >= j.due_from
            ORDER BY due_at, id
            LIMIT CASE WHEN EXISTS (SELECT FROM by_asset) THEN 0 ELSE $1 END
              FOR NO KEY UPDATE SKIP LOCKED) l
)
SELECT set_config('postrider.cancelling',
                  coalesce((SELECT subscription_id FROM job), 0)::text, true),
       set_config('postrider.cancelling_by',
                  CASE
                      WHEN EXISTS (SELECT FROM by_asset) THEN 'asset'
                      ELSE 'due'
                  END, true),
       set_config('postrider.cancelling_lanes',
                  (ARRAY (SELECT id FROM by_asset
                           UNION ALL
                          SELECT id FROM by_due))::text, true);
