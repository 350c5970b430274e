-- turn_settle: bring turns up to date with outcomes just recorded.
--
--   $1 bigint[]  subscription of each outcome, held by turn_share
--   $2 bigint[]  its lane
--   $3 integer[] what it says of the endpoint: 1 it took the request, -1 it did
--                not, 0 nothing
--   $4 bigint[]  for how many microseconds it asked not to be sent anything, 0 if
--                it was overloaded and did not say; null: neither
--   $5 bigint[]  of those, how many microseconds ago they were claimed
--
-- They are in the order in which they came; $4 and $5 are null if none asked.
-- Returns one row for each turn that is back in the round (0), or wakes at a time,
-- in microseconds from now; null for one that was deleted: dispatchers are told,
-- to cancel what its requests left.
--
-- What this statement sees may be older than what it waits for, so it only ever
-- wakes a turn earlier: another record may have done so for a lane that is not
-- seen here.  For the same reason a turn at its limit goes back into the round
-- whether or not a lane is seen that is due: acceptance leaves it alone.
--
-- The circuit opens after circuit_after failures in a row, whatever their lanes.
-- What was under way then says no more: the probe goes alone, once all that is
-- over, and makes the circuit half open, so that an outcome which comes then is
-- the probe's.  Failing, it doubles the wait for the next, up to five minutes.
-- What was not recorded, since its lease was lost, says nothing either.
--
-- An endpoint that is overloaded gets half of what it had in flight, and one more
-- whenever it has taken as many again: n successes at w make it sqrt(w * w + 2 n).
-- What was claimed before the last halving says nothing new: of all that was then
-- under way, on whatever dispatchers, one outcome halves it.  Until the time that
-- it asked for, its turn rests; a probe waits as long.

