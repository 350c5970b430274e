-- replay_answer: what became of a retry or a discard, for who asked for it.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    delivery
--   $4 text      action, for the audit
--   $5 text      actor, for the audit
--
-- Follows in the same transaction, and notes it if that was done.  Returns one
-- row; none if there is no such delivery of the subscription.  held_by is the
-- dead letter that holds its lane, if one does.

WITH asked AS MATERIALIZED (
    SELECT d.id, d.state, d.generation, s.tenant_id,
           d.xmin = pg_current_xact_id()::xid AS is_done,
           e.body IS NULL AS is_purged,
           l.head_id AS held_by
      FROM postrider.delivery d
      JOIN postrider.subscription s ON s.id = d.subscription_id
      LEFT JOIN postrider.event e ON e.event_no = d.event_no
      LEFT JOIN LATERAL (
           SELECT head_id
             FROM postrider.lane
            WHERE id = d.lane_id
              AND due_at IS NULL
              AND lease_token IS NULL
              AND head_id <> d.id
           OFFSET 0) l ON d.state = 'pending'
     WHERE d.id = $3
       AND d.subscription_id = $2
       AND s.state <> 'deleted'
       AND ($1::bigint IS NULL OR s.tenant_id = $1)
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $5, tenant_id, $4, id::text,
           jsonb_build_object('subscription', $2::text,
                              'generation', generation)
      FROM asked
     WHERE is_done
)
SELECT id, state, generation, is_done, is_purged, held_by
  FROM asked;
