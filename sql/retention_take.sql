-- retention_take: go on with a walk over old events.
--
--   $1 text      what is to go: payload or log
--   $2 bigint    at what age, microseconds
--   $3 integer   about how many events and deliveries
--
-- Returns nothing of interest: what follows in the same transaction is told by
-- settings.  While another dispatcher has the walk there is nothing to do.
--
-- First those that were late and are due, then on by event_no.  That grows with
-- accepted_at, but for transactions that race, which the least age allowed, an
-- hour, leaves far behind; the walk stops before the first that is younger.  The
-- log's never overtakes the payload's.
--
-- Late ones are ours if we delete them: another walk may have taken them since
-- this statement began.  The commit waits for no disk, and passes do not wait for
-- it: what a crash undoes is done again.

WITH place AS MATERIALIZED (
    SELECT event_no, late_from
      FROM postrider.retention
     WHERE what = $1
       FOR UPDATE SKIP LOCKED
), late AS MATERIALIZED (
    SELECT l.event_no, l.due_at, e.fan_out
      FROM place p
     CROSS JOIN LATERAL (
           SELECT event_no, due_at
             FROM postrider.retention_late
            WHERE what = $1
              AND due_at >= p.late_from
              AND due_at <= statement_timestamp()
            ORDER BY due_at, event_no
            LIMIT $3::integer) l
     CROSS JOIN LATERAL (
           SELECT fan_out
             FROM postrider.event
            WHERE event_no = l.event_no
           OFFSET 0) e
), ahead AS MATERIALIZED (
    SELECT e.event_no, e.accepted_at, e.fan_out
      FROM place p
     CROSS JOIN LATERAL (
           SELECT event_no, accepted_at, fan_out
             FROM postrider.event
            WHERE event_no > p.event_no
              AND event_no <= CASE $1
                                  WHEN 'payload' THEN 9223372036854775807
                                  ELSE (SELECT event_no
                                          FROM postrider.retention
                                         WHERE what = 'payload')
                              END
            ORDER BY event_no
            LIMIT $3) e
), chosen AS MATERIALIZED (
    SELECT event_no, due_at
      FROM (SELECT event_no, due_at,
                   sum(fan_out + 1) OVER (ORDER BY due_at, event_no)
                   - (fan_out + 1) AS before
              FROM (SELECT event_no, due_at, fan_out
                      FROM late
                     UNION ALL
                    SELECT event_no, NULL, fan_out
                      FROM ahead
                     WHERE event_no < coalesce(
                               (SELECT min(event_no)
                                  FROM ahead
                                 WHERE accepted_at
                                       > statement_timestamp()
                                         - $2::bigint
                                           * interval '1 microsecond'),
                               9223372036854775807)) c) s
     WHERE before < $3
), taken_out AS (
    DELETE FROM postrider.retention_late l
     USING chosen c
     WHERE l.what = $1
       AND l.due_at = c.due_at
       AND l.event_no = c.event_no
    RETURNING l.event_no
), moved AS (
    UPDATE postrider.retention r
       SET event_no = coalesce((SELECT max(event_no)
                                  FROM chosen
                                 WHERE due_at IS NULL), p.event_no),
           late_from = coalesce((SELECT max(due_at)
                                   FROM chosen), p.late_from)
      FROM place p
     WHERE r.what = $1
       AND EXISTS (SELECT FROM chosen)
), taken AS MATERIALIZED (
    SELECT event_no
      FROM taken_out
     UNION ALL
    SELECT event_no
      FROM chosen
     WHERE due_at IS NULL
)
SELECT set_config('postrider.retention',
                  (ARRAY (SELECT event_no
                            FROM taken
                           ORDER BY event_no))::text, true),
       set_config('postrider.retention_taken',
                  CASE
                      WHEN EXISTS (SELECT FROM place)
                      THEN (SELECT count(*) FROM taken)
                      ELSE -1
                  END::text, true),
       set_config('synchronous_commit', 'off', true);
