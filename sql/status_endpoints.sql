-- status_endpoints: subscriptions, those in most trouble first.
--
--   $1 integer   most rows
--
-- Times are in microseconds since 1970.  A subscription's row and its turn's say
-- who is in trouble; what else there is to say is asked of the views, for those
-- alone that are shown.

WITH ranked AS MATERIALIZED (
    SELECT s.id, t.failures,
           CASE
               WHEN t.circuit <> 'closed'       THEN 1
               WHEN s.state = 'disabled'        THEN 2
               WHEN t.slowed_to IS NOT NULL     THEN 3
               WHEN t.failures > 0              THEN 4
               WHEN t.rest IN ('limit', 'rate') THEN 5
               WHEN s.state = 'paused'          THEN 6
               WHEN t.rest IS NULL              THEN 7
               WHEN t.wake_at IS NOT NULL       THEN 8
               ELSE 9
           END AS rank
      FROM postrider.subscription s
     CROSS JOIN LATERAL (
           SELECT rest, circuit, failures, slowed_to, wake_at
             FROM postrider.turn
            WHERE subscription_id = s.id
           OFFSET 0) t
     WHERE s.state <> 'deleted'
     ORDER BY rank, t.failures DESC, s.id
     LIMIT $1::integer
)
SELECT r.id AS subscription_id, h.tenant, h.url, h.state, b.why,
       (extract(epoch FROM b.until) * 1000000)::bigint AS until,
       h.circuit, h.failures, h.success::text AS success, h.in_flight,
       h.in_flight_limit,
       coalesce(b.due, 0) AS due,
       h.later,
       coalesce(b.held, 0) AS held,
       h.dead,
       (extract(epoch FROM b.oldest_accepted_at) * 1000000)::bigint
           AS oldest_accepted_at,
       h.last_error
  FROM ranked r
 CROSS JOIN LATERAL (
       SELECT *
         FROM postrider.endpoint_health
        WHERE subscription_id = r.id
       OFFSET 0) h
  LEFT JOIN LATERAL (
       SELECT *
         FROM postrider.backlog
        WHERE subscription_id = r.id
       OFFSET 0) b ON true
 ORDER BY r.rank, r.failures DESC, r.id;
