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
--
-- Returns one row if it is there: whether it has another version, and whether
-- the change is refused: retry_base_ms would be above retry_cap_ms.  Then
-- nothing is changed, nor where all is already as it is to be.
--
-- A turn that rests at its limit or its rate goes back into the round, to be
-- judged by the new ones.  So does one whose circuit is open, if it is to open
-- no more, or to try a new URL.  Of what an old rate has used up, no more than
-- a second counts.

WITH old AS MATERIALIZED (
    SELECT *, coalesce(version = ANY ($3::bigint[]), true) AS is_fresh
      FROM postrider.subscription
     WHERE id = $2
       AND ($1::bigint IS NULL OR tenant_id = $1)
       AND state <> 'deleted'
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
           coalesce($16::integer, circuit_after) AS circuit_after
      FROM old
     WHERE is_fresh
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
           version = s.version + 1,
           updated_at = statement_timestamp()
      FROM new n
     WHERE s.id = n.id
       AND n.retry_base_ms <= n.retry_cap_ms
       AND (s.url, s.event_types, s.ordering, s.on_dead, s.older_signature,
            s.max_attempts, s.max_in_flight, s.retry_base_ms, s.retry_cap_ms,
            s.timeout_ms, s.rate_per_second, s.circuit_after)
           IS DISTINCT FROM
           (n.url, n.event_types, n.ordering, n.on_dead, n.older_signature,
            n.max_attempts, n.max_in_flight, n.retry_base_ms, n.retry_cap_ms,
            n.timeout_ms, n.rate_per_second, n.circuit_after)
    RETURNING s.*
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
           failures = CASE WHEN n.never_opens THEN 0 ELSE t.failures END
      FROM (SELECT c.id,
                   c.circuit_after = 0 AS never_opens,
                   c.rate_per_second IS DISTINCT FROM o.rate_per_second
                       AS has_new_rate,
                   CASE
                       WHEN t.rest IN ('limit', 'rate') THEN NULL
                       WHEN t.rest = 'circuit'
                        AND (c.circuit_after = 0 OR c.url <> o.url)
                                                        THEN NULL
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
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $4::text, c.tenant_id, 'subscription.updated', c.id::text,
           jsonb_build_object('before', jsonb_object_agg(b.key, b.value),
                              'after', jsonb_object_agg(a.key, a.value))
      FROM changed c
      JOIN old o ON o.id = c.id
     CROSS JOIN jsonb_each(to_jsonb(o)) b
      JOIN jsonb_each(to_jsonb(c)) a ON a.key = b.key
     WHERE a.value <> b.value
       AND a.key NOT IN ('version', 'updated_at')
     GROUP BY c.tenant_id, c.id
), told AS MATERIALIZED (
    SELECT pg_notify('postrider_work', '')
      FROM turned
     WHERE rest IS NULL
)
SELECT NOT o.is_fresh AS is_stale,
       coalesce(n.retry_base_ms > n.retry_cap_ms, false) AS is_refused
  FROM old o
  LEFT JOIN new n ON true
  LEFT JOIN told ON true;
