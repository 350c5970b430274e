-- schema_begin: open the transaction of one migration, as the schema's owner.
--
-- A script.

BEGIN;
SET LOCAL ROLE postrider_owner;
