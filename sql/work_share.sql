-- work_share: announce, until the commit, that the subscriptions of a setting get
-- work, as turn_share does.
--
-- Follows event_accept or operation_accept.  Returns nothing of interest.  Whoever
-- wrote nothing told nobody: then nothing is locked.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id
       = ANY (nullif(current_setting('postrider.told', true), '')::bigint[])
 ORDER BY subscription_id
   FOR KEY SHARE;
