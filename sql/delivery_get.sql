-- delivery_get: one delivery with the attempts at it.
--
--   $1 bigint    tenant
--   $2 bigint    subscription
--   $3 bigint    delivery
--   $4 integer   most attempts
--
-- Returns one row an attempt, over all generations and in order, the latest if
-- there are more; or one with a null attempt; none if this tenant's subscription
-- has no such delivery.  Times are in microseconds since 1970.
--
-- What it says of the delivery is what the view `deliveries` says.

SELECT d.id, e.event_id, e.type, e.asset,
       CASE
           WHEN d.state <> 'pending'                    THEN d.state
           WHEN l.head_id = d.id AND l.leased_at IS NOT NULL
                                                        THEN 'delivering'
           WHEN CASE l.head_id WHEN d.id THEN l.attempts ELSE d.attempts END > 0
                                                        THEN 'retrying'
           ELSE 'pending'
       END AS state,
       CASE WHEN l.head_id <> d.id THEN 'order' ELSE l.why END AS why,
       CASE
           WHEN l.head_id = d.id
           THEN (extract(epoch FROM postrider.until(l.why, l.due_at,
                                                    l.lease_until, l.wake_at))
                 * 1000000)::bigint
       END AS until,
       nullif(l.head_id, d.id) AS behind,
       d.generation,
       CASE l.head_id WHEN d.id THEN l.attempts ELSE d.attempts END AS attempts,
       d.status,
       (extract(epoch FROM e.accepted_at) * 1000000)::bigint AS accepted_at,
       (extract(epoch FROM d.finished_at) * 1000000)::bigint AS finished_at,
       e.body IS NULL AS is_purged,
       a.generation AS tried_generation,
       a.attempt,
       (extract(epoch FROM a.started_at) * 1000000)::bigint AS started_at,
       a.duration_us, a.ended,
       a.status AS tried_status,
       a.reason, a.remote, a.dns_us, a.connect_us, a.tls_us, a.wait_us,
       a.receive_us, a.headers, a.excerpt
  FROM postrider.subscription s
 CROSS JOIN LATERAL (
       SELECT *
         FROM postrider.delivery
        WHERE id = $3
          AND subscription_id = s.id
       OFFSET 0) d
 CROSS JOIN LATERAL (
       SELECT *
         FROM postrider.event
        WHERE event_no = d.event_no
       OFFSET 0) e
  LEFT JOIN LATERAL (
       SELECT n.*, t.wake_at,
              postrider.why(n.due_at, n.leased_at, s.state, t.circuit, t.rest)
                  AS why
         FROM postrider.lane n
         LEFT JOIN postrider.turn t
           ON t.subscription_id = ANY (ARRAY[n.subscription_id])
        WHERE d.state = 'pending'
          AND n.id = coalesce(d.lane_id, d.id)
       OFFSET 0) l ON true
  LEFT JOIN LATERAL (
       SELECT *
         FROM postrider.attempt
        WHERE delivery_id = d.id
        ORDER BY generation DESC, attempt DESC
        LIMIT $4::integer) a ON true
 WHERE s.id = $2
   AND s.tenant_id = $1
   AND s.state <> 'deleted'
 ORDER BY a.generation, a.attempt;
