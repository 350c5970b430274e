-- subscription_get: one subscription.
--
--   $1 bigint    tenant; null: whosever it is
--   $2 bigint    subscription
--
-- Returns at most one row, without any secret.

SELECT id, url, array_to_json(event_types)::text AS event_types,
       state, state_reason, ordering, on_dead, older_signature,
       max_attempts, max_in_flight, retry_base_ms, retry_cap_ms, timeout_ms,
       rate_per_second::text AS rate_per_second, circuit_after, version,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM updated_at) * 1000000)::bigint AS updated_at
  FROM postrider.subscription
 WHERE id = $2
   AND ($1::bigint IS NULL OR tenant_id = $1)
   AND state <> 'deleted';
