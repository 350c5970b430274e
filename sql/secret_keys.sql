-- secret_keys: under which keys the stored secrets are sealed.
--
-- Returns one row a key: its id and how many secrets that still sign need it.

SELECT key_id, count(*) AS secrets
  FROM postrider.subscription_secret
 WHERE expires_at IS NULL
    OR expires_at > statement_timestamp()
 GROUP BY key_id
 ORDER BY key_id;
