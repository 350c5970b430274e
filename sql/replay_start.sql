-- replay_start: begin a replay in the background.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 text      dead: dead letters; events: all that its event types and its
--                filter match
--   $4 bigint    since, microseconds since 1970, or null: from the first on
--   $5 bigint    until, or null: up to now, which is the latest in any case
--   $6 integer   most a second, or null for the default
--   $7 text      actor, for the audit
--
-- Returns the new row as replay_get does; none without such a subscription.
--
-- Nothing finds events by time.  But their numbers grow with it, save for what
-- overtakes on the way to the commit.  So the first number is looked for by
-- halves, for a minute earlier.

WITH RECURSIVE halves AS (
    SELECT 0::bigint AS low,
           coalesce((SELECT max(event_no) FROM postrider.event), 0) AS high
     WHERE $3 = 'events'
     UNION ALL
    SELECT CASE WHEN e.is_before THEN e.event_no ELSE h.low END,
           CASE WHEN e.is_before THEN h.high ELSE h.middle - 1 END
      FROM (SELECT low, high, low + (high - low + 1) / 2 AS middle
              FROM halves
             WHERE low < high) h
      LEFT JOIN LATERAL (
           SELECT event_no,
                  accepted_at < timestamptz 'epoch'
                                + $4::bigint * interval '1 microsecond'
                                - interval '1 minute' AS is_before
             FROM postrider.event
            WHERE event_no >= h.middle
              AND event_no <= h.high
            ORDER BY event_no
            LIMIT 1) e ON true
), made AS (
    INSERT INTO postrider.replay_job
           (subscription_id, what, since, until, rate_per_second, reached,
            created_by)
    SELECT id, $3,
           coalesce(timestamptz 'epoch'
                    + $4 * interval '1 microsecond', '-infinity'),
           coalesce(timestamptz 'epoch'
                    + $5::bigint * interval '1 microsecond', 'infinity'),
           coalesce($6::integer, 100),
           coalesce((SELECT max(low) FROM halves), 0),
           $7
      FROM postrider.subscription
     WHERE id = $2
       AND state <> 'deleted'
       AND ($1::bigint IS NULL OR tenant_id = $1)
    RETURNING *
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT m.created_by, s.tenant_id, 'replay.started', m.id::text,
           jsonb_build_object('subscription', m.subscription_id::text,
                              'what', m.what, 'since', m.since,
                              'until', m.until)
      FROM made m
      JOIN postrider.subscription s ON s.id = m.subscription_id
), told AS MATERIALIZED (
    SELECT pg_notify('postrider_work', 'chore')
      FROM made
)
SELECT id, subscription_id, what,
       (extract(epoch FROM nullif(since, '-infinity')) * 1000000)::bigint
           AS since,
       (extract(epoch FROM nullif(until, 'infinity')) * 1000000)::bigint
           AS until,
       rate_per_second, reached, examined, replayed, refused, state, created_by,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM finished_at) * 1000000)::bigint AS finished_at
  FROM made, told;
