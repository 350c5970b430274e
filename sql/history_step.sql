-- history_step: count attempts into the history, and forget what of it is old.
--
--   $1 integer   about how many attempts
--   $2 integer   how many old rows of minutes, and of quarters of an hour
--   $3 bigint    how long minutes are kept, microseconds
--   $4 bigint    how long quarters of an hour are kept, microseconds
--   $5 bigint    microseconds until the next step, if there is nothing now that
--                can be counted already, but something that can then
--
-- Returns one row: how many attempts and old rows there were, and in how many
-- microseconds there is more to do (null: nothing is known).
--
-- Each attempt once, since its tally is deleted by the statement that counts it.
-- Tallies are taken in the order of their times, from where the last step came
-- to, and so never past those that were deleted, however long these stay.
-- Transactions end in another order than they began; yet none is passed over.  A
-- record locks its lanes, which gives its transaction a number, and only then
-- comes the time that its tally carries (see delivery_taken).  So once all
-- transactions are over that were numbered when a step looked at the clock
-- (watched_xid, watched_at), nothing more can come that is recorded before, and
-- all of it is seen by the snapshot that shows that they are over: this
-- statement's own.  Who waits for such a transaction, of whatever database, is the
-- history alone.
--
-- If the clock was set back, what is recorded until it has caught up lies before
-- the place that was come to.  It is looked for when nothing lies behind, for a
-- minute: in an index that may be full of what was deleted.
--
-- Tallies of one time are taken together, and none of another minute.  Whoever has
-- the row of progress counts; others find nothing to do.

