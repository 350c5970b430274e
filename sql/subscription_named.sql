-- subscription_named: the subscriptions that events name themselves.
--
--   $1 integer[] number of the question
--   $2 bigint[]  its tenant
--   $3 bigint[]  a subscription that it names
--
-- Returns question and subscription for those that exist for that tenant.  A
-- disabled one exists, and takes nothing.

SELECT q.question,
       s.id AS subscription_id,
       s.ordering = 'asset' AS is_ordered,
       s.state IN ('active', 'paused') AS takes_events
  FROM unnest($1::integer[], $2::bigint[], $3::bigint[])
       AS q (question, tenant_id, subscription_id)
  JOIN postrider.subscription s
    ON s.id = q.subscription_id
   AND s.tenant_id = q.tenant_id
 WHERE s.state <> 'deleted'
 ORDER BY q.question, s.id;
