-- operation_take: go on telling what happened, as operational events.
--
--   $1 integer   most entries of the audit
--
-- Returns nothing of interest: what follows in the same transaction is told by
-- settings.  While another dispatcher tells there is nothing to do.  What happens
-- while nobody wants to be told is passed over: postrider.operation is then 'pass'
-- and not 'tell'.
--
-- Of the audit: subscriptions that were disabled, and circuits that opened.  Its
-- entries are numbered as their transactions end, one after the other, so none
-- comes late.
--
-- There is no event about a subscription that takes operational events: so what
-- becomes of telling is never told, and nothing goes round.

WITH place AS MATERIALIZED (
    SELECT audit_number,
           EXISTS (SELECT
                     FROM postrider.subscription_pattern
                    WHERE starts_with(pattern, 'postrider.')) AS is_wanted
      FROM postrider.operation
     WHERE is_only
       FOR UPDATE SKIP LOCKED
), ahead AS MATERIALIZED (
    SELECT a.*
      FROM place p
     CROSS JOIN LATERAL (
          (SELECT number, at, actor, tenant_id, detail,
                  'postrider.' || action AS type,
                  CASE
                      WHEN action IN ('subscription.disabled',
                                      'subscription.circuit_opened')
                      THEN subject::bigint
                  END AS subscription_id
             FROM postrider.audit
            WHERE number > p.audit_number
              AND p.is_wanted
            ORDER BY number
            LIMIT $1::integer)
            UNION ALL
          (SELECT number, NULL, NULL, NULL, NULL, NULL, NULL
             FROM postrider.audit
            WHERE number > p.audit_number
              AND NOT p.is_wanted
            ORDER BY number DESC
            LIMIT 1)) a
), moved AS (
    UPDATE postrider.operation
       SET audit_number = a.number
      FROM (SELECT max(number) AS number FROM ahead) a
     WHERE is_only
       AND a.number IS NOT NULL
), happened AS (
    SELECT jsonb_agg(jsonb_build_object(
               'id', 'postrider:audit:' || a.number,
               'type', a.type,
               'at', a.at,
               'subscription_id', a.subscription_id,
               'tenant_id', a.tenant_id,
               'data', jsonb_build_object(
                   'subscription_id', a.subscription_id::text,
                   'tenant', n.name,
                   'at', postrider.rfc3339(a.at),
                   'by', a.actor)
                   || CASE a.type
                          WHEN 'postrider.subscription.disabled'
                          THEN jsonb_build_object(
                                   'reason', a.detail #> '{after,state_reason}')
                          ELSE jsonb_build_object(
                                   'failures', a.detail #> '{after,failures}')
                      END)) AS events
      FROM ahead a
      LEFT JOIN postrider.tenant n ON n.id = ANY (ARRAY[a.tenant_id])
     WHERE a.subscription_id IS NOT NULL
       AND NOT EXISTS (
           SELECT
             FROM postrider.subscription_pattern w
            WHERE w.subscription_id = a.subscription_id
              AND starts_with(w.pattern, 'postrider.'))
), told AS MATERIALIZED (
    SELECT count(*) AS n FROM ahead
)
SELECT set_config('postrider.operation',
                  coalesce((SELECT CASE
                                       WHEN is_wanted THEN 'tell'
                                       ELSE 'pass'
                                   END
                              FROM place), ''), true),
       set_config('postrider.happened',
                  coalesce((SELECT events FROM happened), '[]')::text, true),
       set_config('postrider.operation_did', told.n::text, true),
       set_config('postrider.operation_more', (told.n = $1)::text, true)
  FROM told;
