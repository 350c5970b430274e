-- secret_strange: keys that secrets still used are sealed under, besides some.
--
--   $1 text[]    ids of keys that are known
--
-- Returns one row a key that is none of them, with a subscription that has a
-- secret under it.
--
-- Keys are few and secrets many: from one key's id the index leads to the next.

WITH RECURSIVE used (key_id) AS (
    SELECT min(key_id)
      FROM postrider.subscription_secret
     UNION ALL
    SELECT (SELECT min(k.key_id)
              FROM postrider.subscription_secret k
             WHERE k.key_id > used.key_id)
      FROM used
     WHERE used.key_id IS NOT NULL
)
SELECT used.key_id, s.subscription_id
  FROM used
 CROSS JOIN LATERAL (
       SELECT k.subscription_id
         FROM postrider.subscription_secret k
        WHERE k.key_id = used.key_id
          AND (k.expires_at IS NULL
               OR k.expires_at > statement_timestamp())
        ORDER BY k.id
        LIMIT 1) s
 WHERE used.key_id <> ALL ($1);
