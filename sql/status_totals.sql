-- status_totals: what only operators are shown beside state_totals.
--
--   $1 integer   where each count stops
--
-- Returns one row.  accepted and tried are counters that grow: two looks at them
-- make a rate.  By PostgreSQL's statistics, a second behind; and by the history, as
-- far as that has come.

SELECT (SELECT count(*)
          FROM pg_stat_activity
         WHERE datname = current_database()
           AND application_name LIKE 'postrider-ingest desk%') AS ingests,
       (SELECT count(*)
          FROM pg_stat_activity
         WHERE datname = current_database()
           AND application_name LIKE 'postrider-dispatch claim%')
           AS dispatchers,
       (SELECT n_tup_ins
          FROM pg_stat_user_tables
         WHERE relid = 'postrider.event'::regclass) AS accepted,
       (SELECT tried FROM postrider.history_progress) AS tried,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.stuck
                 LIMIT $1::integer) c) AS stuck,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.replay_job
                 WHERE state = 'running'
                 ORDER BY next_step_at
                 LIMIT $1) c) AS replays;
