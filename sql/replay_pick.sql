-- replay_pick: the replay whose next step is due for longest.
--
-- Begins a step: replay_look, replay_hold, replay_place, work_share, work_ready and
-- replay_next follow in the same transaction, and are told by settings.  One that
-- somebody else is at is passed over.

SELECT set_config('postrider.replay_job', coalesce(max(id), 0)::text, true)
  FROM (SELECT id
          FROM postrider.replay_job
         WHERE state = 'running'
           AND next_step_at <= statement_timestamp()
         ORDER BY next_step_at
         LIMIT 1
           FOR NO KEY UPDATE SKIP LOCKED) j;
