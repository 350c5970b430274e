-- schema_record: note that a migration has been applied.
--
--   $1 integer   version
--   $2 text      name
--   $3 text      SHA-256 of its text, in hex digits
--
-- A script, run in the migration's own transaction.

INSERT INTO postrider.schema_migration (version, name, checksum)
VALUES ($1::integer, $2, $3);
