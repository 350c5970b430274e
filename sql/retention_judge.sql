-- retention_judge: which of these events are over, for how long.
--
--   $1 text      what is to go: payload or log
--   $2 bigint    at what age, microseconds
--
-- Of the events that retention_take took, and retention_hold has locked.
-- Returns nothing of interest: those that are over remain in the setting, the
-- others come up again.
--
-- An event is over when the last of its deliveries was finished, or when it was
-- accepted if it has none.  A dead letter that holds its lane is not finished: it
-- waits for a person.  One with something unfinished cannot be old enough before
-- that age has passed from now.  The log stays while the payload does.

WITH looked_at AS MATERIALIZED (
    SELECT x.event_no, e.has_body, d.is_unfinished,
           greatest(e.accepted_at, d.finished_at)
           + $2::bigint * interval '1 microsecond' AS due_at
      FROM unnest(current_setting('postrider.retention')::bigint[])
           AS x (event_no)
     CROSS JOIN LATERAL (
           SELECT accepted_at, body IS NOT NULL AS has_body
             FROM postrider.event
            WHERE event_no = x.event_no
           OFFSET 0) e
     CROSS JOIN LATERAL (
           SELECT max(finished_at) AS finished_at,
                  coalesce(bool_or(
                      state = 'pending'
                      OR (state = 'dead'
                          AND EXISTS (
                              SELECT
                                FROM postrider.lane l
                               WHERE l.id = coalesce(d.lane_id, d.id)
                                 AND l.head_id = d.id))), false)
                      AS is_unfinished
             FROM postrider.delivery d
            WHERE d.event_no = x.event_no) d
), judged AS MATERIALIZED (
    SELECT event_no,
           CASE
               WHEN is_unfinished
               THEN statement_timestamp() + $2 * interval '1 microsecond'
               WHEN due_at > statement_timestamp()
               THEN due_at
               WHEN $1 = 'log' AND has_body
               THEN statement_timestamp() + interval '1 minute'
           END AS due_at
      FROM looked_at
), later AS (
    INSERT INTO postrider.retention_late (what, due_at, event_no)
    SELECT $1, greatest(j.due_at, r.late_from), j.event_no
      FROM judged j
      JOIN postrider.retention r ON r.what = $1
     WHERE j.due_at IS NOT NULL
)
SELECT set_config('postrider.retention',
                  (ARRAY (SELECT event_no
                            FROM judged
                           WHERE due_at IS NULL))::text, true);
