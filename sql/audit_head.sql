-- audit_head: where the audit's chain ends, as its head has it.
--
-- Returns one row, or none if somebody removed it; with the entries that were
-- never linked, which nobody but a superuser can make: the first one's id, or
-- null.

SELECT number, hash,
       (SELECT id
          FROM postrider.audit
         WHERE number IS NULL
         ORDER BY number
         LIMIT 1) AS unlinked
  FROM postrider.audit_head
 WHERE is_only;
