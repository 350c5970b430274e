-- subscription_move: let a subscription rest, or go on; or delete it.
--
--   $1 bigint    tenant; null: whosever it is
--   $2 bigint    subscription, held by subscription_hold
--   $3 bigint[]  versions that it may have now; null: any
--   $4 text      actor, for the audit
--   $5 text      action, for the audit
--   $6 text[]    states from which it goes
--   $7 text      the state to which
--
-- Returns a row as subscription_update does; 'state': it is refused because of
-- the one that it is in.  Then nothing is changed, nor where it is in the new
-- state already.
--
-- The turn rests for the same reason, or is back in the round: a person says
-- try now, so a circuit that is open lets its probe through, and an endpoint that
-- was slowed down gets all that it may.  What is deleted
-- wakes at once, to have its deliveries cancelled; a tombstone stays, for the
-- deliveries that name it.

WITH old AS MATERIALIZED (
    SELECT *, coalesce(version = ANY ($3::bigint[]), true) AS is_fresh
      FROM postrider.subscription
     WHERE id = $2
       AND ($1::bigint IS NULL OR tenant_id = $1)
       AND state <> 'deleted'
), changed AS (
    UPDATE postrider.subscription s
       SET state = $7::text,
           state_reason = CASE
                              WHEN $7 <> 'active'
                              THEN $7 || ' by ' || $4::text
                          END,
           version = s.version + 1,
           updated_at = statement_timestamp()
      FROM old o
     WHERE s.id = o.id
       AND o.is_fresh
       AND o.state = ANY ($6::text[])
    RETURNING s.id, s.tenant_id, s.state
), turned AS (
    UPDATE postrider.turn t
       SET rest = nullif(c.state, 'active'),
           slowed_to = NULL,
           wake_at = CASE c.state
                         WHEN 'deleted' THEN statement_timestamp()
                     END,
           entered_at = CASE c.state
                            WHEN 'active' THEN clock_timestamp()
                        END
      FROM changed c
     WHERE t.subscription_id = c.id
    RETURNING t.rest
), unmatched AS (
    DELETE FROM postrider.subscription_pattern p
     USING changed c
     WHERE p.subscription_id = c.id
       AND c.state = 'deleted'
), forgotten AS (
    DELETE FROM postrider.subscription_secret k
     USING changed c
     WHERE k.subscription_id = c.id
       AND c.state = 'deleted'
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $4, c.tenant_id, 'subscription.' || $5::text, c.id::text,
           jsonb_build_object(
               'before', jsonb_build_object('state', o.state,
                                            'state_reason', o.state_reason),
               'after', jsonb_build_object('state', c.state))
      FROM changed c
      JOIN old o ON o.id = c.id
), told AS MATERIALIZED (
    SELECT pg_notify('postrider_work',
                     CASE rest WHEN 'deleted' THEN 'chore' ELSE '' END)
      FROM turned
     WHERE rest IS NULL
        OR rest = 'deleted'
)
SELECT NOT o.is_fresh AS is_stale,
       CASE
           WHEN o.is_fresh AND o.state <> ALL (array_append($6, $7))
           THEN 'state'
       END AS refusal,
       false AS has_new_key,
       NULL::bigint AS old_until
  FROM old o
  LEFT JOIN told ON true;
