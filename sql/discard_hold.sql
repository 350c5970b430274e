-- discard_hold: lock the lane of a delivery that is to be given up.
--
--   $1 bigint    subscription
--   $2 bigint    delivery
--
-- Returns nothing of interest: delivery_discard follows in the same
-- transaction.  OFFSET 0 keeps the look-up of the delivery by its id: a partial
-- index that looks empty to the planner would be walked as a whole.

SELECT l.id
  FROM (SELECT event_no, subscription_id, lane_id
          FROM postrider.delivery
         WHERE id = $2
        OFFSET 0) d
  JOIN postrider.event e ON e.event_no = d.event_no
 CROSS JOIN LATERAL (
       SELECT id
         FROM postrider.lane
        WHERE subscription_id = $1
          AND asset = e.asset
          AND asset IS NOT NULL
          FOR NO KEY UPDATE) l
 WHERE d.subscription_id = $1
   AND d.lane_id IS NOT NULL;
