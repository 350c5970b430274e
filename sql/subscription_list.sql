-- subscription_list: the subscriptions of a tenant, oldest first.
--
--   $1 bigint    tenant
--   $2 bigint    after this id: 0 for the first page
--   $3 integer   most rows
--
-- Returns rows as subscription_get does.

SELECT s.id, s.url, array_to_json(s.event_types)::text AS event_types,
       s.filter, s.state, s.state_reason, s.ordering, s.on_dead, s.older_signature,
       s.max_attempts, s.max_in_flight, s.retry_base_ms, s.retry_cap_ms,
       s.timeout_ms, s.rate_per_second::text AS rate_per_second,
       s.circuit_after, s.headers::text AS headers, k.secret_headers,
       k.public_keys, s.tls_ca, s.tls_certificate, s.version,
       (extract(epoch FROM s.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM s.updated_at) * 1000000)::bigint AS updated_at
  FROM postrider.subscription s
 CROSS JOIN LATERAL (
       SELECT coalesce(json_agg(name ORDER BY name)
                       FILTER (WHERE kind = 'header'),
                       '[]')::text AS secret_headers,
              coalesce(json_agg(public_key ORDER BY id DESC)
                       FILTER (WHERE kind = 'signing_key'
                                 AND (expires_at IS NULL
                                      OR expires_at > statement_timestamp())),
                       '[]')::text AS public_keys
         FROM postrider.subscription_secret
        WHERE subscription_id = s.id) k
 WHERE s.tenant_id = $1
   AND s.id > $2
   AND s.state <> 'deleted'
 ORDER BY s.id
 LIMIT $3::integer;
