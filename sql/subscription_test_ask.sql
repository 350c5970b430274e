-- subscription_test_ask: ask for a test event to be sent to a subscription.
--
--   $1 bigint    tenant; null: whosever it is
--   $2 bigint    subscription
--   $3 text      id of the event
--   $4 bytea     its body
--   $5 text      actor, for the audit
--
-- Returns one row if the subscription is there: whether it is asked for.  It is
-- not while the last one is under way or was asked for less than a second ago;
-- nor while eight others of its tenant are under way, or a few more where some
-- are asked for at the same moment.

WITH target AS MATERIALIZED (
    SELECT id, tenant_id
      FROM postrider.subscription
     WHERE id = $2
       AND ($1::bigint IS NULL OR tenant_id = $1)
       AND state <> 'deleted'
), asked AS (
    INSERT INTO postrider.subscription_test AS t
           (subscription_id, tenant_id, event_id, body)
    SELECT id, tenant_id, $3, $4
      FROM target g
     WHERE (SELECT count(*)
              FROM (SELECT
                      FROM postrider.subscription_test
                     WHERE tenant_id = g.tenant_id
                       AND finished_at IS NULL
                       AND expires_at > statement_timestamp()
                       AND subscription_id <> g.id
                     LIMIT 8) u) < 8
        ON CONFLICT (subscription_id) DO UPDATE
       SET asked_at = EXCLUDED.asked_at,
           expires_at = EXCLUDED.expires_at,
           event_id = EXCLUDED.event_id,
           body = EXCLUDED.body,
           taken_by = NULL,
           finished_at = NULL,
           started_at = NULL,
           duration_us = NULL,
           status = NULL,
           ended = NULL,
           remote = NULL,
           reason = NULL,
           dns_us = NULL,
           connect_us = NULL,
           tls_us = NULL,
           wait_us = NULL,
           receive_us = NULL,
           headers = NULL,
           excerpt = NULL
     WHERE t.asked_at < statement_timestamp() - interval '1 second'
       AND (t.finished_at IS NOT NULL
            OR t.expires_at < statement_timestamp())
    RETURNING t.subscription_id, t.tenant_id
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $5::text, tenant_id, 'subscription.tested', subscription_id::text,
           jsonb_build_object('event', $3)
      FROM asked
), told AS MATERIALIZED (
    SELECT pg_notify('postrider_work', 'chore')
      FROM asked
)
SELECT EXISTS (SELECT FROM told) AS is_asked
  FROM target;
