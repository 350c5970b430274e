-- tenant_create: a new tenant.
--
--   $1 text      name
--
-- Returns its id.

WITH made AS (
    INSERT INTO postrider.tenant (name)
    VALUES ($1)
    RETURNING id, name
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject)
    SELECT 'cli', id, 'tenant.created', name
      FROM made
)
SELECT id
  FROM made;
