-- status_totals: how it stands, in all.
--
--   $1 integer   where each count stops
--
-- Returns one row; `at` is in microseconds since 1970.  The words are those of
-- the views.  accepted and tried are counters that only grow, by PostgreSQL's
-- statistics, a second behind: two looks at them make a rate.  Of what waits, up
-- to a thousand assets of each subscription are counted.

SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS at,
       (SELECT count(*)
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
       (SELECT n_tup_ins
          FROM pg_stat_user_tables
         WHERE relid = 'postrider.attempt'::regclass) AS tried,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.subscription
                 WHERE state <> 'deleted'
                 LIMIT $1::integer) c) AS subscriptions,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.subscription s
                 CROSS JOIN LATERAL (
                       SELECT
                         FROM postrider.lane
                        WHERE subscription_id = postrider.by_index(s.id)
                          AND due_at <= statement_timestamp()
                        LIMIT 1000) l
                 LIMIT $1) c) AS due,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.subscription s
                 CROSS JOIN LATERAL (
                       SELECT
                         FROM postrider.lane
                        WHERE subscription_id = postrider.by_index(s.id)
                          AND due_at > statement_timestamp()
                        LIMIT 1000) l
                 LIMIT $1) c) AS later,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.subscription s
                 CROSS JOIN LATERAL (
                       SELECT
                         FROM postrider.lane
                        WHERE subscription_id = postrider.by_index(s.id)
                          AND due_at IS NULL
                          AND leased_at IS NULL
                        LIMIT 1000) l
                 LIMIT $1) c) AS held,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE look_at IS NOT NULL
                 ORDER BY look_at
                 LIMIT $1) c) AS in_flight,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.dead_letter
                 ORDER BY died_at DESC
                 LIMIT $1) c) AS dead,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.stuck
                 LIMIT $1) c) AS stuck,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.replay_job
                 WHERE state = 'running'
                 ORDER BY next_step_at
                 LIMIT $1) c) AS replays;
