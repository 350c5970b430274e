-- history_step: count attempts into the history, and forget what of it is old.
--
--   $1 integer   about how many attempts, and how many old rows
--   $2 bigint    how long minutes are kept, microseconds
--   $3 bigint    how long quarters of an hour are kept, microseconds
--   $4 bigint    microseconds until the next step, if there is nothing now that
--                can be counted already, but something that can then
--
-- Returns one row: how many attempts and old rows there were, and in how many
-- microseconds there is more to do (null: nothing is known).
--
-- Each attempt once, though transactions end in another order than they began.
-- A record locks its lanes, which gives its transaction a number, and only then
-- comes the time that its attempts carry (see delivery_taken).  So once all
-- transactions are over that were numbered when a step looked at the clock
-- (watched_xid, watched_at), nothing more can come that is recorded before, and
-- all of it is seen by the snapshot that shows that they are over: this
-- statement's own.  Who waits for such a transaction, of whatever database, is the
-- history alone.
--
-- Attempts that were recorded at once are taken together, and none of another
-- minute.  Whoever has the row of progress counts; others find nothing to do.
--
-- A failed attempt that was its generation's last left a dead letter, or one that
-- was retried or discarded since; what was cancelled did so for its subscription
-- was deleted.

WITH place AS MATERIALIZED (
    SELECT counted_until, watched_at, minutes_from, quarters_from,
           watched_xid < pg_snapshot_xmin(pg_current_snapshot()) AS is_over,
           (SELECT recorded_at
              FROM postrider.attempt
             WHERE recorded_at >= counted_until
             ORDER BY recorded_at
             LIMIT 1) AS first_at
      FROM postrider.history_progress
     WHERE is_only
       FOR UPDATE SKIP LOCKED
), bounds AS MATERIALIZED (
    SELECT p.counted_until AS since, p.minute, p.watched_at,
           least(n.recorded_at + interval '1 microsecond', p.watched_at,
                 p.minute + interval '1 minute') AS until
      FROM (SELECT *, date_bin('1 minute', first_at,
                               timestamptz '2000-01-01 00:00:00+00') AS minute
              FROM place) p
      LEFT JOIN LATERAL (
           SELECT recorded_at
             FROM postrider.attempt
            WHERE recorded_at >= p.counted_until
              AND recorded_at < p.watched_at
            ORDER BY recorded_at
           OFFSET $1::integer - 1
            LIMIT 1) n ON true
     WHERE p.is_over
), tried AS MATERIALIZED (
    SELECT d.subscription_id, s.tenant_id, a.is_delivered,
           postrider.histogram_bin(a.duration_us) AS attempt_bin,
           NOT a.is_delivered
           AND CASE
                   WHEN d.generation > a.generation
                   THEN true
                   WHEN d.state = 'cancelled'
                   THEN d.attempts = a.attempt AND s.state <> 'deleted'
                   ELSE d.attempts = a.attempt AND d.state = 'dead'
               END
           AND NOT EXISTS (
               SELECT
                 FROM postrider.attempt later
                WHERE later.delivery_id = a.delivery_id
                  AND later.generation = a.generation
                  AND later.attempt = a.attempt + 1) AS is_dead,
           CASE
               WHEN a.is_delivered AND a.generation = 1
               THEN postrider.histogram_bin(
                        1000000 * date_part('epoch', a.recorded_at
                            - (SELECT accepted_at
                                 FROM postrider.event
                                WHERE event_no = d.event_no)))
           END AS delivery_bin
      FROM bounds b
     CROSS JOIN LATERAL (
           SELECT delivery_id, generation, attempt, recorded_at, duration_us,
                  coalesce(ended = 'answered' AND status BETWEEN 200 AND 299,
                           false) AS is_delivered
             FROM postrider.attempt
            WHERE recorded_at >= b.since
              AND recorded_at < b.until
            ORDER BY recorded_at
           OFFSET 0) a
      JOIN postrider.delivery d ON d.id = ANY (ARRAY[a.delivery_id])
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[d.subscription_id])
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
                   count(*) FILTER (WHERE is_delivered) AS delivered,
                   count(*) FILTER (WHERE NOT is_delivered) AS failed,
                   count(*) FILTER (WHERE is_dead) AS dead,
                   postrider.histogram(
                       array_agg(attempt_bin)
                       FILTER (WHERE attempt_bin IS NOT NULL))
                       AS attempt_times,
                   postrider.histogram(
                       array_agg(delivery_bin)
                       FILTER (WHERE delivery_bin IS NOT NULL))
                       AS delivery_times
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
                        - $2::bigint * interval '1 microsecond'
             ORDER BY at
             LIMIT $1)
            UNION ALL
           (SELECT h.seconds, h.at, h.ctid
              FROM postrider.history_count h
             WHERE -seconds = -900
               AND at >= p.quarters_from
               AND at < p.counted_until
                        - $3::bigint * interval '1 microsecond'
             ORDER BY at
             LIMIT $1)) o
), forgotten AS (
    DELETE FROM postrider.history_count h
     USING old o
     WHERE h.ctid = o.row_at
), moved AS (
    UPDATE postrider.history_progress r
       SET counted_until = coalesce(b.until, r.counted_until),
           watched_at = CASE
                            WHEN b.until < b.watched_at OR NOT p.is_over THEN r.watched_at
                            ELSE statement_timestamp()
                        END,
           watched_xid = CASE
                             WHEN b.until < b.watched_at OR NOT p.is_over THEN r.watched_xid
                             ELSE pg_current_xact_id()
                         END,
           minutes_from = coalesce((SELECT max(at) FROM old WHERE seconds = 60),
                                   r.minutes_from),
           quarters_from = coalesce((SELECT max(at) FROM old
                                      WHERE seconds = 900), r.quarters_from)
      FROM place p
      LEFT JOIN bounds b ON true
     WHERE r.is_only
       AND (EXISTS (SELECT FROM old)
            OR (p.is_over AND p.first_at IS NOT NULL))
)
SELECT (SELECT count(*) FROM tried)::integer
       + (SELECT count(*) FROM old)::integer AS did,
       CASE
           WHEN (SELECT until < watched_at FROM bounds)
                OR (SELECT count(*) FROM old) >= $1
           THEN 0
           WHEN (SELECT first_at FROM place) IS NOT NULL
           THEN $4::bigint
       END AS next_in_us,
       set_config('synchronous_commit', 'off', true);
