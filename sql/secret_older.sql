-- secret_older: how many secrets still used are not sealed under a key.
--
--   $1 text      the key's id
--
-- Returns one row.

SELECT count(*) AS secrets
  FROM postrider.subscription_secret k
  JOIN postrider.subscription s ON s.id = k.subscription_id
 WHERE k.key_id <> $1
   AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
   AND s.state <> 'deleted';
