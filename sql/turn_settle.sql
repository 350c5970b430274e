-- turn_settle: bring resting turns up to date with lanes just recorded.
--
--   $1 bigint[]  subscriptions, held by turn_share
--
-- Returns one row for each that is back in the round: a slot has come free, or
-- a lane is due now; else the turn wakes when its earliest lane falls due.
--
-- What this statement sees may be older than what it waits for, so it only ever
-- wakes a turn earlier: another record may have done so for a lane that is not
-- seen here.  For the same reason a turn at its limit goes back into the round
-- whether or not a lane is seen that is due: acceptance leaves it alone.

WITH resting AS MATERIALIZED (
    SELECT t.subscription_id,
           t.wake_at,
           CASE t.rest
               WHEN 'idle'
               THEN (SELECT min(l.due_at)
                       FROM postrider.lane l
                      WHERE l.subscription_id = t.subscription_id
                        AND l.due_at IS NOT NULL)
           END AS due_at,
           CASE t.rest
               WHEN 'limit'
               THEN s.max_in_flight
                    > (SELECT count(*)
                         FROM postrider.lane l
                        WHERE l.subscription_id = t.subscription_id
                          AND l.lease_token IS NOT NULL)
           END AS has_slot
      FROM postrider.turn t
      JOIN postrider.subscription s ON s.id = t.subscription_id
     WHERE t.subscription_id = ANY ($1)
       AND t.rest IN ('idle', 'limit')
), earlier AS MATERIALIZED (
    SELECT subscription_id, due_at
      FROM resting
     WHERE has_slot
        OR due_at < coalesce(wake_at, 'infinity')
     ORDER BY subscription_id
), held AS MATERIALIZED (
    SELECT e.subscription_id, e.due_at
      FROM earlier e
     CROSS JOIN LATERAL (
           SELECT
             FROM postrider.turn
            WHERE subscription_id = e.subscription_id
              AND rest IN ('idle', 'limit')
              FOR NO KEY UPDATE) t
), settled AS (
    UPDATE postrider.turn t
       SET rest = CASE
                      WHEN h.due_at > statement_timestamp() THEN 'idle'
                  END,
           wake_at = CASE
                         WHEN h.due_at > statement_timestamp()
                         THEN least(t.wake_at, h.due_at)
                     END
      FROM held h
     WHERE t.subscription_id = h.subscription_id
    RETURNING t.subscription_id, t.rest
)
SELECT subscription_id
  FROM settled
 WHERE rest IS NULL;
