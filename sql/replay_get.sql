-- replay_get: one replay of a subscription.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    replay
--
-- Returns at most one row.  Times are in microseconds since 1970; a null since
-- is from the first on, a null until is up to created_at.

SELECT j.id, j.subscription_id, j.what,
       (extract(epoch FROM nullif(j.since, '-infinity')) * 1000000)::bigint
           AS since,
       (extract(epoch FROM nullif(j.until, 'infinity')) * 1000000)::bigint
           AS until,
       j.rate_per_second, j.reached, j.examined, j.replayed, j.refused,
       j.state, j.created_by,
       (extract(epoch FROM j.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM j.finished_at) * 1000000)::bigint AS finished_at
  FROM postrider.replay_job j
  JOIN postrider.subscription s ON s.id = j.subscription_id
 WHERE j.id = $3
   AND j.subscription_id = $2
   AND s.state <> 'deleted'
   AND ($1::bigint IS NULL OR s.tenant_id = $1);
