-- retention_next: when to go on with a walk over old events.
--
--   $1 text      what is to go: payload or log
--   $2 bigint    at what age, microseconds
--
-- Returns one row: how many events this step took, and in how many microseconds
-- there is more to do (null: nothing, or another dispatcher knows).  That is ten seconds
-- after the next falls due, so that those which do meanwhile go together.

SELECT greatest(n.taken, 0) AS did,
       CASE
           WHEN n.taken < 0 THEN NULL
           WHEN n.next_at < statement_timestamp() THEN 0
           ELSE (extract(epoch FROM n.next_at - statement_timestamp())
                 * 1000000)::bigint
       END AS next_in_us
  FROM (SELECT current_setting('postrider.retention_taken')::integer AS taken,
               least((SELECT min(l.due_at)
                        FROM postrider.retention_late l
                       WHERE l.what = $1
                         AND l.due_at >= r.late_from),
                     (SELECT e.accepted_at
                             + $2::bigint * interval '1 microsecond'
                        FROM postrider.event e
                       WHERE e.event_no > r.event_no
                         AND e.event_no
                             <= CASE $1
                                    WHEN 'payload' THEN 9223372036854775807
                                    ELSE (SELECT event_no
                                            FROM postrider.retention
                                           WHERE what = 'payload')
                                END
                       ORDER BY e.event_no
                       LIMIT 1))
               + interval '10 seconds' AS next_at
          FROM postrider.retention r
         WHERE r.what = $1) n;
