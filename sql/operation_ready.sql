-- operation_ready: back into the round, as turn_ready does.
--
-- Follows operation_share, which holds the turns.

WITH resting AS (
    SELECT subscription_id
      FROM postrider.turn
     WHERE subscription_id
           = ANY (current_setting('postrider.told')::bigint[])
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
