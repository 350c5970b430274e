-- schema_version: what has been migrated here.
--
-- Returns one row a migration, oldest first.

SELECT version, name, checksum
  FROM postrider.schema_migration
 ORDER BY version;
