-- replay_ready: back into the round, as work_ready does.
--
-- Follows replay_place or discard_share, which hold the turn.

WITH resting AS (
    SELECT subscription_id
      FROM postrider.turn
     WHERE subscription_id
           = current_setting('postrider.replay_subscription')::bigint
       AND current_setting('postrider.replayed')::bigint > 0
       AND (rest = 'idle' OR (rest = 'deleted' AND wake_at IS NULL))
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
                 CASE rest WHEN 'deleted' THEN 'chore' ELSE '' END)
  FROM readied;
