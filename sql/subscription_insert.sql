-- subscription_insert: register an endpoint, with its secret and its turn.
--
--   $1 bigint    id, from subscription_id
--   $2 bigint    tenant
--   $3 text      URL in canonical form
--   $4 text[]    event types
--   $5 text      ordering, or null for the default; so are all that follow
--   $6 text      on_dead
--   $7 boolean   older_signature
--   $8 integer   max_attempts
--   $9 integer   max_in_flight
--   $10 integer  retry_base_ms
--   $11 integer  retry_cap_ms
--   $12 integer  timeout_ms
--   $13 text     id of the key that seals the secret
--   $14 bytea    nonce
--   $15 bytea    sealed secret
--   $16 text     actor, for the audit
--
-- Returns the subscription as subscription_get does.

WITH made AS (
    INSERT INTO postrider.subscription
           (id, tenant_id, url, event_types, ordering, on_dead,
            older_signature, max_attempts, max_in_flight, retry_base_ms,
            retry_cap_ms, timeout_ms)
    VALUES ($1, $2, $3, $4::text[],
            coalesce($5::text, 'asset'),
            coalesce($6::text, 'skip'),
            coalesce($7::boolean, false),
            coalesce($8::integer, 12),
            coalesce($9::integer, 100),
            coalesce($10::integer, least(5000, $11::integer)),
            coalesce($11::integer, greatest(3600000, $10::integer)),
            coalesce($12::integer, 10000))
    RETURNING *
), patterns AS (
    INSERT INTO postrider.subscription_pattern
           (tenant_id, pattern, subscription_id)
    SELECT DISTINCT tenant_id, unnest(event_types), id
      FROM made
), secret AS (
    INSERT INTO postrider.subscription_secret
           (subscription_id, key_id, nonce, sealed)
    SELECT id, $13::text, $14::bytea, $15::bytea
      FROM made
), turn AS (
    INSERT INTO postrider.turn (subscription_id)
    SELECT id
      FROM made
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $16::text, tenant_id, 'subscription.created', id::text,
           jsonb_build_object('url', url, 'event_types', event_types)
      FROM made
), told AS MATERIALIZED (
    SELECT pg_notify('postrider_work', '')
)
SELECT made.id, made.url, array_to_json(made.event_types)::text AS event_types,
       made.state, made.state_reason, made.ordering, made.on_dead,
       made.older_signature, made.max_attempts, made.max_in_flight,
       made.retry_base_ms, made.retry_cap_ms, made.timeout_ms, made.version,
       (extract(epoch FROM made.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM made.updated_at) * 1000000)::bigint AS updated_at
  FROM made, told;
