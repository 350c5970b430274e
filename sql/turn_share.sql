-- turn_share: announce, until the commit, that these subscriptions get work.
--
--   $1 bigint[]  subscriptions
--
-- Returns nothing of interest.  Whoever makes work takes this lock before
-- work_ready; whoever lets a subscription rest (turn_rest) excludes it and
-- looks again.  So no work is ever added behind the back of a resting turn.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id = ANY ($1)
 ORDER BY subscription_id
   FOR KEY SHARE;
