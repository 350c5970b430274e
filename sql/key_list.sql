-- key_list: the keys, oldest first, without anything that opens a door.
--
--   $1 text      tenant's name, or null for all, the operators' included
--   $2 bigint    after this id: 0 for the first page
--   $3 integer   most rows
--
-- Returns rows as key_get does.

SELECT k.id, t.name AS tenant, k.role, k.name,
       (extract(epoch FROM k.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM k.expires_at) * 1000000)::bigint AS expires_at,
       (extract(epoch FROM k.revoked_at) * 1000000)::bigint AS revoked_at,
       (extract(epoch FROM k.last_used_at) * 1000000)::bigint AS last_used_at
  FROM postrider.api_key k
  LEFT JOIN postrider.tenant t ON t.id = k.tenant_id
 WHERE k.id > $2
   AND ($1::text IS NULL OR t.name = $1)
 ORDER BY k.id
 LIMIT $3::integer;
