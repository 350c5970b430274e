-- lane_claim: lease lanes whose heads may be sent now.
--
--   $1 integer   most lanes in all
--   $2 text      worker, unique to one dispatcher process
--   $3 bigint    how long a lease outlives the longest attempt, microseconds
--   $4 bigint    within how long a request at a rate begins, microseconds
--   $5 integer   dice, 0 to 999999: whether the places below move on
--
-- Follows turn_take in its transaction, for at most as many turns as $1, and
-- returns one row a lane, with what the attempt needs but the body: event_bodies
-- follows the commit, and is told by a setting, which is written also where nothing
-- was leased: that is what the count at the end is for.  has_more, the same in all
-- rows: some subscription used up its part of $1, and may have more to be sent.
-- goes_on: something is behind the head.  Where nothing was leased the commit need
-- not be flushed: what it has to tell is found anew.
--
-- Each tenant gets an even share of $1, and of that each of its subscriptions;
-- never more than its limit and its rate leave.  Its limit is a lower one while
-- its endpoint is slowed down.  Of a circuit that is not closed it gets one, once
-- nothing else is under way: the probe, which makes it half open.  turn_take's
-- lock makes all that exact.  Lanes that another session holds are passed over.
-- One that moved since the statement began is left for the next pass.
--
-- The rate is a token bucket that holds a second's worth, kept as the one time
-- at which it will be full (GCRA).  A request may begin up to $4 after it is
-- granted here, so each is charged as if it began then: whatever the delays, a
-- receiver never sees more than rate * (t + 1) begin in t seconds.
--
-- Where something holds back vacuum, all that was ever claimed lies dead before
-- what can be claimed now.  So lanes are read, and leases counted, from where the
-- first of them was when somebody last looked: by chance, once in some thousand
-- lanes.  Each turn is swept from the start every ten seconds.  due_from stays
-- behind the clock, for what is being committed meanwhile; leased_from need not,
-- since a lease is made under the turn's lock, and never before it, whatever the
-- clock does.

