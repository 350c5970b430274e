-- discard_hold: lock the lane of a delivery that is to be given up.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    delivery
--
-- Returns nothing of interest: delivery_discard, work_share and work_ready follow
-- in the same transaction, the last two told by a setting for whom: for nobody, if
-- the tenant has no such subscription.  OFFSET 0 keeps the look-up of the delivery
-- by its id: a partial index that looks empty to the planner would be walked as a
-- whole.

WITH asked AS MATERIALIZED (
    SELECT id
      FROM postrider.subscription
     WHERE id = $2
       AND state <> 'deleted'
       AND ($1::bigint IS NULL OR tenant_id = $1)
), held AS MATERIALIZED (
    SELECT l.id
      FROM asked s
     CROSS JOIN LATERAL (
           SELECT event_no, subscription_id, lane_id
             FROM postrider.delivery
            WHERE id = $3
           OFFSET 0) d
      JOIN postrider.event e ON e.event_no = ANY (ARRAY[d.event_no])
     CROSS JOIN LATERAL (
           SELECT id
             FROM postrider.lane
            WHERE subscription_id = s.id
              AND asset = e.asset
              AND asset IS NOT NULL
              FOR NO KEY UPDATE) l
     WHERE d.subscription_id = s.id
       AND d.lane_id IS NOT NULL
)
SELECT set_config('postrider.told',
                  ARRAY (SELECT id FROM asked)::text, true),
       (SELECT count(*) FROM held) AS lanes;
