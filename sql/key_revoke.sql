-- key_revoke: let a key open nothing from now on.
--
--   $1 bigint    key
--
-- Returns its id; no row if there is no such key, or it is revoked already.

WITH revoked AS (
    UPDATE postrider.api_key
       SET revoked_at = now()
     WHERE id = $1
       AND revoked_at IS NULL
    RETURNING id, tenant_id
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject)
    SELECT 'cli', tenant_id, 'key.revoked', id::text
      FROM revoked
)
SELECT id
  FROM revoked;
