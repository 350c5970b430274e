-- turn_ready: back into the round, for what rests because it had nothing due.
--
--   $1 bigint[]  subscriptions, held by turn_share
--
-- Returns one row if any was resting.  Only then are dispatchers notified: the
-- others are being served, and a notification takes a lock over all commits.

WITH resting AS (
    SELECT subscription_id
      FROM postrider.turn
     WHERE subscription_id = ANY ($1)
       AND rest = 'idle'
     ORDER BY subscription_id
       FOR NO KEY UPDATE
), readied AS (
    UPDATE postrider.turn t
       SET rest = NULL,
           wake_at = NULL
      FROM resting r
     WHERE t.subscription_id = r.subscription_id
    RETURNING t.subscription_id
)
SELECT pg_notify('postrider_work', '')
  FROM readied
 LIMIT 1;
