-- schema_rights: what the programs' roles may not do, and have to.
--
-- A script that needs no right of its own.  Returns one row a missing grant, as
-- the statement that makes up for it.  Roles and relations that do not exist
-- are left out: others look for those.

WITH wanted (role, privilege, columns, relations) AS (
    VALUES
        ('postrider_ingest', 'SELECT', '{}'::text[],
         '{schema_migration,tenant,api_key,subscription,subscription_pattern,'
         'turn,lane,event,delivery}'::text[]),
        ('postrider_ingest', 'INSERT', '{}',
         '{subscription,subscription_pattern,subscription_secret,turn,lane,'
         'event,delivery,audit}'),
        ('postrider_ingest', 'UPDATE', '{rest,wake_at}', '{turn}'),
        ('postrider_ingest', 'UPDATE', '{tail_id}', '{lane}'),
        ('postrider_ingest', 'USAGE', '{}', '{position,subscription_id_seq}'),
        ('postrider_dispatch', 'SELECT', '{}',
         '{schema_migration,subscription,subscription_secret,turn,lane,event,'
         'delivery}'),
        ('postrider_dispatch', 'INSERT', '{}', '{attempt,dead_letter,audit}'),
        ('postrider_dispatch', 'UPDATE',
         '{state,state_reason,version,updated_at}', '{subscription}'),
        ('postrider_dispatch', 'UPDATE', '{rest,wake_at,served_at}', '{turn}'),
        ('postrider_dispatch', 'UPDATE', '{finished_at,attempts,status,state}',
         '{delivery}'),
        ('postrider_dispatch', 'UPDATE',
         '{head_id,head_event_no,due_at,lease_until,lease_token,attempts,'
         'lease_worker}', '{lane}'),
        ('postrider_dispatch', 'DELETE', '{}', '{lane}')
), missing AS (
    SELECT w.role, w.privilege, w.columns, c.relkind, c.relname
      FROM wanted w
      JOIN pg_roles r ON r.rolname = w.role
      JOIN pg_namespace n ON n.nspname = 'postrider'
      JOIN pg_class c ON c.relnamespace = n.oid
                     AND c.relname = ANY (w.relations)
     WHERE CASE
               WHEN c.relkind = 'S' THEN
                   NOT has_sequence_privilege(r.oid, c.oid, w.privilege)
               WHEN w.columns = '{}' THEN
                   NOT has_table_privilege(r.oid, c.oid, w.privilege)
               ELSE EXISTS (
                   SELECT
                     FROM pg_attribute a
                    WHERE a.attrelid = c.oid
                      AND a.attname = ANY (w.columns)
                      AND NOT has_column_privilege(r.oid, c.oid, a.attnum,
                                                   w.privilege))
           END
)
SELECT format('GRANT USAGE ON SCHEMA postrider TO %I', r.rolname) AS remedy
  FROM pg_roles r
  JOIN pg_namespace n ON n.nspname = 'postrider'
 WHERE r.rolname IN ('postrider_ingest', 'postrider_dispatch')
   AND NOT has_schema_privilege(r.oid, n.oid, 'USAGE')
UNION ALL
SELECT format('GRANT %s%s ON %s%s TO %I',
              privilege,
              ' (' || nullif(array_to_string(columns, ', '), '') || ')',
              CASE WHEN relkind = 'S' THEN 'SEQUENCE ' ELSE '' END,
              string_agg('postrider.' || relname, ', ' ORDER BY relname),
              role)
  FROM missing
 GROUP BY role, privilege, columns, relkind
 ORDER BY remedy;
