-- tenant_get: one tenant.
--
--   $1 bigint    tenant
--
-- Returns at most one row; created_at is in microseconds since 1970.

SELECT id, name,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at
  FROM postrider.tenant
 WHERE id = $1;
