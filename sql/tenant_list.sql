-- tenant_list: every tenant, oldest first.
--
-- Returns one row a tenant.

SELECT id, name,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at
  FROM postrider.tenant
 ORDER BY id;
