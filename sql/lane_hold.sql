-- lane_hold: lock the lanes of outcomes.
--
--   $1 bigint[]  lanes
--
-- Returns nothing of interest.  delivery_record follows in the same
-- transaction: only a statement that begins after the lock was had sees every
-- delivery that was appended behind the head.  It also sees whose lease it is.
--
-- The lanes are put in order first and locked then: a lock taken within the
-- look-up would be had in the order of the outcomes.

WITH ours AS MATERIALIZED (
    SELECT l.lane_at
      FROM unnest($1::bigint[]) AS o (lane_id)
     CROSS JOIN LATERAL (
           SELECT ctid AS lane_at, id, subscription_id, asset
             FROM postrider.lane
            WHERE id = o.lane_id
           OFFSET 0) l
     ORDER BY l.subscription_id, l.asset COLLATE "C", l.id
)
SELECT l.id
  FROM ours o
 CROSS JOIN LATERAL (
       SELECT id
         FROM postrider.lane
        WHERE ctid = o.lane_at
          FOR NO KEY UPDATE) l;
