-- subscription_load: what attempts need to know of subscriptions.
--
--   $1 bigint[]  subscriptions
--
-- Returns one row a secret of each subscription, by kind ('header', 'secret',
-- 'signing_key', 'tls_key'), newest first; one row with a null secret for a
-- subscription that has none.  name: of a secret header.  valid_us: for how much
-- longer an old one signs beside the new one, in microseconds; null without end.
-- What may be long is in a subscription's first row only, null in its others:
-- header_lines, its plain headers as "name: value" with line feeds between
-- them, '' if it has none; tls_ca and tls_certificate.

SELECT id,
       version,
       url,
       older_signature,
       max_attempts,
       retry_base_ms,
       retry_cap_ms,
       timeout_ms,
       CASE
           WHEN nth = 1
           THEN coalesce((SELECT string_agg(key || ': ' || value, E'\n'
                                            ORDER BY key)
                            FROM jsonb_each_text(headers)), '')
       END AS header_lines,
       CASE WHEN nth = 1 THEN tls_ca END AS tls_ca,
       CASE WHEN nth = 1 THEN tls_certificate END AS tls_certificate,
       kind,
       name,
       key_id,
       nonce,
       sealed,
       (extract(epoch FROM expires_at - statement_timestamp())
        * 1000000)::bigint AS valid_us
  FROM (SELECT s.*, k.kind, k.name, k.key_id, k.nonce, k.sealed, k.expires_at,
               row_number() OVER (PARTITION BY s.id
                                  ORDER BY k.kind, k.id DESC) AS nth
          FROM postrider.subscription s
          LEFT JOIN postrider.subscription_secret k
            ON k.subscription_id = s.id
           AND (k.expires_at IS NULL
                OR k.expires_at > statement_timestamp())
         WHERE s.id = ANY ($1)) l
 ORDER BY id, nth;
