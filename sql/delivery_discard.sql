-- delivery_discard: give up a dead letter for good.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    delivery, its lane held by discard_hold
--
-- Returns nothing of interest: replay_answer says what became of it.  A lane
-- that it held goes on as after any outcome: with the first replay that waits,
-- else with the first that was not sent yet, from the place at which its course
-- stands; or it is over.

WITH given_up AS (
    UPDATE postrider.delivery d
       SET state = 'cancelled'
      FROM postrider.subscription s
     WHERE d.id = $3
       AND d.subscription_id = $2
       AND d.state = 'dead'
       AND s.id = d.subscription_id
       AND s.state <> 'deleted'
       AND ($1::bigint IS NULL OR s.tenant_id = $1)
    RETURNING d.id, d.lane_id
), forgotten AS (
    DELETE FROM postrider.dead_letter x
     USING given_up g
     WHERE x.delivery_id = ANY (ARRAY[g.id])
), next AS MATERIALIZED (
    SELECT l.id,
           r.id AS replay_id,
           CASE WHEN r.id IS NOT NULL THEN l.next_id END AS resume_id,
           coalesce(r.id, n.id) AS head_id,
           coalesce(r.event_no, n.event_no) AS event_no,
           coalesce(r.attempts, n.attempts) AS attempts
      FROM given_up g
     CROSS JOIN LATERAL (
           SELECT id, coalesce(resume_id, head_id + 1) AS next_id
             FROM postrider.lane
            WHERE id = g.lane_id
              AND head_id = g.id
           OFFSET 0) l
      LEFT JOIN LATERAL (
           SELECT d.id, d.event_no, d.attempts
             FROM postrider.replay p
             JOIN postrider.delivery d ON d.id = ANY (ARRAY[p.delivery_id])
            WHERE p.lane_id = l.id
            ORDER BY p.delivery_id
            LIMIT 1) r ON true
      LEFT JOIN LATERAL (
           SELECT d.id, d.event_no, d.attempts
             FROM postrider.delivery d
            WHERE r.id IS NULL
              AND d.lane_id = l.id
              AND d.id >= l.next_id
              AND d.state = 'pending'
            ORDER BY d.id
            LIMIT 1) n ON true
), taken_up AS (
    DELETE FROM postrider.replay r
     USING next n
     WHERE r.lane_id = ANY (ARRAY[n.id])
       AND r.delivery_id = n.replay_id
), emptied AS (
    DELETE FROM postrider.lane l
     USING next n
     WHERE l.id = ANY (ARRAY[n.id])
       AND n.head_id IS NULL
)
UPDATE postrider.lane l
   SET head_id = n.head_id,
       head_event_no = n.event_no,
       resume_id = n.resume_id,
       attempts = n.attempts,
       due_at = statement_timestamp()
  FROM next n
 WHERE l.id = ANY (ARRAY[n.id])
   AND n.head_id IS NOT NULL;
