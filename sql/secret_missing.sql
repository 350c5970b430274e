-- secret_missing: subscriptions without a secret that still signs.
--
-- Returns one row: how many there are, and the first of them (null if none).

SELECT count(*) AS subscriptions, min(s.id) AS first
  FROM postrider.subscription s
 WHERE s.state <> 'deleted'
   AND NOT EXISTS (SELECT
                     FROM postrider.subscription_secret k
                    WHERE k.subscription_id = s.id
                      AND k.kind = 'secret'
                      AND (k.expires_at IS NULL
                           OR k.expires_at > statement_timestamp()));
