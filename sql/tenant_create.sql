-- tenant_create: a new tenant.
--
--   $1 text      name
--   $2 text      actor, for the audit
--
-- Returns its row as tenant_get does; none if there is one of this name already.

WITH made AS (
    INSERT INTO postrider.tenant (name)
    VALUES ($1)
        ON CONFLICT (name) DO NOTHING
    RETURNING *
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $2::text, id, 'tenant.created', name,
           jsonb_build_object('after', jsonb_build_object('name', name))
      FROM made
)
SELECT id, name,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at
  FROM made;
