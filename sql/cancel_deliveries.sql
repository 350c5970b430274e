-- cancel_deliveries: cancel what is pending in the lanes that cancel_hold took.
--
--   $1 integer   most deliveries
--
-- Returns nothing of interest: cancel_lanes looks at what is left.
--
-- Of each lane its head, then the replays that wait in it, then what follows.  A
-- leased head is left until its outcome is recorded, which wakes the turn.

WITH free AS MATERIALIZED (
    SELECT l.id, l.head_id, l.tail_id, l.attempts,
           coalesce(l.resume_id, l.head_id + 1) AS next_id
      FROM unnest(current_setting('postrider.cancelling_lanes')::bigint[])
           WITH ORDINALITY AS x (lane_id, ord)
     CROSS JOIN LATERAL (
           SELECT *
             FROM postrider.lane
            WHERE id = x.lane_id
           OFFSET 0) l
     WHERE l.lease_token IS NULL
     ORDER BY x.ord
), pending AS MATERIALIZED (
    SELECT f.id AS lane_id, f.head_id, f.attempts, p.delivery_id
      FROM free f
     CROSS JOIN LATERAL (
           SELECT f.head_id AS delivery_id
            UNION ALL
           (SELECT delivery_id
              FROM postrider.replay
             WHERE lane_id = f.id
             ORDER BY delivery_id)
            UNION ALL
           (SELECT id
              FROM postrider.delivery
             WHERE f.tail_id >= f.next_id
               AND lane_id = f.id
               AND id >= f.next_id
               AND state = 'pending'
             ORDER BY id)) p
     LIMIT $1::integer
), cancelled AS (
    UPDATE postrider.delivery d
       SET state = 'cancelled',
           attempts = CASE
                          WHEN d.id = p.head_id THEN p.attempts
                          ELSE d.attempts
                      END,
           finished_at = statement_timestamp()
      FROM pending p
     WHERE d.id = ANY (ARRAY[p.delivery_id])
       AND d.state = 'pending'
    RETURNING 1
), given_up AS (
    DELETE FROM postrider.replay r
     USING pending p
     WHERE r.lane_id = ANY (ARRAY[p.lane_id])
       AND r.delivery_id = p.delivery_id
)
SELECT set_config('postrider.cancelled', count(*)::text, true)
  FROM cancelled;
