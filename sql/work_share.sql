-- work_share: announce, until the commit, that the subscriptions of a setting get
-- work, as turn_share does.
--
-- Follows what makes work: event_accept, operation_accept, replay_place,
-- delivery_discard.  Returns nothing of interest.  Whoever made none told nobody:
-- then nothing is locked.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id
       = ANY (nullif(current_setting('postrider.told', true), '')::bigint[])
 ORDER BY subscription_id
   FOR KEY SHARE;
