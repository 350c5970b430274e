-- delivery_taken: record deliveries that were taken.
--
--   $1 bigint[]  lane
--   $2 uuid[]    the token of our lease
--   $3 bigint[]  version of the subscription when it was leased
--   $4 integer[] HTTP status
--   $5 bigint[]  duration in microseconds
--   $6 text[]    address connected to, or null
--   $7 bigint    how long a lease outlives the longest attempt, microseconds
--   $8 integer[] microseconds of each phase that there was: looking up the name;
--   $9 integer[] connecting;
--   $10 integer[] TLS;
--   $11 integer[] waiting for an answer;
--   $12 integer[] receiving it
--   $13 text[]   headers of the answer, or null
--   $14 text[]   how its body begins, or null
--   $15 bigint[] when the event was accepted, microseconds since 1970, or null
--   $16 boolean  whether next heads may come back to us
--   $17 boolean  whether turn_share holds the turns: else only those that come back
--                are recorded
--
-- Any of $8 to $14 is null if it would hold nothing but nulls.
--
-- What delivery_record, and what comes with it, does for nearly every delivery, in
-- one statement: the lane goes straight on, or has come to its end, or lets others
-- go first.  No replay, no circuit, no failure is touched.  Of turns, only one that
-- rests at its limit, or had nothing due, goes back into the round.
--
-- Returns one row for each that it recorded, with its place in the arrays, from 1;
-- for those whose next head comes back, which are the first, with the new token and
-- what the next attempt, its head's first, needs but the body.  event_bodies follows,
-- and answers in the order of these rows: both are told from `moved` as it stands,
-- also if it is empty.  wake_in_us is 0 if a turn is back in the round.  One that is
-- missing is as it was, for whatever reason, and delivery_record decides.
--
-- An only attempt of which nothing more is to be said goes into the delivery's own
-- row, which is written anyway; others are rows.
--
-- A lane that never ends is recorded alone, so what counts is also what one costs:
-- parts that the executor has to set up, each some microseconds.
--
-- The lock is had after the tables were seen, so it holds only for a lane which
-- nobody has written meanwhile, to append to it or to put a replay into it: its row
-- is where it was.  (Minor versions from November 2025 on return no row that has
-- moved; earlier ones return it from its new place.)  Lanes are locked in the order
-- of lane_hold, turns in that of turn_settle.
--
-- A lane without an asset is deleted without a lock first: nothing is appended to it,
-- and whoever else writes it passes what is locked, so that it comes last is no
-- matter.
--
-- When it is recorded is asked once the first lane is locked, not as the statement
-- begins: the transaction has its number only then, and history_step relies on
-- that order.  A lane that lets others go first is due from then on: claims no longer
-- look at what was due long ago.

