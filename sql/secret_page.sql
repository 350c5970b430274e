-- secret_page: stored secrets that still sign, some at a time.
--
--   $1 bigint    secret: those after it
--   $2 bigint    how many at most
--
-- Returns one row a secret, by id.

SELECT k.id, k.subscription_id, k.key_id, k.nonce, k.sealed
  FROM postrider.subscription_secret k
  JOIN postrider.subscription s ON s.id = k.subscription_id
 WHERE k.id > $1
   AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
   AND s.state <> 'deleted'
 ORDER BY k.id
 LIMIT $2;
