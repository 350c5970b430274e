-- replay_cancel: let a replay that runs end where it is.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    replay
--   $4 text      actor, for the audit
--
-- Returns nothing of interest: replay_get tells what became of it.  A step that
-- is under way is waited for.

WITH cancelled AS (
    UPDATE postrider.replay_job j
       SET state = 'cancelled',
           finished_at = statement_timestamp()
      FROM postrider.subscription s
     WHERE j.id = $3
       AND j.subscription_id = $2
       AND j.state = 'running'
       AND s.id = j.subscription_id
       AND s.state <> 'deleted'
       AND ($1::bigint IS NULL OR s.tenant_id = $1)
    RETURNING j.id, s.tenant_id
)
INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
SELECT $4, tenant_id, 'replay.cancelled', id::text,
       jsonb_build_object('subscription', $2::text)
  FROM cancelled;
