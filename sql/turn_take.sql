-- turn_take: whose turn it is: the subscriptions of the round served longest
-- ago.
--
--   $1 integer   most subscriptions
--
-- Returns their ids and keeps the rows locked, so that the claim which follows
-- in the same transaction counts what is in flight exactly: nobody else adds
-- to it meanwhile.  What another dispatcher is claiming for is passed over.

SELECT subscription_id
  FROM postrider.turn
 WHERE rest IS NULL
 ORDER BY served_at, subscription_id
 LIMIT $1::integer
   FOR NO KEY UPDATE SKIP LOCKED;
