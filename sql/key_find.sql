-- key_find: the key that hashes to $1, if it may be used now.
--
--   $1 bytea    SHA-256 of the key as it was presented
--
-- Returns at most one row; the tenant is null for an operator.  is_use_due: when
-- it was last used is worth writing down anew, with key_used.

SELECT id, tenant_id, role,
       coalesce(last_used_at
                < statement_timestamp() - interval '5 minutes',
                true) AS is_use_due
  FROM postrider.api_key
 WHERE hash = $1
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > statement_timestamp());
