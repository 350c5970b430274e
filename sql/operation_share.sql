-- operation_share: announce that subscriptions get work, as turn_share does.
--
-- Follows operation_accept.  Returns nothing of interest.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id
       = ANY (current_setting('postrider.told')::bigint[])
 ORDER BY subscription_id
   FOR KEY SHARE;
