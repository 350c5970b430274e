-- tenant_find: the tenant of this name.
--
--   $1 text      name
--
-- Returns at most one row.

SELECT id
  FROM postrider.tenant
 WHERE name = $1;
