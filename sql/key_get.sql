-- key_get: one key, without anything that opens a door.
--
--   $1 bigint    key
--
-- Returns at most one row.  Times are in microseconds since 1970, null for never.

SELECT k.id, t.name AS tenant, k.role, k.name,
       (extract(epoch FROM k.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM k.expires_at) * 1000000)::bigint AS expires_at,
       (extract(epoch FROM k.revoked_at) * 1000000)::bigint AS revoked_at,
       (extract(epoch FROM k.last_used_at) * 1000000)::bigint AS last_used_at
  FROM postrider.api_key k
  LEFT JOIN postrider.tenant t ON t.id = k.tenant_id
 WHERE k.id = $1;
