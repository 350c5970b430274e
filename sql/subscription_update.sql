-- subscription_update: change what a subscription is like.
--
--   $1 bigint    tenant; null: whosever it is
--   $2 bigint    subscription, held by subscription_hold
--   $3 bigint[]  versions that it may have now; null: any
--   $4 text      actor, for the audit
--   $5 text      URL in canonical form; null: as it is, and so for all others
--   $6 text[]    event types
--   $7 text      ordering
--   $8 text      on_dead
--   $9 boolean   older_signature
--   $10 integer  max_attempts
--   $11 integer  max_in_flight
--   $12 integer  retry_base_ms
--   $13 integer  retry_cap_ms
--   $14 integer  timeout_ms
--   $15 text     rate_per_second, a decimal number; '': no limit
--   $16 integer  circuit_after
--   $17 text     headers, a JSON object
--   $18 text     tls_ca; '': none
--   $19 text     tls_certificate; '': none
--   $20 text     filter; '': none
--   $21 integer  filter_weight, if one is given
--   $22 text[]   kinds of secrets that are given up, those it has
--   $23 boolean  a signing key is for one that has none, which others keep;
--                else they are refused
--   $24 text     id of the key that seals the secrets which it gets
--   $25 text[]   kind of such a secret
--   $26 text[]   its header's name, or null
--   $27 text[]   its public key, or null
--   $28 bytea[]  nonce
--   $29 bytea[]  sealed secret
--
-- Returns one row if it is there: whether it has another version, or else why
-- the change is refused, whether it has got the signing key, and old_until for
-- what only subscription_rotate says.  'waits': retry_base_ms would be above
-- retry_cap_ms.  'signing_key': it has one.
-- 'header_twice', 'header_count', 'header_total': a name would be among the
-- headers and the secret headers, or there would be too many, or they would be
-- too long, together (core/header.h).  Then nothing is changed, nor where all is
-- already as it is to be; a secret that is given is always a change.
--
-- A turn that rests at its limit or its rate goes back into the round, to be
-- judged by the new ones.  So does one whose circuit is open, if it is to open
-- no more, or to try a new URL, which nothing slows down yet.  Of what an old rate has used up, no more than
-- a second counts.

