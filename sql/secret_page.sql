-- secret_page: stored secrets of all kinds that are still used, some at a time.
--
--   $1 bigint    secret: those after it
--   $2 text      only those that are not sealed under the key with this id; null
--                for all
--   $3 bigint    how many at most
--
-- Returns one row a secret, by id.

SELECT k.id, k.subscription_id, k.kind, k.name, k.key_id, k.nonce, k.sealed
  FROM postrider.subscription_secret k
  JOIN postrider.subscription s ON s.id = k.subscription_id
 WHERE k.id > $1
   AND ($2::text IS NULL OR k.key_id <> $2)
   AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
   AND s.state <> 'deleted'
 ORDER BY k.id
 LIMIT $3;
