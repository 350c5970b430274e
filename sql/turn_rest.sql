-- turn_rest: out of the round, for what has nothing to claim.
--
--   $1 bigint[]  subscriptions, tried by turn_exclude
--
-- Returns how many stay in the round: they have something to claim, or are not
-- held by this transaction, which alone is why xmax names it.  A resting turn
-- says why, and wakes when its earliest lane falls due.

WITH in_round AS MATERIALIZED (
    SELECT t.subscription_id,
           t.xmax = pg_current_xact_id()::xid AS is_held,
           s.state,
           (SELECT min(l.due_at)
              FROM postrider.lane l
             WHERE l.subscription_id = t.subscription_id
               AND l.due_at IS NOT NULL) AS due_at,
           s.max_in_flight
           <= (SELECT count(*)
                 FROM postrider.lane l
                WHERE l.subscription_id = t.subscription_id
                  AND l.lease_token IS NOT NULL) AS at_limit
      FROM postrider.turn t
      JOIN postrider.subscription s ON s.id = t.subscription_id
     WHERE t.subscription_id = ANY ($1)
       AND t.rest IS NULL
), rested AS (
    UPDATE postrider.turn t
       SET rest = CASE
                      WHEN n.state <> 'active' THEN n.state
                      WHEN n.at_limit          THEN 'limit'
                      ELSE 'idle'
                  END,
           wake_at = CASE
                         WHEN n.state = 'active' AND NOT n.at_limit
                         THEN n.due_at
                     END
      FROM in_round n
     WHERE t.subscription_id = n.subscription_id
       AND n.is_held
       AND (n.state <> 'active'
            OR n.at_limit
            OR n.due_at IS NULL
            OR n.due_at > statement_timestamp())
    RETURNING 1
)
SELECT (SELECT count(*) FROM in_round)
       - (SELECT count(*) FROM rested) AS staying;
