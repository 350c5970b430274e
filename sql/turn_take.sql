-- turn_take: whose turn it is: the subscriptions of the round served longest
-- ago.
--
--   $1 integer   most subscriptions
--
-- Returns their ids and marks them as served by this transaction, which is how
-- lane_claim knows them.  The rows stay locked, so that it counts what is in
-- flight exactly: nobody else adds to it meanwhile.  What another dispatcher is
-- claiming for is passed over.

WITH longest_ago AS MATERIALIZED (
    SELECT subscription_id
      FROM postrider.turn
     WHERE rest IS NULL
     ORDER BY served_at, subscription_id
     LIMIT $1::integer
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE postrider.turn t
   SET served_at = now()
  FROM longest_ago l
 WHERE t.subscription_id = l.subscription_id
RETURNING t.subscription_id;
