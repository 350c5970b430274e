-- replay_look: what is next in the replay that replay_pick took.
--
-- Sets what replay_hold and replay_place are to do, as replay_one does, and
-- moves the replay on past it: as much as its rate allows for a tenth of a
-- second, at most 200.  What is not in its range or does not match costs no
-- rate: of that a step walks 2000 rows, and the next may come at once.  Of what a
-- filter has to judge a step takes less where bodies are large: its work, as
-- core/filter.h has it, is bounded as for an acceptance, save for the last one's.
-- What an acceptance would not let it judge is not judged here either.
--
-- What was accepted or recorded before the replay was asked for may still be on
-- its way to its commit.  So it begins when all transactions of that time are
-- over, or after a minute: no longer does a transaction of ours last.  Then the
-- cursor never has to look back.  Events are walked by number; with the
-- commits, their times are in order to within that minute.
--
-- Only one step at a time gives events deliveries that they never had: two
-- would take the same position.  The lock is tried, so nobody waits for it.
--
-- As when they are made, * does not match operational events.

WITH job AS MATERIALIZED (
    SELECT j.*, s.tenant_id, s.event_types, s.ordering, s.filter_path,
           s.filter_weight::bigint AS filter_weight,
           s.state = 'deleted' AS is_deleted,
           least(j.until, j.created_at) AS before,
           least(ceil(j.rate_per_second / 10.0), 200)::bigint AS most
      FROM postrider.replay_job j
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[j.subscription_id])
     WHERE j.id = current_setting('postrider.replay_job')::bigint
       AND j.state = 'running'
), begun AS MATERIALIZED (
    SELECT *
      FROM job
     WHERE NOT is_deleted
       AND (pg_snapshot_xmin(pg_current_snapshot()) > created_in
            OR created_at < statement_timestamp() - interval '1 minute')
       AND (what = 'dead'
            OR pg_try_advisory_xact_lock(
                   hashtextextended('postrider replay', 0)))
), dead AS MATERIALIZED (
    SELECT x.delivery_id AS at, d.event_no,
           e.body IS NULL AS is_purged,
           true AS is_finished,
           true AS is_match,
           0 AS all_of_them
      FROM begun j
     CROSS JOIN LATERAL (
           SELECT delivery_id
             FROM (SELECT delivery_id, died_at
                     FROM postrider.dead_letter
                    WHERE subscription_id = j.subscription_id
                      AND delivery_id > j.reached
                    ORDER BY delivery_id
                    LIMIT 2000) w
            WHERE died_at >= j.since
              AND died_at < j.until
              AND died_at <= j.created_at
            ORDER BY delivery_id
            LIMIT j.most) x
      LEFT JOIN postrider.delivery d ON d.id = ANY (ARRAY[x.delivery_id])
      LEFT JOIN postrider.event e ON e.event_no = ANY (ARRAY[d.event_no])
     WHERE j.what = 'dead'
), events AS MATERIALIZED (
    SELECT e.event_no AS at, e.event_no,
           e.body IS NULL AS is_purged,
           coalesce(d.state, '') <> 'pending' AS is_finished,
           CASE
               WHEN e.work = 0 THEN true
               WHEN j.filter_weight * postrider.event_values(e.body) > 2097152
               THEN true
               ELSE (SELECT payload IS NULL
                            OR (payload @@ j.filter_path) IS TRUE
                       FROM postrider.event_payload(e.body) AS p (payload))
           END AS is_match,
           e.all_of_them
      FROM begun j
     CROSS JOIN LATERAL (
           SELECT *,
                  sum(work) OVER (ORDER BY event_no) - work AS work_before,
                  count(*) OVER () AS all_of_them
             FROM (SELECT event_no, body,
                          CASE
                              WHEN named IS NULL AND body IS NOT NULL
                              THEN coalesce(j.filter_weight, 0)
                                   * (octet_length(body) / 2)
                              ELSE 0
                          END AS work
                     FROM (SELECT *
                             FROM postrider.event
                            WHERE event_no > j.reached
                            ORDER BY event_no
                            LIMIT 2000) w
                    WHERE tenant_id = j.tenant_id
                      AND accepted_at >= j.since
                      AND accepted_at < j.before
                      AND CASE
                              WHEN named IS NOT NULL
                              THEN j.subscription_id = ANY (named)
                              ELSE EXISTS (
                                   SELECT
                                     FROM unnest(j.event_types) AS p (pattern)
                                    WHERE pattern = type
                                       OR (right(pattern, 1) = '*'
                                           AND starts_with(type,
                                                           left(pattern, -1))
                                           AND (pattern <> '*'
                                                OR NOT starts_with(
                                                           type,
                                                           'postrider.'))))
                          END
                    ORDER BY event_no
                    LIMIT j.most) t) e
      LEFT JOIN postrider.delivery d
        ON d.event_no = ANY (ARRAY[e.event_no])
       AND d.subscription_id = j.subscription_id
     WHERE j.what = 'events'
       AND e.work_before <= 2097152
), found AS MATERIALIZED (
    SELECT count(*) AS n,
           max(all_of_them) > count(*) AS is_cut,
           count(*) FILTER (WHERE is_match) AS examined,
           count(*) FILTER (WHERE is_match AND is_finished AND is_purged)
               AS refused,
           count(*) FILTER (WHERE is_match AND is_finished AND NOT is_purged)
               AS replayed,
           max(at) AS last_at,
           array_agg(event_no ORDER BY event_no)
               FILTER (WHERE is_match AND is_finished AND NOT is_purged)
               AS events
      FROM (SELECT * FROM dead
             UNION ALL
            SELECT * FROM events) f
), reached AS MATERIALIZED (
    SELECT CASE
               WHEN f.n = j.most OR f.is_cut THEN f.last_at
               WHEN j.what = 'dead'
               THEN (SELECT delivery_id
                       FROM postrider.dead_letter
                      WHERE subscription_id = j.subscription_id
                        AND delivery_id > j.reached
                      ORDER BY delivery_id
                     OFFSET 1999
                      LIMIT 1)
               ELSE (SELECT event_no
                       FROM (SELECT event_no, accepted_at
                               FROM postrider.event
                              WHERE event_no > j.reached
                              ORDER BY event_no
                             OFFSET 1999
                              LIMIT 1) w
                      WHERE accepted_at < j.before + interval '1 minute')
           END AS at
      FROM begun j, found f
), stepped AS (
    UPDATE postrider.replay_job j
       SET reached = coalesce(r.at, f.last_at, j.reached),
           examined = j.examined + f.examined,
           refused = j.refused + f.refused,
           state = CASE WHEN r.at IS NULL THEN 'done' ELSE j.state END,
           finished_at = CASE WHEN r.at IS NULL THEN statement_timestamp() END,
           next_step_at = greatest(j.next_step_at,
                                   statement_timestamp() - interval '100 ms')
                          + f.replayed::double precision / j.rate_per_second
                            * interval '1 second'
      FROM begun b, found f, reached r
     WHERE j.id = ANY (ARRAY[b.id])
), put_off AS (
    UPDATE postrider.replay_job j
       SET state = CASE WHEN b.is_deleted THEN 'cancelled' ELSE j.state END,
           finished_at = CASE WHEN b.is_deleted THEN statement_timestamp() END,
           next_step_at = statement_timestamp() + interval '50 ms'
      FROM job b
     WHERE j.id = ANY (ARRAY[b.id])
       AND NOT EXISTS (SELECT FROM begun)
)
SELECT set_config('postrider.replay_what', coalesce(max(j.what), ''), true),
       set_config('postrider.replay_ordering', coalesce(max(j.ordering), ''),
                  true),
       set_config('postrider.replay_subscription',
                  coalesce(max(j.subscription_id), 0)::text, true),
       set_config('postrider.replay_events',
                  coalesce(max(f.events), '{}')::text, true),
       set_config('postrider.replay_did',
                  coalesce(greatest(max(f.n), count(*)), 0)::text, true)
  FROM begun j, found f;
