-- schema_exists: is there a record of migrations?
--
-- A script.  Returns one row, 't' or 'f'.

SELECT to_regclass('postrider.schema_migration') IS NOT NULL AS is_there;
