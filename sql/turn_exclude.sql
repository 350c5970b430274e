-- turn_exclude: shut out, until the commit, whoever makes work for these.
--
--   $1 bigint[]  subscriptions
--
-- Returns nothing of interest.  turn_rest follows in the same transaction, and
-- sees all that was committed before this lock was had.  One that gets work
-- just now is passed over: it can be let rest later, and waiting for it would
-- hold up all others, without end if there is always somebody.

SELECT subscription_id
  FROM postrider.turn
 WHERE subscription_id = ANY ($1)
   FOR UPDATE SKIP LOCKED;
