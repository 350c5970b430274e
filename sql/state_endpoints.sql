-- state_endpoints: subscriptions, those in most trouble first.
--
--   $1 bigint    tenant, or null for whichever
--   $2 text      the tenant's name, or null; null with $1: all tenants
--   $3 integer   most rows
--
-- Times are in microseconds since 1970; `success` is that of last_hour.
--
-- The subscription's row and its turn's say who is in trouble, and one look-up
-- whether a dead letter holds something; what else there is to say is asked of
-- the views, for those alone that are shown.

WITH who AS MATERIALIZED (
    SELECT id
      FROM postrider.tenant
     WHERE id = $1::bigint
     UNION ALL
    SELECT id
      FROM postrider.tenant
     WHERE $1 IS NULL
       AND name = $2::text
), scope AS MATERIALIZED (
    SELECT s.id, s.state
      FROM who w
     CROSS JOIN LATERAL (
           SELECT id, state
             FROM postrider.subscription
            WHERE tenant_id = w.id
              AND state <> 'deleted'
            ORDER BY id
           OFFSET 0) s
     UNION ALL
    SELECT id, state
      FROM postrider.subscription
     WHERE $1 IS NULL
       AND $2 IS NULL
       AND state <> 'deleted'
), ranked AS MATERIALIZED (
    SELECT x.id, t.rest, t.failures,
           CASE
               WHEN t.circuit <> 'closed'       THEN 1
               WHEN x.state = 'disabled'        THEN 2
               WHEN h.is_held                   THEN 3
               WHEN t.slowed_to IS NOT NULL     THEN 4
               WHEN t.failures > 0              THEN 5
               WHEN t.rest IN ('limit', 'rate') THEN 6
               WHEN x.state = 'paused'          THEN 7
               WHEN t.rest IS NULL              THEN 8
               WHEN t.wake_at IS NOT NULL       THEN 9
               ELSE 10
           END AS rank
      FROM scope x
     CROSS JOIN LATERAL (
           SELECT rest, circuit, failures, slowed_to, wake_at
             FROM postrider.turn
            WHERE subscription_id = x.id
           OFFSET 0) t
      LEFT JOIN LATERAL (
           SELECT true AS is_held
             FROM postrider.lane
            WHERE subscription_id = x.id
              AND due_at IS NULL
              AND leased_at IS NULL
            ORDER BY asset
            LIMIT 1) h ON true
     ORDER BY rank, t.failures DESC, x.id
     LIMIT $3::integer
)
SELECT r.id AS subscription_id, h.tenant, h.url, h.state, h.state_reason,
       r.rest, b.why,
       (extract(epoch FROM b.until) * 1000000)::bigint AS until,
       h.circuit,
       (extract(epoch FROM h.probe_at) * 1000000)::bigint AS probe_at,
       h.failures, h.in_flight, h.in_flight_limit, s.max_in_flight,
       h.rate_per_second::text AS rate_per_second, h.slowed_to,
       (extract(epoch FROM h.slowed_until) * 1000000)::bigint AS slowed_until,
       coalesce(b.due, 0) AS due,
       h.later,
       coalesce(b.held, 0) AS held,
       (extract(epoch FROM b.first_due_at) * 1000000)::bigint AS first_due_at,
       (extract(epoch FROM b.oldest_accepted_at) * 1000000)::bigint
           AS oldest_accepted_at,
       round(extract(epoch FROM statement_timestamp() - b.oldest_accepted_at),
             3)::text AS oldest_waiting_seconds,
       h.dead,
       c.success::text AS success,
       json_build_object('delivered', c.delivered, 'failed', c.failed,
                         'dead', c.dead, 'success', c.success)::text
           AS last_hour,
       h.last_error,
       (extract(epoch FROM h.last_error_at) * 1000000)::bigint AS last_error_at
  FROM ranked r
 CROSS JOIN LATERAL (
       SELECT *
         FROM postrider.endpoint_health
        WHERE subscription_id = r.id
       OFFSET 0) h
 CROSS JOIN LATERAL (
       SELECT max_in_flight
         FROM postrider.subscription
        WHERE id = r.id
       OFFSET 0) s
  LEFT JOIN LATERAL (
       SELECT *
         FROM postrider.backlog
        WHERE subscription_id = r.id
       OFFSET 0) b ON true
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(delivered), 0) AS delivered,
              coalesce(sum(failed), 0) AS failed,
              coalesce(sum(dead), 0) AS dead,
              round(sum(delivered)::numeric
                    / nullif(sum(delivered + failed), 0), 4) AS success
         FROM postrider.history_count
        WHERE subscription_id = postrider.by_index(r.id)
          AND seconds = 60
          AND at > statement_timestamp() - interval '1 hour') c
 ORDER BY r.rank, r.failures DESC, r.id;