WITH taken AS MATERIALIZED (
    SELECT t.subscription_id,
           t.tenant_id,
           t.circuit,
           greatest(t.rate_at, statement_timestamp()
                               + $4::bigint * interval '1 microsecond')
               AS rate_at,
           t.rate_at <= statement_timestamp()
                        + r.burst * interval '1 second' AS has_token,
           r.burst,
           t.swept_at BETWEEN statement_timestamp() - interval '10 seconds'
                          AND statement_timestamp() AS is_swept,
           t.due_from,
           t.leased_from,
           s.timeout_ms,
           s.version,
           postrider.in_flight_limit(t.circuit, s.max_in_flight, t.slowed_to)
               AS in_flight_limit,
           s.rate_per_second
      FROM unnest(coalesce(nullif(current_setting('postrider.taken', true), ''),
                           '{}')::bigint[])
           AS o (subscription_id)
     CROSS JOIN LATERAL (
           SELECT *
             FROM postrider.turn
            WHERE subscription_id = o.subscription_id
           OFFSET 0) t
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[t.subscription_id])
     CROSS JOIN LATERAL (
           SELECT greatest(1 - 1 / s.rate_per_second, 0) AS burst
           OFFSET 0) r
     WHERE t.rest IS NULL
       AND s.state = 'active'
), share AS MATERIALIZED (
    SELECT t.subscription_id,
           t.timeout_ms,
           t.version,
           t.rate_per_second,
           t.rate_at,
           t.circuit,
           t.is_swept,
           t.leased_from,
           CASE WHEN t.is_swept THEN t.due_from ELSE '-infinity' END
               AS due_from,
           greatest($1::integer
                    / (SELECT count(DISTINCT tenant_id) FROM taken)
                    / count(*) OVER (PARTITION BY t.tenant_id), 1)
               AS part,
           least(t.in_flight_limit
                 - (SELECT count(*)
                      FROM postrider.lane l
                     WHERE l.subscription_id = t.subscription_id
                       AND l.leased_at >= t.leased_from),
                 CASE
                     WHEN t.rate_per_second IS NULL THEN NULL
                     WHEN t.has_token
                     THEN greatest(1 + floor(
                              (t.burst - extract(epoch FROM
                                   t.rate_at - statement_timestamp()))
                              * t.rate_per_second), 1)
                     ELSE 0
                 END) AS room
      FROM taken t
), due AS MATERIALIZED (
    SELECT l.lane_at, share.*
      FROM share
     CROSS JOIN LATERAL (
           SELECT ctid AS lane_at
             FROM postrider.lane
            WHERE subscription_id = share.subscription_id
              AND due_at >= share.due_from
              AND due_at <= statement_timestamp()
            ORDER BY due_at, id
            LIMIT greatest(least(share.part, share.room), 0)::bigint
              FOR NO KEY UPDATE SKIP LOCKED) l
     LIMIT $1::integer
), leased AS (
    UPDATE postrider.lane l
       SET due_at = NULL,
           lease_token = (SELECT gen_random_uuid()),
           lease_until = statement_timestamp()
                         + d.timeout_ms * interval '1 millisecond'
                         + $3::bigint * interval '1 microsecond',
           look_at = statement_timestamp()
                     + d.timeout_ms * interval '1 millisecond'
                     + $3::bigint * interval '1 microsecond',
           leased_at = greatest(statement_timestamp(), d.leased_from),
           lease_worker = $2,
           attempts = l.attempts + 1
      FROM due d
     WHERE l.ctid = d.lane_at
    RETURNING l.id, l.subscription_id, l.lease_token, l.attempts,
              l.head_id, l.head_event_no, l.tail_id > l.head_id AS goes_on,
              d.timeout_ms, d.version,
              d.rate_per_second, d.rate_at, d.circuit, d.is_swept, d.due_from,
              d.leased_from, d.part, d.room
), given AS MATERIALIZED (
    SELECT subscription_id, rate_per_second, rate_at, circuit, is_swept,
           due_from, leased_from,
           count(*) AS n,
           count(*) = part AND count(*) < room AS has_more,
           $5::integer::bigint * CASE WHEN is_swept THEN 1000 ELSE 16 END
           < count(*) * 1000000 AS moves
      FROM leased
     GROUP BY subscription_id, rate_per_second, rate_at, circuit, is_swept,
              due_from, leased_from, part, room
), marked AS (
    UPDATE postrider.turn t
       SET rate_at = CASE
                         WHEN g.rate_per_second IS NULL THEN t.rate_at
                         ELSE g.rate_at + g.n / g.rate_per_second
                                          * interval '1 second'
                     END,
           circuit = CASE g.circuit
                         WHEN 'open' THEN 'half_open'
                         ELSE t.circuit
                     END,
           due_from = CASE
                          WHEN g.moves
                          THEN (SELECT least(min(l.due_at),
                                             statement_timestamp()
                                             - interval '2 seconds')
                                  FROM postrider.lane l
                                 WHERE l.subscription_id = g.subscription_id
                                   AND l.due_at >= g.due_from)
                          ELSE t.due_from
                      END,
           leased_from = CASE
                           WHEN g.moves
                           THEN (SELECT least(min(l.leased_at),
                                              statement_timestamp())
                                   FROM postrider.lane l
                                  WHERE l.subscription_id = g.subscription_id
                                    AND l.leased_at >= g.leased_from)
                           ELSE t.leased_from
                       END,
           swept_at = CASE
                          WHEN g.moves AND NOT g.is_swept
                          THEN statement_timestamp()
                          ELSE t.swept_at
                      END
      FROM given g
     WHERE t.subscription_id = ANY (ARRAY[g.subscription_id])
       AND (g.rate_per_second IS NOT NULL
            OR g.circuit = 'open'
            OR g.moves)
), told AS MATERIALIZED (
    SELECT set_config('postrider.heads',
                      (SELECT array_agg(head_event_no ORDER BY head_id)::text
                         FROM leased), false),
           CASE
               WHEN NOT EXISTS (SELECT FROM leased)
               THEN set_config('synchronous_commit', 'off', true)
           END,
           (SELECT bool_or(has_more) FROM given) AS has_more
)
SELECT l.id AS lane_id,
       l.subscription_id,
       l.lease_token,
       l.attempts,
       l.head_id,
       l.head_event_no,
       l.timeout_ms,
       l.version,
       l.goes_on,
       CASE WHEN l.rate_per_second IS NOT NULL THEN $4 END AS begin_within_us,
       (SELECT has_more FROM told) AS has_more
  FROM leased l
 WHERE (SELECT count(*) FROM told) = 1
 ORDER BY l.head_id;
