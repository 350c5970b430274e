-- lane_reclaim: take over leases that ran out.
--
--   $1 text      worker, unique to one dispatcher process
--   $2 integer   most lanes
--   $3 bigint    length of the new lease, microseconds
--   $4 bigint    look from there (see turn_wake); null: from the start
--
-- Returns one row a lane.  The new token shuts the old worker out, and the
-- outcome "lease expired" is recorded under it like any other.  If that never
-- happens, this lease runs out too, and the next worker does the same.
--
-- A lease that was renewed since somebody looked is looked at again at its end.

WITH looked_at AS MATERIALIZED (
    SELECT id, lease_until
      FROM postrider.lane
     WHERE look_at <= statement_timestamp()
       AND look_at >= coalesce('epoch'::timestamptz
                               + $4::bigint * interval '1 microsecond',
                               '-infinity')
     ORDER BY look_at
     LIMIT $2::integer
       FOR NO KEY UPDATE SKIP LOCKED
), renewed AS (
    UPDATE postrider.lane l
       SET look_at = x.lease_until,
           leased_at = greatest(statement_timestamp(), l.leased_at)
      FROM looked_at x
     WHERE l.id = ANY (ARRAY[x.id])
       AND x.lease_until > statement_timestamp()
), taken AS (
    UPDATE postrider.lane l
       SET lease_token = gen_random_uuid(),
           lease_until = statement_timestamp()
                         + $3::bigint * interval '1 microsecond',
           look_at = statement_timestamp()
                     + $3::bigint * interval '1 microsecond',
           lease_worker = $1
      FROM looked_at x
     WHERE l.id = ANY (ARRAY[x.id])
       AND x.lease_until <= statement_timestamp()
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
  JOIN postrider.subscription s ON s.id = ANY (ARRAY[t.subscription_id]);
