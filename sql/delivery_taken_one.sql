-- delivery_taken_one: record a delivery that was taken, of a lane that goes on.
--
--   $1 bigint    lane
--   $2 uuid      the token of our lease
--   $3 bigint    version of the subscription when it was leased
--   $4 integer   HTTP status
--   $5 bigint    duration in microseconds
--   $6 text      address connected to, or null
--   $7 bigint    how long a lease outlives the longest attempt, microseconds
--   $8 integer   microseconds of each phase that there was: looking up the name;
--   $9 integer   connecting;
--   $10 integer  TLS;
--   $11 integer  waiting for an answer;
--   $12 integer  receiving it
--   $13 text     headers of the answer, or null
--   $14 text     how its body begins, or null
--   $15 bigint   when the event was accepted, microseconds since 1970, or null
--
-- delivery_taken for one lane, whose next head comes back to us: under the same
-- conditions, with the same columns, and event_bodies follows.  Without a row it did
-- nothing, for whatever reason, and delivery_taken decides.
--
-- One record after the other is all that a lane can do which has much behind it and
-- nothing beside it, so what counts is what one takes: there are no arrays here, and
-- nothing that such a lane does not need, since each part of a plan costs some
-- microseconds to set up.
--
-- The lane is written only as it was seen, as there, and first: with that the
-- transaction has its number, before the time at which it was recorded is asked.

WITH own AS MATERIALIZED (
    SELECT l.ctid AS lane_at, l.xmin AS lane_xmin, l.head_id, l.attempts,
           l.lease_worker, s.timeout_ms, d.generation,
           l.attempts = 1 AND d.generation = 1 AND $13::text IS NULL
               AND $14::text IS NULL AS is_only,
           n.id AS next_id, n.event_no AS next_event_no
      FROM postrider.lane l
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[l.subscription_id])
      JOIN postrider.turn t
        ON t.subscription_id = ANY (ARRAY[l.subscription_id])
      JOIN postrider.delivery d ON d.id = ANY (ARRAY[l.head_id])
     CROSS JOIN LATERAL (
           SELECT id, event_no, attempts
             FROM postrider.delivery
            WHERE lane_id = l.id
              AND id > l.head_id
              AND state = 'pending'
            ORDER BY id
            LIMIT 1) n
     WHERE l.id = $1::bigint
       AND l.lease_token = $2::uuid
       AND l.lease_until > statement_timestamp()
       AND l.resume_id IS NULL
       AND n.attempts = 0
       AND s.version = $3::bigint
       AND s.state = 'active'
       AND s.rate_per_second IS NULL
       AND t.circuit = 'closed'
       AND t.failures = 0
       AND t.slowed_to IS NULL
       AND coalesce(t.rest, 'idle') IN ('idle', 'limit')
       AND NOT EXISTS (
           SELECT
             FROM postrider.replay
            WHERE lane_id = l.id)
       AND (l.leased_at > statement_timestamp() - interval '250 ms'
            OR NOT EXISTS (
               SELECT
                 FROM postrider.lane w
                WHERE w.subscription_id = l.subscription_id
                  AND w.due_at >= t.due_from
                  AND w.due_at < statement_timestamp() - interval '1 second'))
), moved AS (
    UPDATE postrider.lane l
       SET head_id = o.next_id,
           head_event_no = o.next_event_no,
           resume_at = NULL,
           attempts = 1,
           lease_token = gen_random_uuid(),
           lease_until = statement_timestamp()
                         + o.timeout_ms * interval '1 millisecond'
                         + $7::bigint * interval '1 microsecond'
      FROM own o
     WHERE l.ctid = o.lane_at
       AND l.xmin = o.lane_xmin
    RETURNING l.id, l.subscription_id, l.lease_token, l.head_event_no,
              l.tail_id > l.head_id AS goes_on,
              o.head_id, o.attempts, o.lease_worker, o.timeout_ms,
              o.generation, o.is_only, o.next_id
), finished AS (
    UPDATE postrider.delivery d
       SET state = 'delivered',
           attempts = m.attempts,
           status = $4::integer,
           finished_at = statement_timestamp(),
           duration_us = CASE WHEN m.is_only THEN $5::bigint END,
           dns_us = CASE WHEN m.is_only THEN $8::integer END,
           connect_us = CASE WHEN m.is_only THEN $9::integer END,
           tls_us = CASE WHEN m.is_only THEN $10::integer END,
           wait_us = CASE WHEN m.is_only THEN $11::integer END,
           receive_us = CASE WHEN m.is_only THEN $12::integer END,
           worker = CASE WHEN m.is_only THEN m.lease_worker END,
           remote = CASE WHEN m.is_only THEN $6::text END
      FROM moved m
     WHERE d.id = ANY (ARRAY[m.head_id])
    RETURNING m.subscription_id, m.head_id, m.generation, m.attempts,
              m.lease_worker, m.is_only
), attempted AS (
    INSERT INTO postrider.other_attempt
           (delivery_id, generation, attempt, started_at, duration_us, ended,
            status, worker, remote, dns_us, connect_us, tls_us, wait_us,
            receive_us, headers, excerpt)
    SELECT head_id, generation, attempts,
           statement_timestamp() - $5::bigint * interval '1 microsecond',
           $5, 'answered', $4, lease_worker, $6, $8, $9, $10, $11, $12, $13,
           $14
      FROM finished
     WHERE NOT is_only
), tallied AS (
    INSERT INTO postrider.history_tally
           (recorded_at, verdict, subscription_ids, attempt_us, delivery_us)
    SELECT clock_timestamp(), 'delivered', ARRAY[subscription_id],
           ARRAY[$5::real],
           ARRAY[(CASE
                      WHEN generation = 1
                      THEN 1000000 * date_part('epoch', clock_timestamp())
                           - $15::bigint
                  END)::real]
      FROM finished
)
SELECT 1::bigint AS ord,
       lease_token,
       id AS lane_id,
       subscription_id,
       $3::bigint AS version,
       next_id AS head_id,
       head_event_no,
       timeout_ms,
       goes_on,
       NULL::bigint AS wake_in_us
  FROM moved
 WHERE (SELECT set_config('postrider.heads',
                          (SELECT ARRAY[head_event_no]::text FROM moved),
                          false)) IS NOT NULL;
