-- lane_reclaim: take over leases that ran out.
--
--   $1 text      worker, unique to one dispatcher process
--   $2 integer   most lanes
--   $3 bigint    length of the new lease, microseconds
--
-- Returns one row a lane.  The new token shuts the old worker out, and the
-- outcome "lease expired" is recorded under it like any other.  If that never
-- happens, this lease runs out too, and the next worker does the same.

WITH expired AS MATERIALIZED (
    SELECT id
      FROM postrider.lane
     WHERE lease_until <= statement_timestamp()
       AND lease_token IS NOT NULL
     ORDER BY lease_until
     LIMIT $2::integer
       FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE postrider.lane l
       SET lease_token = gen_random_uuid(),
           lease_until = statement_timestamp()
                         + $3::bigint * interval '1 microsecond',
           lease_worker = $1
      FROM expired x
     WHERE l.id = x.id
    RETURNING l.id, l.subscription_id, l.head_id, l.lease_token, l.attempts
)
SELECT t.id AS lane_id,
       t.subscription_id,
       t.head_id,
       t.lease_token,
       t.attempts,
       s.max_attempts,
       s.retry_base_ms,
       s.retry_cap_ms
  FROM taken t
  JOIN postrider.subscription s ON s.id = t.subscription_id;
