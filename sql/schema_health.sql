-- schema_health: what a doctor asks a database first.
--
-- A script that runs without a schema.  Returns one row: the server's version,
-- its clock in microseconds since 1970, the database's encoding, which of our
-- roles are missing, and which settings let a crash lose what was committed (both
-- null if none).

SELECT current_setting('server_version_num') AS version_num,
       current_setting('server_version') AS version,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock,
       getdatabaseencoding() AS encoding,
       (SELECT string_agg(wanted, ', ' ORDER BY wanted)
          FROM unnest(ARRAY['postrider_owner', 'postrider_ingest',
                            'postrider_dispatch', 'postrider_reader']) AS wanted
         WHERE NOT EXISTS (SELECT
                             FROM pg_roles
                            WHERE rolname = wanted)) AS roles_missing,
       (SELECT string_agg(name || '=' || setting, ', ' ORDER BY name)
          FROM pg_settings
         WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
           AND setting = 'off') AS unsafe;
