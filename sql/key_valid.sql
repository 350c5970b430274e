-- key_valid: which of the keys in $1 may still be used.
--
--   $1 bigint[] ids of keys
--
-- Returns one row a valid key.  Ingest remembers keys for a moment; with this,
-- asked once a batch, a revoked key stops at once all the same.

SELECT id
  FROM postrider.api_key
 WHERE id = ANY ($1)
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > statement_timestamp());