WITH judged AS MATERIALIZED (
    SELECT subscription_id,
           count(*) FILTER (WHERE says > 0) AS taken,
           count(*) FILTER (WHERE says < 0 AND ord > last_taken) AS failures,
           max(slow_us) * interval '1 microsecond' AS slow_for,
           now() - min(age_us) * interval '1 microsecond' AS slow_since,
           min(due_at) AS due_at,
           count(*) FILTER (WHERE look_at IS NULL) AS ended
      FROM (SELECT o.subscription_id, o.ord, o.says, o.slow_us, l.due_at,
                   l.look_at,
                   CASE WHEN o.slow_us IS NOT NULL THEN o.claimed_us END
                       AS age_us,
                   coalesce(max(o.ord) FILTER (WHERE o.says > 0)
                            OVER (PARTITION BY o.subscription_id), 0)
                       AS last_taken
              FROM (SELECT ord,
                           ($1::bigint[])[ord] AS subscription_id,
                           ($2::bigint[])[ord] AS lane_id,
                           ($3::integer[])[ord] AS says,
                           ($4::bigint[])[ord] AS slow_us,
                           ($5::bigint[])[ord] AS claimed_us
                      FROM unnest(coalesce(nullif(current_setting(
                                      'postrider.recorded', true), ''), '{}')
                                  ::integer[]) AS r (ord)) o
              LEFT JOIN LATERAL (
                   SELECT due_at, look_at
                     FROM postrider.lane
                    WHERE id = o.lane_id
                   OFFSET 0) l ON true) o
     GROUP BY subscription_id
     ORDER BY subscription_id
), changing AS MATERIALIZED (
    SELECT j.*, s.circuit_after, s.max_in_flight, s.tenant_id,
           least(s.retry_base_ms * 2.0 ^ least(t.circuit_opens, 20),
                 s.retry_cap_ms, 300000) * interval '1 millisecond' AS wait
      FROM judged j
      JOIN postrider.turn t
        ON t.subscription_id = ANY (ARRAY[j.subscription_id])
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[j.subscription_id])
     WHERE (t.rest = 'limit' AND j.ended > 0)
        OR (t.rest = 'deleted' AND t.wake_at IS NULL)
        OR (t.rest = 'idle'
            AND j.due_at < coalesce(t.wake_at, 'infinity'))
        OR j.slow_for IS NOT NULL
        OR (t.slowed_to IS NOT NULL AND j.taken > 0)
        OR (t.circuit = 'half_open' AND (j.taken > 0 OR j.failures > 0))
        OR (t.circuit = 'closed'
            AND s.circuit_after > 0
            AND (j.failures > 0 OR (j.taken > 0 AND t.failures > 0)))
     ORDER BY j.subscription_id
), held AS MATERIALIZED (
    SELECT c.*, t.rest, t.wake_at, t.circuit AS circuit_was,
           t.failures AS failures_were,
           t.circuit_opens, t.slowed_to, t.leased_from,
           c.slow_for IS NOT NULL
           AND coalesce(t.slowed_at NOT BETWEEN c.slow_since
                                            AND clock_timestamp(), true)
               AS halves,
           c.failures
           + CASE WHEN c.taken > 0 THEN 0 ELSE t.failures END AS run,
           CASE
               WHEN t.circuit = 'half_open'
                AND (c.taken > 0 OR c.circuit_after = 0)       THEN 'closed'
               WHEN t.circuit = 'half_open' AND c.failures > 0 THEN 'open'
               WHEN t.circuit = 'closed'
                AND c.circuit_after > 0
                AND c.failures
                    + CASE WHEN c.taken > 0 THEN 0 ELSE t.failures END
                    >= c.circuit_after                         THEN 'open'
               ELSE t.circuit
           END AS circuit
      FROM changing c
     CROSS JOIN LATERAL (
           SELECT *
             FROM postrider.turn
            WHERE subscription_id = c.subscription_id
              FOR NO KEY UPDATE) t
), next AS MATERIALIZED (
    SELECT h.*,
           CASE
               WHEN h.rest IN ('paused', 'disabled', 'deleted') THEN h.rest
               WHEN h.circuit = 'open' AND h.circuit_was <> 'open'
                                                                THEN 'circuit'
               WHEN h.slow_for > interval '0' AND h.rest IS DISTINCT FROM 'circuit'
                                                                THEN 'slowed'
               WHEN h.rest = 'idle' AND h.due_at <= statement_timestamp()
                                                                THEN NULL
               WHEN h.rest = 'limit' AND h.ended > 0            THEN NULL
               ELSE h.rest
           END AS next_rest,
           CASE
               WHEN NOT h.halves
               THEN nullif(least(sqrt(h.slowed_to ^ 2 + 2 * h.taken),
                                 h.max_in_flight), h.max_in_flight)
               ELSE greatest(coalesce(
                        h.slowed_to,
                        least(h.max_in_flight,
                              h.ended
                              + (SELECT count(*)
                                   FROM postrider.lane l
                                  WHERE l.subscription_id = h.subscription_id
                                    AND l.leased_at >= h.leased_from))) / 2, 1)
           END AS next_slowed_to
      FROM held h
), settled AS (
    UPDATE postrider.turn t
       SET rest = n.next_rest,
           wake_at = CASE
                         WHEN n.next_rest = 'deleted'
                         THEN coalesce(n.wake_at, statement_timestamp())
                         WHEN n.next_rest = 'circuit'
                          AND n.circuit_was <> 'open'
                         THEN statement_timestamp()
                              + greatest(n.wait, n.slow_for)
                         WHEN n.next_rest IN ('circuit', 'slowed')
                         THEN greatest(
                                  statement_timestamp() + n.slow_for,
                                  CASE
                                      WHEN n.rest IN ('circuit', 'slowed')
                                      THEN n.wake_at
                                  END)
                         WHEN n.next_rest = 'idle'
                         THEN least(n.wake_at, n.due_at)
                         WHEN n.next_rest = n.rest
                         THEN n.wake_at
                     END,
           entered_at = CASE
                            WHEN n.next_rest IS NULL
                            THEN coalesce(t.entered_at, clock_timestamp())
                        END,
           circuit = n.circuit,
           circuit_opens = CASE
                               WHEN n.circuit = 'closed' THEN 0
                               WHEN n.circuit = 'open'
                                AND n.circuit_was <> 'open'
                               THEN n.circuit_opens + 1
                               ELSE n.circuit_opens
                           END,
           failures = CASE
                          WHEN n.circuit_after = 0    THEN 0
                          WHEN n.circuit_was = 'open' THEN t.failures
                          ELSE n.run
                      END,
           slowed_to = n.next_slowed_to,
           slowed_at = CASE
                           WHEN n.halves THEN clock_timestamp()
                           ELSE t.slowed_at
                       END
      FROM next n
     WHERE t.subscription_id = ANY (ARRAY[n.subscription_id])
    RETURNING t.subscription_id, n.tenant_id, t.rest, t.wake_at, t.circuit,
              t.failures, n.circuit_was, n.failures_were
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT 'dispatch', tenant_id, 'subscription.circuit_'
           || CASE circuit WHEN 'open' THEN 'opened' ELSE 'closed' END,
           subscription_id::text,
           jsonb_build_object(
               'before', jsonb_build_object('circuit', circuit_was,
                                            'failures', failures_were),
               'after', jsonb_build_object('circuit', circuit,
                                           'failures', failures))
      FROM settled
     WHERE (circuit = 'open' AND circuit_was = 'closed')
        OR (circuit = 'closed' AND circuit_was <> 'closed')
)
SELECT CASE
           WHEN rest IS NULL THEN 0
           WHEN rest = 'deleted'
           THEN (SELECT NULL::bigint FROM pg_notify('postrider_work', 'chore'))
           ELSE greatest(extract(epoch FROM wake_at - statement_timestamp())
                         * 1000000, 0)::bigint
       END AS wake_in_us
  FROM settled
 WHERE rest IS NULL
    OR rest = 'deleted'
    OR (rest IN ('idle', 'circuit', 'slowed') AND wake_at IS NOT NULL);
