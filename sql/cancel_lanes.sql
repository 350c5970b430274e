-- cancel_lanes: remove the lanes that cancel_deliveries emptied.
--
-- Returns one row: how many deliveries were cancelled and lanes removed, and in
-- how many microseconds there is more to do (null: nothing).
--
-- A lane with more than one step cancels goes on from its next head, and the
-- walk from this lane.  A walk at its end looks once more from the start, for
-- what it passed; with nothing left but leased lanes it is over, and their
-- outcomes begin another.

WITH job AS MATERIALIZED (
    SELECT subscription_id, after_asset, due_from,
           current_setting('postrider.cancelling_by') = 'asset' AS is_by_asset
      FROM postrider.cancelling
     WHERE subscription_id = current_setting('postrider.cancelling')::bigint
), walked AS MATERIALIZED (
    SELECT x.ord, l.*,
           coalesce(l.resume_id, l.head_id + 1) AS next_id
      FROM unnest(current_setting('postrider.cancelling_lanes')::bigint[])
           WITH ORDINALITY AS x (lane_id, ord)
     CROSS JOIN LATERAL (
           SELECT id, asset, head_id, tail_id, due_at, resume_id, lease_token
             FROM postrider.lane
            WHERE id = x.lane_id
           OFFSET 0) l
), next AS MATERIALIZED (
    SELECT w.ord, w.id, w.due_at,
           coalesce(h.id, r.id, n.id) AS head_id,
           coalesce(h.event_no, r.event_no, n.event_no) AS event_no,
           coalesce(h.attempts, r.attempts, n.attempts) AS attempts,
           CASE
               WHEN h.id IS NOT NULL THEN w.resume_id
               WHEN r.id IS NOT NULL THEN w.next_id
           END AS resume_id
      FROM walked w
      LEFT JOIN postrider.delivery h
        ON h.id = ANY (ARRAY[w.head_id])
       AND h.state = 'pending'
      LEFT JOIN LATERAL (
           SELECT d.id, d.event_no, d.attempts
             FROM postrider.replay p
             JOIN postrider.delivery d ON d.id = ANY (ARRAY[p.delivery_id])
            WHERE h.id IS NULL
              AND p.lane_id = w.id
            ORDER BY p.delivery_id
            LIMIT 1) r ON true
      LEFT JOIN LATERAL (
           SELECT id, event_no, attempts
             FROM postrider.delivery
            WHERE h.id IS NULL
              AND r.id IS NULL
              AND w.tail_id >= w.next_id
              AND lane_id = w.id
              AND id >= w.next_id
              AND state = 'pending'
            ORDER BY id
            LIMIT 1) n ON true
     WHERE w.lease_token IS NULL
), emptied AS (
    DELETE FROM postrider.lane l
     USING next n
     WHERE l.id = ANY (ARRAY[n.id])
       AND n.head_id IS NULL
    RETURNING 1
), moved AS (
    UPDATE postrider.lane l
       SET head_id = n.head_id,
           head_event_no = n.event_no,
           resume_id = n.resume_id,
           attempts = n.attempts,
           due_at = coalesce(n.due_at, statement_timestamp())
      FROM next n
     WHERE l.id = ANY (ARRAY[n.id])
       AND n.head_id IS NOT NULL
       AND n.head_id <> l.head_id
), taken_out AS (
    DELETE FROM postrider.replay r
     USING next n
     WHERE r.lane_id = ANY (ARRAY[n.id])
       AND r.delivery_id = n.head_id
), passed AS MATERIALIZED (
    SELECT asset, due_at
      FROM walked
     WHERE ord < coalesce((SELECT min(ord)
                             FROM next
                            WHERE head_id IS NOT NULL),
                          9223372036854775807)
     ORDER BY ord DESC
     LIMIT 1
), leftover AS MATERIALIZED (
    SELECT EXISTS (
               SELECT
                 FROM postrider.lane
                WHERE subscription_id = j.subscription_id
                  AND due_at IS NOT NULL)
           OR EXISTS (
               SELECT
                 FROM postrider.lane
                WHERE subscription_id = j.subscription_id
                  AND asset IS NOT NULL
                  AND due_at IS NULL
                  AND lease_token IS NULL) AS is_any
      FROM job j
     WHERE NOT EXISTS (SELECT FROM walked)
), went_on AS (
    UPDATE postrider.cancelling c
       SET after_asset = CASE
                             WHEN NOT j.is_by_asset THEN c.after_asset
                             ELSE p.asset
                         END,
           due_from = CASE
                          WHEN j.is_by_asset THEN c.due_from
                          ELSE p.due_at
                      END
      FROM job j, passed p
     WHERE c.subscription_id = ANY (ARRAY[j.subscription_id])
), again AS (
    UPDATE postrider.cancelling c
       SET after_asset = '',
           due_from = '-infinity',
           look_at = statement_timestamp() + interval '1 second'
      FROM job j, leftover o
     WHERE c.subscription_id = ANY (ARRAY[j.subscription_id])
       AND o.is_any
), over AS (
    DELETE FROM postrider.cancelling c
     USING job j, leftover o
     WHERE c.subscription_id = ANY (ARRAY[j.subscription_id])
       AND NOT o.is_any
)
SELECT (current_setting('postrider.cancelled')::integer
        + (SELECT count(*) FROM emptied))::integer AS did,
       CASE
           WHEN EXISTS (SELECT FROM walked) OR w.next_at < statement_timestamp()
           THEN 0
           ELSE (extract(epoch FROM w.next_at - statement_timestamp())
                 * 1000000)::bigint
       END AS next_in_us
  FROM (SELECT least((SELECT CASE
                                 WHEN is_any
                                 THEN statement_timestamp()
                                      + interval '1 second'
                             END
                        FROM leftover),
                     (SELECT min(look_at)
                        FROM postrider.cancelling
                       WHERE subscription_id
                             <> current_setting('postrider.cancelling')::bigint),
                     (SELECT min(wake_at)
                        FROM postrider.turn
                       WHERE wake_at IS NOT NULL
                         AND rest = 'deleted')) AS next_at) w;
