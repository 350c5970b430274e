-- tenant_list: the tenants, oldest first.
--
--   $1 bigint    after this id: 0 for the first page
--   $2 integer   most rows
--
-- Returns rows as tenant_get does.

SELECT id, name,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at
  FROM postrider.tenant
 WHERE id > $1
 ORDER BY id
 LIMIT $2::integer;