WITH own AS MATERIALIZED (
    SELECT o.ord, o.status, o.duration_us, o.remote, o.dns_us, o.connect_us,
           o.tls_us, o.wait_us, o.receive_us, o.headers, o.excerpt,
           o.accepted_us,
           l.lane_at, l.id AS lane_id, l.subscription_id, l.asset, l.tail_id,
           l.head_id, l.attempts, l.lease_worker, l.leased_at,
           t.rest, t.due_from, s.timeout_ms, s.version,
           l.lane_xmin,
           l.attempts = 1 AND o.headers IS NULL AND o.excerpt IS NULL
               AS is_wordless,
           n.id AS next_id, n.event_no AS next_event_no
      FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::integer[],
                  $5::bigint[], $6::text[], $8::integer[], $9::integer[],
                  $10::integer[], $11::integer[], $12::integer[], $13::text[],
                  $14::text[], $15::bigint[])
           WITH ORDINALITY
           AS o (lane_id, token, version, status, duration_us, remote, dns_us,
                 connect_us, tls_us, wait_us, receive_us, headers, excerpt,
                 accepted_us, ord)
     CROSS JOIN LATERAL (
           SELECT *, ctid AS lane_at, xmin AS lane_xmin
             FROM postrider.lane
            WHERE id = o.lane_id
           OFFSET 0) l
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[l.subscription_id])
      JOIN postrider.turn t
        ON t.subscription_id = ANY (ARRAY[l.subscription_id])
      LEFT JOIN LATERAL (
           SELECT id, event_no, attempts
             FROM postrider.delivery
            WHERE l.tail_id > l.head_id
              AND lane_id = l.id
              AND id > l.head_id
              AND state = 'pending'
            ORDER BY id
            LIMIT 1) n ON true
     WHERE l.lease_token = o.token
       AND l.lease_until > statement_timestamp()
       AND l.resume_id IS NULL
       AND coalesce(n.attempts, 0) = 0
       AND s.version = o.version
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
), crowded AS MATERIALIZED (
    SELECT o.subscription_id
      FROM (SELECT DISTINCT subscription_id, due_from
              FROM own
             WHERE next_id IS NOT NULL) o
     WHERE EXISTS (
           SELECT
             FROM postrider.lane w
            WHERE w.subscription_id = o.subscription_id
              AND w.due_at >= o.due_from
              AND w.due_at < statement_timestamp() - interval '1 second')
), judged AS MATERIALIZED (
    SELECT *
      FROM (SELECT *,
                   $16
                   AND next_id IS NOT NULL
                   AND (leased_at > statement_timestamp()
                                    - interval '250 ms'
                        OR subscription_id
                           <> ALL (ARRAY (
                              SELECT subscription_id FROM crowded)))
                   AS hands_back,
                   asset IS NULL AND next_id IS NULL AS is_last
              FROM own
            OFFSET 0) o
     WHERE hands_back
        OR $17
     ORDER BY subscription_id, asset COLLATE "C", lane_id
), ended AS (
    DELETE FROM postrider.lane l
     USING judged j
     WHERE l.ctid = j.lane_at
       AND l.xmin = j.lane_xmin
       AND j.is_last
    RETURNING j.*
), held AS MATERIALIZED (
    SELECT j.*
      FROM judged j
     CROSS JOIN LATERAL (
           SELECT ctid AS lane_at
             FROM postrider.lane
            WHERE ctid = j.lane_at
              FOR NO KEY UPDATE) l
     WHERE NOT j.is_last
       AND l.lane_at = j.lane_at
     UNION ALL
    SELECT *
      FROM ended
), finished AS (
    UPDATE postrider.delivery d
       SET state = 'delivered',
           attempts = h.attempts,
           status = h.status,
           finished_at = statement_timestamp(),
           duration_us = CASE
                             WHEN h.is_wordless AND d.generation = 1
                             THEN h.duration_us
                         END,
           dns_us = CASE
                        WHEN h.is_wordless AND d.generation = 1
                        THEN h.dns_us
                    END,
           connect_us = CASE
                            WHEN h.is_wordless AND d.generation = 1
                            THEN h.connect_us
                        END,
           tls_us = CASE
                        WHEN h.is_wordless AND d.generation = 1
                        THEN h.tls_us
                    END,
           wait_us = CASE
                         WHEN h.is_wordless AND d.generation = 1
                         THEN h.wait_us
                     END,
           receive_us = CASE
                            WHEN h.is_wordless AND d.generation = 1
                            THEN h.receive_us
                        END,
           worker = CASE
                        WHEN h.is_wordless AND d.generation = 1
                        THEN h.lease_worker
                    END,
           remote = CASE
                        WHEN h.is_wordless AND d.generation = 1
                        THEN h.remote
                    END
      FROM held h
     WHERE d.id = ANY (ARRAY[h.head_id])
    RETURNING h.*, d.generation,
              h.is_wordless AND d.generation = 1 AS is_only
), attempted AS (
    INSERT INTO postrider.other_attempt
           (delivery_id, generation, attempt, started_at, duration_us, ended,
            status, worker, remote, dns_us, connect_us, tls_us, wait_us,
            receive_us, headers, excerpt)
    SELECT head_id, generation, attempts,
           statement_timestamp() - duration_us * interval '1 microsecond',
           duration_us, 'answered', status, lease_worker, remote, dns_us,
           connect_us, tls_us, wait_us, receive_us, headers, excerpt
      FROM finished
     WHERE NOT is_only
), tallied AS (
    INSERT INTO postrider.history_tally
           (recorded_at, verdict, subscription_ids, attempt_us, delivery_us)
    SELECT (SELECT clock_timestamp()), 'delivered', array_agg(subscription_id),
           array_agg(duration_us::real),
           array_agg((CASE
                          WHEN generation = 1
                          THEN (SELECT 1000000 * date_part('epoch',
                                                           clock_timestamp()))
                               - accepted_us
                      END)::real)
      FROM finished
    HAVING count(*) > 0
), emptied AS (
    DELETE FROM postrider.lane l
     USING held h
     WHERE l.ctid = h.lane_at
       AND h.next_id IS NULL
       AND NOT h.is_last
), moved AS (
    UPDATE postrider.lane l
       SET head_id = h.next_id,
           head_event_no = h.next_event_no,
           resume_at = NULL,
           attempts = h.hands_back::integer,
           due_at = CASE WHEN NOT h.hands_back THEN clock_timestamp() END,
           lease_token = CASE
                             WHEN h.hands_back THEN (SELECT gen_random_uuid())
                         END,
           lease_until = CASE
                             WHEN h.hands_back
                             THEN statement_timestamp()
                                  + h.timeout_ms * interval '1 millisecond'
                                  + $7::bigint * interval '1 microsecond'
                         END,
           look_at = CASE WHEN h.hands_back THEN l.look_at END,
           leased_at = CASE WHEN h.hands_back THEN l.leased_at END,
           lease_worker = CASE WHEN h.hands_back THEN l.lease_worker END
      FROM held h
     WHERE l.ctid = h.lane_at
       AND h.next_id IS NOT NULL
    RETURNING h.ord, l.lease_token, l.id, l.subscription_id, h.version,
              l.head_id, l.head_event_no, h.timeout_ms,
              l.tail_id > l.head_id AS goes_on
), woken AS (
    UPDATE postrider.turn t
       SET rest = NULL,
           wake_at = NULL,
           entered_at = clock_timestamp()
      FROM (SELECT DISTINCT subscription_id
              FROM held
             WHERE NOT hands_back
               AND (rest = 'limit' OR (rest = 'idle' AND next_id IS NOT NULL))
             ORDER BY subscription_id) h
     WHERE t.subscription_id = ANY (ARRAY[h.subscription_id])
       AND t.rest IN ('idle', 'limit')
    RETURNING 0::bigint AS wake_in_us
)
SELECT ord,
       lease_token,
       id AS lane_id,
       subscription_id,
       version,
       head_id,
       head_event_no,
       timeout_ms,
       goes_on,
       NULL::bigint AS wake_in_us
  FROM moved
 WHERE lease_token IS NOT NULL
   AND (SELECT set_config('postrider.heads',
                          (SELECT array_agg(head_event_no)::text
                             FROM moved
                            WHERE lease_token IS NOT NULL),
                          false)) IS NOT NULL
 UNION ALL
SELECT ord, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       (SELECT wake_in_us FROM woken LIMIT 1)
  FROM held
 WHERE NOT hands_back;
