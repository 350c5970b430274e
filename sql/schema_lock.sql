-- schema_lock: wait until nobody else migrates this database.
--
-- A script.  The lock is the session's: it ends with the connection.

SELECT pg_advisory_lock(hashtextextended('postrider migrate', 0));
