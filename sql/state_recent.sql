-- state_recent: what was tried in this minute and the one before.
--
--   $1 bigint    tenant, or null for whichever
--   $2 text      the tenant's name, or null; null with $1: all tenants
--
-- Returns one row; none if there is no such tenant.  Times are in microseconds
-- since 1970; `until` is up to when all is counted, null if nothing is yet.

WITH scope AS MATERIALIZED (
    SELECT id
      FROM postrider.tenant
     WHERE id = $1::bigint
     UNION ALL
    SELECT id
      FROM postrider.tenant
     WHERE $1 IS NULL
       AND name = $2::text
     UNION ALL
    SELECT 0
     WHERE $1 IS NULL
       AND $2 IS NULL
), reach AS MATERIALIZED (
    SELECT until, date_trunc('minute', until) - interval '1 minute' AS since
      FROM postrider.history_reach
), counted AS MATERIALIZED (
    SELECT r.since, r.until,
           coalesce(a.delivered, 0) + coalesce(b.delivered, 0) AS delivered,
           coalesce(a.failed, 0) + coalesce(b.failed, 0) AS failed,
           coalesce(a.dead, 0) + coalesce(b.dead, 0) AS dead,
           postrider.histogram_sum(coalesce(a.attempt_times, '{}'),
                                   coalesce(b.attempt_times, '{}'))
               AS attempt_times,
           postrider.histogram_sum(coalesce(a.delivery_times, '{}'),
                                   coalesce(b.delivery_times, '{}'))
               AS delivery_times
      FROM scope x
     CROSS JOIN reach r
      LEFT JOIN LATERAL (
           SELECT *
             FROM postrider.history_count
            WHERE subscription_id = postrider.by_index(0::bigint)
              AND seconds = 60
              AND at = r.since
              AND tenant_id = x.id
           OFFSET 0) a ON true
      LEFT JOIN LATERAL (
           SELECT *
             FROM postrider.history_count
            WHERE subscription_id = postrider.by_index(0::bigint)
              AND seconds = 60
              AND at = r.since + interval '1 minute'
              AND tenant_id = x.id
           OFFSET 0) b ON true
)
SELECT (extract(epoch FROM since) * 1000000)::bigint AS "from",
       (extract(epoch FROM until) * 1000000)::bigint AS until,
       delivered, failed, dead,
       round(delivered / extract(epoch FROM until - since), 2)::text
           AS per_second,
       round(delivered::numeric / nullif(delivered + failed, 0), 4)::text
           AS success,
       postrider.histogram_json(attempt_times) AS attempt_ms,
       postrider.histogram_json(delivery_times) AS delivery_ms
  FROM counted;
