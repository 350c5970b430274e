-- replay_next: the end of a step, and when the next is due.
--
-- Follows work_ready.  Returns one row: did, how many the step came to, at
-- least 1 if it moved a replay on; and next_in_us, in how many microseconds
-- there is something to do again, null if no replay runs.  Of what others are
-- at nothing can be known for a moment.

WITH counted AS (
    UPDATE postrider.replay_job
       SET replayed = replayed + current_setting('postrider.replayed')::bigint
     WHERE id = current_setting('postrider.replay_job')::bigint
       AND current_setting('postrider.replayed') <> '0'
)
SELECT current_setting('postrider.replay_did')::integer AS did,
       CASE
           WHEN count(*) > 0
           THEN greatest((extract(epoch FROM min(next_step_at)
                                             - statement_timestamp())
                          * 1000000)::bigint,
                         CASE current_setting('postrider.replay_job')
                             WHEN '0' THEN 50000
                             ELSE 0
                         END)
       END AS next_in_us
  FROM (SELECT next_step_at
          FROM postrider.replay_job
         WHERE state = 'running'
         ORDER BY next_step_at
         LIMIT 1) j;
