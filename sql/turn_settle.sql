-- turn_settle: bring resting turns up to date with lanes just recorded.
--
--   $1 bigint[]  subscriptions, held by turn_share
--
-- Returns one row for each that is back in the round.  A slot has come free, or
-- a lane is due now; else the turn wakes when its earliest lane falls due.

WITH resting AS MATERIALIZED (
    SELECT subscription_id, rest, wake_at
      FROM postrider.turn
     WHERE subscription_id = ANY ($1)
       AND rest IN ('idle', 'limit')
     ORDER BY subscription_id
       FOR NO KEY UPDATE
), fresh AS MATERIALIZED (
    SELECT r.subscription_id, r.rest, r.wake_at,
           (SELECT min(l.due_at)
              FROM postrider.lane l
             WHERE l.subscription_id = r.subscription_id
               AND l.due_at IS NOT NULL) AS due_at
      FROM resting r
), settled AS (
    UPDATE postrider.turn t
       SET rest = CASE
                      WHEN f.due_at > statement_timestamp()
                        OR f.due_at IS NULL THEN 'idle'
                  END,
           wake_at = CASE
                         WHEN f.due_at > statement_timestamp() THEN f.due_at
                     END
      FROM fresh f
     WHERE t.subscription_id = f.subscription_id
       AND (f.rest = 'limit' OR f.wake_at IS DISTINCT FROM f.due_at)
    RETURNING t.subscription_id, t.rest
)
SELECT subscription_id
  FROM settled
 WHERE rest IS NULL;
