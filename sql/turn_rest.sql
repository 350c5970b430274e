-- turn_rest: out of the round, for what has nothing to claim.
--
--   $1 bigint[]  subscriptions, tried by turn_exclude
--
-- Returns how many stay in the round: they have something to claim, or are not
-- held by this transaction, which alone is why xmax names it.  A resting turn
-- says why, and when it wakes: when its earliest lane falls due, when the next
-- request is allowed, at its rate in steps of at least 10 ms, or when an outcome
-- makes room.
--
-- The commit is not flushed: a turn whose rest was forgotten is in the round.
--
-- Lanes are read from where claims read them.  What is due before that, which
-- takes a commit of more than two seconds, is found by the sweep for which the
-- turn then wakes.

WITH in_round AS MATERIALIZED (
    SELECT t.subscription_id,
           t.is_held,
           s.state,
           CASE
               WHEN t.is_swept
               THEN least(d.due_at, t.swept_at + interval '10 seconds')
               ELSE d.due_at
           END AS due_at,
           postrider.in_flight_limit(t.circuit, s.max_in_flight, t.slowed_to)
           <= (SELECT count(*)
                 FROM postrider.lane l
                WHERE l.subscription_id = t.subscription_id
                  AND l.leased_at >= t.leased_from) AS at_limit,
           CASE
               WHEN s.rate_per_second IS NOT NULL
               THEN t.rate_at - greatest(1 - 1 / s.rate_per_second, 0)
                                * interval '1 second'
           END AS allowed_at
      FROM unnest($1::bigint[]) AS o (subscription_id)
     CROSS JOIN LATERAL (
           SELECT *,
                  xmax = pg_current_xact_id()::xid AS is_held,
                  swept_at BETWEEN statement_timestamp() - interval '10 seconds'
                               AND statement_timestamp() AS is_swept
             FROM postrider.turn
            WHERE subscription_id = o.subscription_id
           OFFSET 0) t
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[t.subscription_id])
     CROSS JOIN LATERAL (
           SELECT min(l.due_at) AS due_at
             FROM postrider.lane l
            WHERE l.subscription_id = t.subscription_id
              AND l.due_at >= CASE
                                  WHEN t.is_swept THEN t.due_from
                                  ELSE '-infinity'
                              END
           OFFSET 0) d
     WHERE t.rest IS NULL
), resting AS MATERIALIZED (
    SELECT subscription_id,
           CASE
               WHEN state <> 'active' THEN state
               WHEN at_limit          THEN 'limit'
               WHEN due_at IS NULL
                 OR due_at > statement_timestamp()     THEN 'idle'
               WHEN allowed_at > statement_timestamp() THEN 'rate'
           END AS rest,
           due_at,
           allowed_at
      FROM in_round
     WHERE is_held
), rested AS (
    UPDATE postrider.turn t
       SET rest = r.rest,
           wake_at = CASE r.rest
                         WHEN 'idle' THEN r.due_at
                         WHEN 'rate' THEN greatest(r.allowed_at,
                                                   statement_timestamp()
                                                   + interval '10 ms')
                     END,
           entered_at = NULL
      FROM resting r
     WHERE t.subscription_id = ANY (ARRAY[r.subscription_id])
       AND r.rest IS NOT NULL
    RETURNING 1
)
SELECT (SELECT count(*) FROM in_round)
       - (SELECT count(*) FROM rested) AS staying,
       set_config('synchronous_commit', 'off', true);
