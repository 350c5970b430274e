-- lane_claim: lease lanes whose heads may be sent now.
--
--   $1 integer   most lanes in all
--   $2 text      worker, unique to one dispatcher process
--   $3 bigint    how long a lease outlives the longest attempt, microseconds
--
-- Follows turn_take in its transaction, for at most as many turns as $1, and
-- returns one row a lane, with what the attempt needs.  The body is null if the
-- head came into view only after this statement began, or was purged:
-- event_body tells.
--
-- Each subscription gets an even share of $1, and never more than its limit
-- leaves: turn_take's lock makes the count exact.  Lanes that another session
-- holds are passed over.  A row lock reads the lane as it is now, not as the
-- statement first saw it, so a lane that moved meanwhile is leased by its
-- present head.

WITH taken AS MATERIALIZED (
    SELECT subscription_id
      FROM postrider.turn
     WHERE rest IS NULL
       AND served_at = now()
       AND xmin = pg_current_xact_id()::xid
), share AS MATERIALIZED (
    SELECT s.id AS subscription_id,
           s.timeout_ms,
           least(greatest($1::integer / (SELECT count(*) FROM taken), 1),
                 s.max_in_flight
                 - (SELECT count(*)
                      FROM postrider.lane l
                     WHERE l.subscription_id = s.id
                       AND l.lease_token IS NOT NULL)) AS room
      FROM taken t
      JOIN postrider.subscription s ON s.id = t.subscription_id
     WHERE s.state = 'active'
), due AS MATERIALIZED (
    SELECT l.id, share.timeout_ms
      FROM share
     CROSS JOIN LATERAL (
           SELECT id
             FROM postrider.lane
            WHERE subscription_id = share.subscription_id
              AND due_at <= statement_timestamp()
            ORDER BY due_at, id
            LIMIT greatest(share.room, 0)
              FOR NO KEY UPDATE SKIP LOCKED) l
     LIMIT $1::integer
), leased AS (
    UPDATE postrider.lane l
       SET due_at = NULL,
           lease_token = gen_random_uuid(),
           lease_until = statement_timestamp()
                         + d.timeout_ms * interval '1 millisecond'
                         + $3::bigint * interval '1 microsecond',
           lease_worker = $2,
           attempts = l.attempts + 1
      FROM due d
     WHERE l.id = d.id
    RETURNING l.id, l.subscription_id, l.lease_token, l.attempts,
              l.head_id, l.head_event_no, d.timeout_ms
)
SELECT l.id AS lane_id,
       l.subscription_id,
       l.lease_token,
       l.attempts,
       l.head_id,
       l.head_event_no,
       l.timeout_ms,
       s.version,
       e.event_id,
       e.body
  FROM leased l
  JOIN postrider.subscription s ON s.id = l.subscription_id
  LEFT JOIN postrider.event e ON e.event_no = l.head_event_no
 ORDER BY l.head_id;
