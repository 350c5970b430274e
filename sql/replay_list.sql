-- replay_list: the replays of a subscription, newest first.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 integer   most rows
--
-- Returns rows as replay_get does; one with a null id if there are none; no row
-- if there is no such subscription.

SELECT j.id, s.id AS subscription_id, j.what,
       (extract(epoch FROM nullif(j.since, '-infinity')) * 1000000)::bigint
           AS since,
       (extract(epoch FROM nullif(j.until, 'infinity')) * 1000000)::bigint
           AS until,
       j.rate_per_second, j.reached, j.examined, j.replayed, j.refused,
       j.state, j.created_by,
       (extract(epoch FROM j.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM j.finished_at) * 1000000)::bigint AS finished_at
  FROM postrider.subscription s
  LEFT JOIN LATERAL (
       SELECT *
         FROM postrider.replay_job
        WHERE subscription_id = s.id
        ORDER BY id DESC
        LIMIT $3::integer) j ON true
 WHERE s.id = $2
   AND s.state <> 'deleted'
   AND ($1::bigint IS NULL OR s.tenant_id = $1)
 ORDER BY j.id DESC;
