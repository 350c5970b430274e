-- key_revoke: let a key open nothing from now on.
--
--   $1 bigint    key
--   $2 text      actor, for the audit
--
-- Returns its id; no row if there is no such key, or it is revoked already.

WITH revoked AS (
    UPDATE postrider.api_key
       SET revoked_at = statement_timestamp()
     WHERE id = $1
       AND revoked_at IS NULL
    RETURNING id, tenant_id, revoked_at
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $2::text, tenant_id, 'key.revoked', id::text,
           jsonb_build_object(
               'before', jsonb_build_object('revoked_at', NULL),
               'after', jsonb_build_object('revoked_at', revoked_at))
      FROM revoked
)
SELECT id
  FROM revoked;
