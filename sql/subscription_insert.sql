-- subscription_insert: register an endpoint, with its secrets and its turn.
--
--   $1 bigint    id, from subscription_id
--   $2 bigint    tenant
--   $3 text      actor, for the audit
--   $4 text      URL in canonical form
--   $5 text[]    event types
--   $6 text      ordering, or null for the default; so are all up to $20
--   $7 text      on_dead
--   $8 boolean   older_signature
--   $9 integer   max_attempts
--   $10 integer  max_in_flight
--   $11 integer  retry_base_ms
--   $12 integer  retry_cap_ms
--   $13 integer  timeout_ms
--   $14 text     rate_per_second, a decimal number; '': no limit
--   $15 integer  circuit_after
--   $16 text     headers, a JSON object
--   $17 text     tls_ca; '': none
--   $18 text     tls_certificate; '': none
--   $19 text     filter; '': none
--   $20 integer  filter_weight, if there is one
--   $21 text     id of the key that seals the secrets
--   $22 text[]   kind of a secret
--   $23 text[]   its header's name, or null
--   $24 text[]   its public key, or null
--   $25 bytea[]  nonce
--   $26 bytea[]  sealed secret
--
-- Returns nothing of interest: subscription_get, in the same transaction, shows
-- what was made.

WITH made AS (
    INSERT INTO postrider.subscription
           (id, tenant_id, url, event_types, ordering, on_dead,
            older_signature, max_attempts, max_in_flight, retry_base_ms,
            retry_cap_ms, timeout_ms, rate_per_second, circuit_after, headers,
            tls_ca, tls_certificate, filter, filter_weight)
    VALUES ($1, $2, $4, $5::text[],
            coalesce($6::text, 'asset'),
            coalesce($7::text, 'skip'),
            coalesce($8::boolean, false),
            coalesce($9::integer, 12),
            coalesce($10::integer, 100),
            coalesce($11::integer, least(5000, $12::integer)),
            coalesce($12::integer, greatest(3600000, $11::integer)),
            coalesce($13::integer, 10000),
            nullif($14::text, '')::double precision,
            coalesce($15::integer, 20),
            coalesce($16::text::jsonb, '{}'),
            nullif($17::text, ''),
            nullif($18::text, ''),
            nullif($19::text, ''),
            $20::integer)
    RETURNING *
), patterns AS (
    INSERT INTO postrider.subscription_pattern
           (tenant_id, pattern, subscription_id)
    SELECT DISTINCT tenant_id, unnest(event_types), id
      FROM made
), given AS MATERIALIZED (
    SELECT *
      FROM unnest($22::text[], $23::text[], $24::text[], $25::bytea[],
                  $26::bytea[])
           AS g (kind, name, public_key, nonce, sealed)
), sealed AS (
    INSERT INTO postrider.subscription_secret
           (subscription_id, kind, name, public_key, key_id, nonce, sealed)
    SELECT m.id, g.kind, g.name, g.public_key, $21::text, g.nonce, g.sealed
      FROM made m
     CROSS JOIN given g
), turn AS (
    INSERT INTO postrider.turn (subscription_id, tenant_id)
    SELECT id, tenant_id
      FROM made
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $3::text, tenant_id, 'subscription.created', id::text,
           jsonb_strip_nulls(jsonb_build_object(
               'url', url, 'event_types', event_types, 'filter', filter,
               'secrets', (SELECT jsonb_agg(concat_ws(' ', kind, name,
                                                      public_key)
                                            ORDER BY kind, name)
                             FROM given)))
      FROM made
)
SELECT pg_notify('postrider_work', '')
  FROM made;
