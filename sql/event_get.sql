-- event_get: one event of a tenant with its deliveries.
--
--   $1 bigint    tenant
--   $2 text      event id
--   $3 integer   most deliveries
--
-- Returns one row a delivery, or one with a null delivery; none if the tenant
-- has no such event.  Times are in microseconds since 1970.

SELECT e.event_id, e.type, e.asset,
       (extract(epoch FROM e.accepted_at) * 1000000)::bigint AS accepted_at,
       e.fan_out,
       d.id AS delivery_id,
       d.subscription_id,
       CASE
           WHEN d.state <> 'pending'      THEN d.state
           WHEN l.id IS NULL              THEN 'pending'
           WHEN l.lease_token IS NOT NULL THEN 'delivering'
           WHEN l.attempts > 0            THEN 'retrying'
           ELSE 'pending'
       END AS state,
       coalesce(l.attempts, d.attempts) AS attempts,
       d.status
  FROM postrider.event e
  LEFT JOIN postrider.delivery d ON d.event_no = e.event_no
  LEFT JOIN postrider.lane l
    ON l.id = coalesce(d.lane_id, d.id)
   AND l.head_id = d.id
 WHERE e.tenant_id = $1
   AND e.event_id = $2
 ORDER BY d.subscription_id
 LIMIT $3::integer;
