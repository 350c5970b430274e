-- history_list: what was tried lately, period by period.
--
--   $1 bigint    tenant, or null for whichever
--   $2 text      the tenant's name, or null; null with $1: all tenants
--   $3 bigint    subscription, or null for all
--   $4 integer   seconds in a period: 60 or 900
--   $5 integer   how many periods, up to now
--
-- Returns one row a period, oldest first; none if there is no such tenant, or it
-- has no such subscription.  Times are in microseconds since 1970; `until` is up
-- to when all is counted, null if nothing is yet.
--
-- What it says is what the view `history` says.

WITH scope AS MATERIALIZED (
    SELECT n.id AS tenant_id, n.name AS tenant, s.id AS subscription_id
      FROM postrider.subscription s
      JOIN postrider.tenant n ON n.id = ANY (ARRAY[s.tenant_id])
     WHERE s.id = $3
       AND s.state <> 'deleted'
       AND ($1::bigint IS NULL OR s.tenant_id = $1)
       AND ($2::text IS NULL OR n.name = $2)
     UNION ALL
    SELECT id, name, 0
      FROM postrider.tenant
     WHERE $3::bigint IS NULL
       AND id = $1
     UNION ALL
    SELECT id, name, 0
      FROM postrider.tenant
     WHERE $3 IS NULL
       AND $1 IS NULL
       AND name = $2
     UNION ALL
    SELECT 0, NULL, 0
     WHERE $3 IS NULL
       AND $1 IS NULL
       AND $2 IS NULL
), periods AS MATERIALIZED (
    SELECT date_bin($4::integer * interval '1 second', statement_timestamp(),
                    timestamptz '2000-01-01 00:00:00+00')
           - n * $4 * interval '1 second' AS at
      FROM generate_series(0, $5::integer - 1) n
)
SELECT x.tenant,
       nullif(x.subscription_id, 0) AS subscription_id,
       (extract(epoch FROM (SELECT until FROM postrider.history_reach))
        * 1000000)::bigint AS until,
       (extract(epoch FROM p.at) * 1000000)::bigint AS at,
       coalesce(h.delivered, 0) AS delivered,
       coalesce(h.failed, 0) AS failed,
       coalesce(h.dead, 0) AS dead,
       h.success::text AS success,
       CASE
           WHEN h.attempt_p50 IS NOT NULL
           THEN json_build_object('p50', h.attempt_p50, 'p95', h.attempt_p95,
                                  'p99', h.attempt_p99)::text
       END AS attempt_ms,
       CASE
           WHEN h.delivery_p50 IS NOT NULL
           THEN json_build_object('p50', h.delivery_p50, 'p95', h.delivery_p95,
                                  'p99', h.delivery_p99)::text
       END AS delivery_ms
  FROM scope x
 CROSS JOIN periods p
  LEFT JOIN LATERAL (
       SELECT *
         FROM postrider.history
        WHERE subscription_id = postrider.by_index(x.subscription_id)
          AND seconds = $4
          AND at = p.at
          AND tenant_id = x.tenant_id
       OFFSET 0) h ON true
 ORDER BY p.at;
