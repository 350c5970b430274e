-- replay_place: begin new generations, each in its event's own place.
--
-- Follows replay_hold.  Returns how many there are; work_share and work_ready follow,
-- and are told by a setting whether there is work.
--
-- What was purged, or what somebody else has replayed or discarded meanwhile,
-- is passed over: the event's and the delivery's own rows decide, under their
-- locks.  In a replay of events any finished delivery begins anew, and an event
-- without one gets it, in the block of positions that its number is the first
-- of.  An attempt that the delivery keeps itself is one of several now, and moves
-- to the others.
--
-- Where a replay goes in its lane:
--
--   behind the place from which the lane goes on: it is pending, that is all
--   the lane is leased                           it waits in postrider.replay
--   the lane is held by a dead letter            the same; if it is that one,
--                                                the lane goes on with it
--   the lane waits, with a later head            it becomes the head, as in
--                                                delivery_record
--   the lane waits, with an earlier replay       it waits in postrider.replay
--
-- A new lane begins with the first of them.

WITH asked AS MATERIALIZED (
    SELECT r.event_no, s.id AS subscription_id, d.id AS delivery_id,
           d.generation, d.status, d.finished_at, d.duration_us, d.dns_us,
           d.connect_us, d.tls_us, d.wait_us, d.receive_us, d.worker, d.remote,
           b.event_no IS NOT NULL AND s.state <> 'deleted' AS is_open,
           o.is_ordered, l.id AS lane_id
      FROM unnest(current_setting('postrider.replay_events')::bigint[])
           AS r (event_no)
      JOIN postrider.event e ON e.event_no = ANY (ARRAY[r.event_no])
      LEFT JOIN LATERAL (
           SELECT event_no
             FROM postrider.event
            WHERE event_no = r.event_no
              AND body IS NOT NULL
              FOR KEY SHARE) b ON true
      JOIN postrider.subscription s
        ON s.id = current_setting('postrider.replay_subscription')::bigint
      LEFT JOIN postrider.delivery d
        ON d.event_no = ANY (ARRAY[r.event_no])
       AND d.subscription_id = s.id
     CROSS JOIN LATERAL (
           SELECT CASE
                      WHEN d.id IS NOT NULL THEN d.lane_id IS NOT NULL
                      ELSE current_setting('postrider.replay_ordering')
                           = 'asset'
                           AND e.asset IS NOT NULL
                  END AS is_ordered) o
      LEFT JOIN LATERAL (
           SELECT id
             FROM postrider.lane
            WHERE subscription_id = s.id
              AND asset = e.asset
              AND asset IS NOT NULL) l ON o.is_ordered
     ORDER BY d.id
), again AS (
    UPDATE postrider.delivery d
       SET state = 'pending',
           generation = d.generation + 1,
           attempts = 0,
           status = NULL,
           finished_at = NULL,
           duration_us = NULL,
           dns_us = NULL,
           connect_us = NULL,
           tls_us = NULL,
           wait_us = NULL,
           receive_us = NULL,
           worker = NULL,
           remote = NULL,
           lane_id = a.lane_id
      FROM asked a
     WHERE d.id = ANY (ARRAY[a.delivery_id])
       AND d.generation = a.generation
       AND a.is_open
       AND (d.state = 'dead'
            OR (d.state IN ('delivered', 'cancelled')
                AND current_setting('postrider.replay_what') = 'events'))
    RETURNING d.id, d.event_no, d.lane_id, a.generation, a.status,
              a.finished_at, a.duration_us, a.dns_us, a.connect_us, a.tls_us,
              a.wait_us, a.receive_us, a.worker, a.remote
), moved_out AS (
    INSERT INTO postrider.other_attempt
           (delivery_id, generation, attempt, started_at, duration_us, ended,
            status, worker, remote, dns_us, connect_us, tls_us, wait_us,
            receive_us)
    SELECT id, generation, 1,
           finished_at - duration_us * interval '1 microsecond', duration_us,
           'answered', status, worker, remote, dns_us, connect_us, tls_us,
           wait_us, receive_us
      FROM again
     WHERE worker IS NOT NULL
), dug_up AS (
    DELETE FROM postrider.dead_letter x
     USING again a
     WHERE x.delivery_id = ANY (ARRAY[a.id])
), made AS (
    INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id)
    SELECT CASE
               WHEN p.free_id < a.event_no + 1000 THEN p.free_id
               ELSE nextval('postrider.position')
           END,
           a.event_no, a.subscription_id, a.lane_id
      FROM asked a
     CROSS JOIN LATERAL (
           SELECT coalesce(max(id), a.event_no) + 1 AS free_id
             FROM postrider.delivery
            WHERE id > a.event_no
              AND id < a.event_no + 1000) p
     WHERE a.delivery_id IS NULL
       AND a.is_open
       AND current_setting('postrider.replay_what') = 'events'
     ORDER BY a.event_no
    RETURNING id, event_no, lane_id
), begun AS MATERIALIZED (
    SELECT id, event_no, lane_id FROM again
     UNION ALL
    SELECT id, event_no, lane_id FROM made
), alone AS (
    INSERT INTO postrider.lane
           (id, subscription_id, head_id, tail_id, head_event_no, due_at)
    SELECT id, current_setting('postrider.replay_subscription')::bigint, id,
           id, event_no, statement_timestamp()
      FROM begun
     WHERE lane_id IS NULL
     ORDER BY id
), held AS MATERIALIZED (
    SELECT l.id, l.head_id, l.tail_id, l.resume_id, l.attempts,
           l.head_event_no = 0 AS is_new,
           coalesce(l.resume_id, l.head_id + 1) AS next_id,
           b.n, b.last_id, b.back_id, b.has_head,
           l.lease_token IS NULL
           AND (l.due_at IS NOT NULL OR l.head_event_no = 0 OR b.has_head)
               AS is_free
      FROM (SELECT DISTINCT lane_id FROM asked WHERE is_ordered) a
     CROSS JOIN LATERAL (
           SELECT *
             FROM postrider.lane
            WHERE id = a.lane_id
           OFFSET 0) l
     CROSS JOIN LATERAL (
           SELECT count(*) AS n,
                  max(id) AS last_id,
                  coalesce(bool_or(id = l.head_id), false) AS has_head,
                  min(id) FILTER (WHERE l.head_event_no = 0
                                     OR id < l.head_id) AS back_id
             FROM begun
            WHERE lane_id = l.id) b
), placed AS MATERIALIZED (
    SELECT h.*,
           f.first_id,
           f.first_id IS NOT NULL
           AND h.is_free
           AND (h.is_new OR f.first_id < h.head_id) AS moves,
           coalesce((SELECT event_no FROM begun WHERE id = f.first_id),
                    d.event_no) AS first_event_no,
           CASE WHEN f.first_id = h.back_id THEN 0 ELSE d.attempts END
               AS first_attempts
      FROM held h
     CROSS JOIN LATERAL (
           SELECT least(h.back_id,
                        (SELECT min(delivery_id)
                           FROM postrider.replay
                          WHERE lane_id = h.id
                            AND h.has_head)) AS first_id) f
      LEFT JOIN postrider.delivery d ON d.id = ANY (ARRAY[f.first_id])
), set_up AS (
    UPDATE postrider.lane l
       SET head_id = CASE WHEN p.moves THEN p.first_id ELSE l.head_id END,
           head_event_no = CASE
                               WHEN p.moves THEN p.first_event_no
                               ELSE l.head_event_no
                           END,
           tail_id = CASE
                         WHEN p.is_new THEN p.last_id
                         ELSE greatest(l.tail_id, p.last_id)
                     END,
           resume_id = CASE
                           WHEN p.moves AND NOT p.is_new
                           THEN coalesce(l.resume_id, l.head_id)
                           ELSE l.resume_id
                       END,
           resume_at = CASE
                           WHEN p.moves AND NOT p.is_new AND l.resume_id IS NULL
                           THEN l.due_at
                           ELSE l.resume_at
                       END,
           attempts = CASE
                          WHEN p.moves    THEN p.first_attempts
                          WHEN p.has_head THEN 0
                          ELSE l.attempts
                      END,
           due_at = CASE
                        WHEN p.moves OR p.has_head THEN statement_timestamp()
                        ELSE l.due_at
                    END
      FROM placed p
     WHERE l.id = ANY (ARRAY[p.id])
       AND (p.moves OR p.has_head OR p.last_id > l.tail_id)
), not_needed AS (
    DELETE FROM postrider.lane l
     USING placed p
     WHERE l.id = ANY (ARRAY[p.id])
       AND p.is_new
       AND p.n = 0
), kept AS (
    UPDATE postrider.delivery d
       SET attempts = p.attempts
      FROM placed p
     WHERE d.id = ANY (ARRAY[p.head_id])
       AND p.moves
       AND NOT p.is_new
       AND NOT p.has_head
), put_back AS (
    INSERT INTO postrider.replay (lane_id, delivery_id)
    SELECT p.id, b.id
      FROM placed p
      JOIN begun b ON b.lane_id = p.id
     WHERE NOT p.is_new
       AND b.id <> p.head_id
       AND b.id < p.next_id
       AND NOT (p.moves AND b.id = p.first_id)
     UNION ALL
    SELECT id, head_id
      FROM placed
     WHERE moves
       AND NOT is_new
       AND resume_id IS NOT NULL
), taken_up AS (
    DELETE FROM postrider.replay r
     USING placed p
     WHERE r.lane_id = ANY (ARRAY[p.id])
       AND r.delivery_id = p.first_id
       AND p.moves
)
SELECT set_config('postrider.replayed', count(*)::text, true) AS replayed,
       set_config('postrider.told',
                  CASE
                      WHEN count(*) > 0
                      THEN format('{%s}', current_setting(
                                              'postrider.replay_subscription'))
                      ELSE '{}'
                  END, true)
  FROM begun;
