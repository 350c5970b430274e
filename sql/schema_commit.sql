-- schema_commit: end the transaction of one migration.
--
-- A script.

COMMIT;
