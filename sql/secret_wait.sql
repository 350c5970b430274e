-- secret_wait: wait until nobody has a secret in hand.
--
--   $1 bigint    secret
--
-- Returns a row if it is still there.  A transaction of its own, which holds
-- nothing else meanwhile.

SELECT id
  FROM postrider.subscription_secret
 WHERE id = $1
   FOR NO KEY UPDATE;