WITH old AS MATERIALIZED (
    SELECT *, coalesce(version = ANY ($3::bigint[]), true) AS is_fresh
      FROM postrider.subscription
     WHERE id = $2
       AND ($1::bigint IS NULL OR tenant_id = $1)
       AND state <> 'deleted'
), kept AS MATERIALIZED (
    SELECT k.id, k.kind, k.name, k.public_key, k.size, k.expires_at
      FROM old o
      JOIN postrider.subscription_secret k ON k.subscription_id = o.id
), given AS MATERIALIZED (
    SELECT *
      FROM unnest($25::text[], $26::text[], $27::text[], $28::bytea[],
                  $29::bytea[])
           AS g (kind, name, public_key, nonce, sealed)
     WHERE kind <> 'signing_key'
        OR NOT $23::boolean
        OR NOT EXISTS (SELECT
                         FROM kept
                        WHERE kind = 'signing_key'
                          AND expires_at IS NULL)
), new AS MATERIALIZED (
    SELECT id,
           coalesce($5::text, url) AS url,
           coalesce($6::text[], event_types) AS event_types,
           coalesce($7::text, ordering) AS ordering,
           coalesce($8::text, on_dead) AS on_dead,
           coalesce($9::boolean, older_signature) AS older_signature,
           coalesce($10::integer, max_attempts) AS max_attempts,
           coalesce($11::integer, max_in_flight) AS max_in_flight,
           coalesce($12::integer, retry_base_ms) AS retry_base_ms,
           coalesce($13::integer, retry_cap_ms) AS retry_cap_ms,
           coalesce($14::integer, timeout_ms) AS timeout_ms,
           CASE
               WHEN $15::text IS NULL THEN rate_per_second
               ELSE nullif($15, '')::double precision
           END AS rate_per_second,
           coalesce($16::integer, circuit_after) AS circuit_after,
           coalesce($17::text::jsonb, headers) AS headers,
           CASE
               WHEN $18::text IS NULL THEN tls_ca
               ELSE nullif($18, '')
           END AS tls_ca,
           CASE
               WHEN $19::text IS NULL THEN tls_certificate
               ELSE nullif($19, '')
           END AS tls_certificate,
           CASE
               WHEN $20::text IS NULL THEN filter
               ELSE nullif($20, '')
           END AS filter,
           CASE
               WHEN $20 IS NULL THEN filter_weight
               ELSE $21::integer
           END AS filter_weight
      FROM old
     WHERE is_fresh
), judged AS MATERIALIZED (
    SELECT n.*,
           CASE
               WHEN n.retry_base_ms > n.retry_cap_ms
               THEN 'waits'
               WHEN EXISTS (SELECT
                              FROM given g
                              JOIN kept k ON k.kind = g.kind
                             WHERE g.kind = 'signing_key'
                               AND k.expires_at IS NULL)
               THEN 'signing_key'
               WHEN h.total > h.different THEN 'header_twice'
               WHEN h.total > 32          THEN 'header_count'
               WHEN h.octets > 8192       THEN 'header_total'
           END AS refusal
      FROM new n
     CROSS JOIN LATERAL (
           SELECT count(*) AS total,
                  count(DISTINCT name) AS different,
                  sum(octet_length(name) + size) AS octets
             FROM (SELECT key AS name, octet_length(value) AS size
                     FROM jsonb_each_text(n.headers)
                    UNION ALL
                   SELECT name, size
                     FROM kept
                    WHERE kind = 'header'
                      AND kind <> ALL ($22::text[])
                    UNION ALL
                   SELECT name, octet_length(sealed) - 16
                     FROM given
                    WHERE kind = 'header') u) h
), changed AS (
    UPDATE postrider.subscription s
       SET url = n.url,
           event_types = n.event_types,
           ordering = n.ordering,
           on_dead = n.on_dead,
           older_signature = n.older_signature,
           max_attempts = n.max_attempts,
           max_in_flight = n.max_in_flight,
           retry_base_ms = n.retry_base_ms,
           retry_cap_ms = n.retry_cap_ms,
           timeout_ms = n.timeout_ms,
           rate_per_second = n.rate_per_second,
           circuit_after = n.circuit_after,
           headers = n.headers,
           tls_ca = n.tls_ca,
           tls_certificate = n.tls_certificate,
           filter = n.filter,
           filter_weight = n.filter_weight,
           version = s.version + 1,
           updated_at = statement_timestamp()
      FROM judged n
     WHERE s.id = n.id
       AND n.refusal IS NULL
       AND ((s.url, s.event_types, s.ordering, s.on_dead, s.older_signature,
             s.max_attempts, s.max_in_flight, s.retry_base_ms, s.retry_cap_ms,
             s.timeout_ms, s.rate_per_second, s.circuit_after, s.headers,
             s.tls_ca, s.tls_certificate, s.filter)
            IS DISTINCT FROM
            (n.url, n.event_types, n.ordering, n.on_dead, n.older_signature,
             n.max_attempts, n.max_in_flight, n.retry_base_ms, n.retry_cap_ms,
             n.timeout_ms, n.rate_per_second, n.circuit_after, n.headers,
             n.tls_ca, n.tls_certificate, n.filter)
            OR EXISTS (SELECT FROM given)
            OR EXISTS (SELECT FROM kept WHERE kind = ANY ($22)))
    RETURNING s.*
), forgotten AS (
    DELETE FROM postrider.subscription_secret k
     USING changed c
     WHERE k.subscription_id = c.id
       AND k.kind = ANY ($22)
), sealed AS (
    INSERT INTO postrider.subscription_secret
           (subscription_id, kind, name, public_key, key_id, nonce, sealed)
    SELECT c.id, g.kind, g.name, g.public_key, $24::text, g.nonce, g.sealed
      FROM changed c
     CROSS JOIN given g
), unmatched AS (
    DELETE FROM postrider.subscription_pattern p
     USING changed c
     WHERE p.subscription_id = c.id
       AND p.pattern <> ALL (c.event_types)
), matched AS (
    INSERT INTO postrider.subscription_pattern
           (tenant_id, pattern, subscription_id)
    SELECT DISTINCT tenant_id, unnest(event_types), id
      FROM changed
        ON CONFLICT DO NOTHING
), turned AS (
    UPDATE postrider.turn t
       SET rest = n.rest,
           wake_at = CASE WHEN n.rest IS NOT NULL THEN t.wake_at END,
           entered_at = CASE
                            WHEN n.rest IS NULL
                            THEN coalesce(t.entered_at, clock_timestamp())
                        END,
           rate_at = CASE
                         WHEN n.has_new_rate
                         THEN least(t.rate_at,
                                    statement_timestamp()
                                    + interval '1 second')
                         ELSE t.rate_at
                     END,
           circuit = n.circuit,
           circuit_opens = CASE
                               WHEN n.circuit <> 'closed'
                               THEN t.circuit_opens
                               ELSE 0
                           END,
           failures = CASE WHEN n.never_opens THEN 0 ELSE t.failures END,
           slowed_to = CASE WHEN NOT n.has_new_url THEN t.slowed_to END
      FROM (SELECT c.id,
                   c.circuit_after = 0 AS never_opens,
                   c.url <> o.url AS has_new_url,
                   c.rate_per_second IS DISTINCT FROM o.rate_per_second
                       AS has_new_rate,
                   CASE
                       WHEN t.rest IN ('limit', 'rate')          THEN NULL
                       WHEN t.rest IN ('circuit', 'slowed')
                        AND c.url <> o.url                       THEN NULL
                       WHEN t.rest = 'circuit'
                        AND c.circuit_after = 0                  THEN NULL
                       ELSE t.rest
                   END AS rest,
                   CASE
                       WHEN c.circuit_after = 0 THEN 'closed'
                       ELSE t.circuit
                   END AS circuit
              FROM changed c
              JOIN old o ON o.id = c.id
              JOIN postrider.turn t ON t.subscription_id = c.id) n
     WHERE t.subscription_id = n.id
    RETURNING t.rest
), secrets AS MATERIALIZED (
    SELECT (SELECT jsonb_agg(concat_ws(' ', kind, name, public_key)
                             ORDER BY kind, name, id)
              FROM kept
             WHERE kind = ANY ($22)) AS before,
           (SELECT jsonb_agg(concat_ws(' ', kind, name, public_key)
                             ORDER BY kind, name)
              FROM given) AS after
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $4::text, c.tenant_id, 'subscription.updated', c.id::text,
           jsonb_build_object(
               'before', coalesce(d.before, '{}')
                         || jsonb_strip_nulls(
                                jsonb_build_object('secrets', k.before)),
               'after', coalesce(d.after, '{}')
                        || jsonb_strip_nulls(
                               jsonb_build_object('secrets', k.after)))
      FROM changed c
      JOIN old o ON o.id = c.id
     CROSS JOIN secrets k
     CROSS JOIN LATERAL (
           SELECT jsonb_object_agg(b.key, b.value) AS before,
                  jsonb_object_agg(a.key, a.value) AS after
             FROM jsonb_each(to_jsonb(o)) b
             JOIN jsonb_each(to_jsonb(c)) a ON a.key = b.key
            WHERE a.value <> b.value
              AND a.key NOT IN ('version', 'updated_at', 'filter_weight',
                                'filter_path')) d
), told AS MATERIALIZED (
    SELECT pg_notify('postrider_work', '')
      FROM turned
     WHERE rest IS NULL
)
SELECT NOT o.is_fresh AS is_stale,
       n.refusal,
       EXISTS (SELECT
                 FROM given
                WHERE kind = 'signing_key') AS has_new_key,
       NULL::bigint AS old_until
  FROM old o
  LEFT JOIN judged n ON true
  LEFT JOIN told ON true;
