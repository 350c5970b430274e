-- discard_share: announce that a subscription gets work, as turn_share does.
--
-- Follows delivery_discard.  Returns nothing of interest: replay_ready follows in
-- the same transaction.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id
       = current_setting('postrider.replay_subscription')::bigint
   FOR KEY SHARE;
