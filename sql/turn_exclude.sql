-- turn_exclude: shut out, until the commit, whoever makes work for these.
--
--   $1 bigint[]  subscriptions
--
-- Returns nothing of interest.  turn_rest follows in the same transaction, and
-- sees all that was committed before this lock was had.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id = ANY ($1)
 ORDER BY subscription_id
   FOR UPDATE;
