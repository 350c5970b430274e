-- work_ready: back into the round, for what rests because it had nothing due.
--
-- Follows work_share, which holds the turns.  Returns one row if any was resting.
-- Only then are dispatchers notified: the others are being served, and a
-- notification takes a lock over all commits.
--
-- One that was deleted while this transaction was under way wakes to have its
-- deliveries cancelled.

WITH resting AS (
    SELECT subscription_id
      FROM postrider.turn
     WHERE subscription_id
           = ANY (nullif(current_setting('postrider.told', true), '')::bigint[])
       AND (rest = 'idle' OR (rest = 'deleted' AND wake_at IS NULL))
     ORDER BY subscription_id
       FOR NO KEY UPDATE
), readied AS (
    UPDATE postrider.turn t
       SET rest = CASE t.rest WHEN 'deleted' THEN t.rest END,
           wake_at = CASE t.rest WHEN 'deleted' THEN statement_timestamp() END,
           entered_at = CASE t.rest WHEN 'idle' THEN clock_timestamp() END
      FROM resting r
     WHERE t.subscription_id = ANY (ARRAY[r.subscription_id])
    RETURNING t.rest
)
SELECT pg_notify('postrider_work',
                 CASE WHEN bool_or(rest IS NOT NULL) THEN 'chore' ELSE '' END)
  FROM readied
HAVING count(*) > 0;
