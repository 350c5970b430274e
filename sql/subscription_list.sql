-- subscription_list: the subscriptions of a tenant, oldest first.
--
--   $1 bigint    tenant
--   $2 bigint    after this id: 0 for the first page
--   $3 integer   most rows
--
-- Returns rows as subscription_get does.

SELECT id, url, array_to_json(event_types)::text AS event_types,
       state, state_reason, ordering, on_dead, older_signature,
       max_attempts, max_in_flight, retry_base_ms, retry_cap_ms, timeout_ms,
       rate_per_second::text AS rate_per_second, circuit_after, version,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM updated_at) * 1000000)::bigint AS updated_at
  FROM postrider.subscription
 WHERE tenant_id = $1
   AND id > $2
   AND state <> 'deleted'
 ORDER BY id
 LIMIT $3::integer;
