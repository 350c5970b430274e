-- key_create: a new key, of which only the hash is kept.
--
--   $1 text      tenant's name, or null for an operator
--   $2 text      role: publisher, admin, operator
--   $3 text      name, for people
--   $4 bytea     SHA-256 of the key
--
-- Returns its id; no row if there is no such tenant.

WITH made AS (
    INSERT INTO postrider.api_key (tenant_id, role, name, hash)
    SELECT t.id, $2, $3, $4
      FROM (SELECT $1::text AS name) g
      LEFT JOIN postrider.tenant t ON t.name = g.name
     WHERE g.name IS NULL
        OR t.id IS NOT NULL
    RETURNING id, tenant_id, role
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT 'cli', tenant_id, 'key.created', id::text,
           jsonb_build_object('role', role)
      FROM made
)
SELECT id
  FROM made;
