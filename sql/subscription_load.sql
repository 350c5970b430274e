-- subscription_load: what attempts need to know of subscriptions.
--
--   $1 bigint[]  subscriptions
--
-- Returns one row a secret, newest first, of each subscription; one row with a
-- null secret for a subscription that has none.  valid_us: for how much longer
-- an old secret signs beside the new one, in microseconds; null without end.

SELECT s.id,
       s.version,
       s.url,
       s.older_signature,
       s.max_attempts,
       s.retry_base_ms,
       s.retry_cap_ms,
       s.timeout_ms,
       k.key_id,
       k.nonce,
       k.sealed,
       (extract(epoch FROM k.expires_at - statement_timestamp())
        * 1000000)::bigint AS valid_us
  FROM postrider.subscription s
  LEFT JOIN postrider.subscription_secret k
    ON k.subscription_id = s.id
   AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
 WHERE s.id = ANY ($1)
 ORDER BY s.id, k.id DESC;