WITH place AS MATERIALIZED (
    SELECT p.counted_until, p.watched_at, p.minutes_from, p.quarters_from,
           p.watched_xid < pg_snapshot_xmin(pg_current_snapshot()) AS is_over,
           coalesce((SELECT recorded_at
                       FROM postrider.history_tally
                      WHERE recorded_at >= p.counted_until
                      ORDER BY recorded_at
                      LIMIT 1),
                    CASE
                        WHEN p.counted_until
                             > statement_timestamp() - interval '1 minute'
                        THEN (SELECT recorded_at
                                FROM postrider.history_tally
                               ORDER BY recorded_at
                               LIMIT 1)
                    END) AS first_at
      FROM postrider.history_progress p
     WHERE p.is_only
       FOR UPDATE SKIP LOCKED
), bounds AS MATERIALIZED (
    SELECT p.since, p.minute, p.watched_at,
           least(n.recorded_at + interval '1 microsecond', p.watched_at,
                 p.minute + interval '1 minute') AS until
      FROM (SELECT watched_at, is_over,
                   least(counted_until, first_at) AS since,
                   date_bin('1 minute', first_at,
                            timestamptz '2000-01-01 00:00:00+00') AS minute
              FROM place) p
      LEFT JOIN LATERAL (
           SELECT recorded_at
             FROM (SELECT recorded_at,
                          sum(attempts) OVER (ORDER BY recorded_at) AS attempts
                     FROM (SELECT recorded_at,
                                  cardinality(subscription_ids) AS attempts
                             FROM postrider.history_tally
                            WHERE recorded_at >= p.since
                              AND recorded_at < p.watched_at
                            ORDER BY recorded_at
                            LIMIT $1::integer) t) t
            WHERE attempts >= $1
            ORDER BY recorded_at
            LIMIT 1) n ON true
     WHERE p.is_over
), tallied AS (
    DELETE FROM postrider.history_tally
     WHERE recorded_at >= (SELECT since FROM bounds)
       AND recorded_at < (SELECT until FROM bounds)
    RETURNING verdict, subscription_ids, attempt_us, delivery_us
), tried AS MATERIALIZED (
    SELECT t.subscription_id, s.tenant_id, t.verdict, t.attempt_bin,
           t.delivery_bin, t.attempts
      FROM (SELECT subscription_id, verdict,
                   postrider.histogram_bin(attempt_us) AS attempt_bin,
                   postrider.histogram_bin(delivery_us) AS delivery_bin,
                   count(*) AS attempts
              FROM (SELECT verdict,
                           unnest(subscription_ids) AS subscription_id,
                           unnest(attempt_us) AS attempt_us,
                           unnest(delivery_us) AS delivery_us
                      FROM tallied) u
             GROUP BY subscription_id, verdict, attempt_bin, delivery_bin) t
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[t.subscription_id])
), counted AS (
    INSERT INTO postrider.history_count AS h
           (subscription_id, seconds, at, tenant_id, delivered, failed, dead,
            attempt_times, delivery_times)
    SELECT t.subscription_id, p.seconds,
           date_bin(p.seconds * interval '1 second', b.minute,
                    timestamptz '2000-01-01 00:00:00+00'),
           t.tenant_id, t.delivered, t.failed, t.dead, t.attempt_times,
           t.delivery_times
      FROM (SELECT coalesce(subscription_id, 0) AS subscription_id,
                   coalesce(tenant_id, 0) AS tenant_id,
                   coalesce(sum(attempts)
                            FILTER (WHERE verdict = 'delivered'), 0)
                       AS delivered,
                   coalesce(sum(attempts)
                            FILTER (WHERE verdict <> 'delivered'), 0) AS failed,
                   coalesce(sum(attempts) FILTER (WHERE verdict = 'dead'), 0)
                       AS dead,
                   postrider.histogram(array_agg(attempt_bin),
                                       array_agg(attempts)) AS attempt_times,
                   postrider.histogram(array_agg(delivery_bin),
                                       array_agg(attempts)) AS delivery_times
              FROM tried
             GROUP BY GROUPING SETS ((tenant_id, subscription_id),
                                     (tenant_id), ())
            HAVING count(*) > 0
            OFFSET 0) t
     CROSS JOIN bounds b
     CROSS JOIN (VALUES (60), (900)) p (seconds)
    ON CONFLICT (subscription_id, seconds, at, tenant_id) DO UPDATE
       SET delivered = h.delivered + EXCLUDED.delivered,
           failed = h.failed + EXCLUDED.failed,
           dead = h.dead + EXCLUDED.dead,
           attempt_times = postrider.histogram_sum(h.attempt_times,
                                                   EXCLUDED.attempt_times),
           delivery_times = postrider.histogram_sum(h.delivery_times,
                                                    EXCLUDED.delivery_times)
), old AS MATERIALIZED (
    SELECT o.*
      FROM place p
     CROSS JOIN LATERAL (
           (SELECT h.seconds, h.at, h.ctid AS row_at
              FROM postrider.history_count h
             WHERE -seconds = -60
               AND at >= p.minutes_from
               AND at < p.counted_until
                        - $3::bigint * interval '1 microsecond'
             ORDER BY at
             LIMIT $2::integer)
            UNION ALL
           (SELECT h.seconds, h.at, h.ctid
              FROM postrider.history_count h
             WHERE -seconds = -900
               AND at >= p.quarters_from
               AND at < p.counted_until
                        - $4::bigint * interval '1 microsecond'
             ORDER BY at
             LIMIT $2)) o
), forgotten AS (
    DELETE FROM postrider.history_count h
     USING old o
     WHERE h.ctid = o.row_at
), moved AS (
    UPDATE postrider.history_progress r
       SET counted_until = coalesce(b.until, r.counted_until),
           watched_at = CASE
                            WHEN w.watches_on THEN statement_timestamp()
                            ELSE r.watched_at
                        END,
           watched_xid = CASE
                             WHEN w.watches_on THEN pg_current_xact_id()
                             ELSE r.watched_xid
                         END,
           tried = r.tried
                   + (SELECT coalesce(sum(attempts), 0) FROM tried),
           minutes_from = coalesce((SELECT max(at) FROM old WHERE seconds = 60),
                                   r.minutes_from),
           quarters_from = coalesce((SELECT max(at) FROM old
                                      WHERE seconds = 900), r.quarters_from)
      FROM place p
      LEFT JOIN bounds b ON true
     CROSS JOIN LATERAL (
           SELECT p.watched_at > statement_timestamp()
                  OR (p.is_over AND b.until >= b.watched_at) AS watches_on) w
     WHERE r.is_only
       AND (EXISTS (SELECT FROM old)
            OR (p.is_over AND p.first_at IS NOT NULL))
)
SELECT (SELECT coalesce(sum(attempts), 0) FROM tried)::integer
       + (SELECT count(*) FROM old)::integer AS did,
       CASE
           WHEN (SELECT until < watched_at FROM bounds)
                OR (SELECT count(*) FROM old) >= $2
           THEN 0
           WHEN (SELECT first_at FROM place) IS NOT NULL
           THEN $5::bigint
       END AS next_in_us,
       set_config('synchronous_commit', 'off', true);
