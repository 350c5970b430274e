-- audit_chain: the next entries of the audit's chain, to be recomputed.
--
--   $1 bigint    after this number
--   $2 integer   most rows
--
-- Returns what each one's hash covers besides the hash before it.

SELECT number, postrider.audit_content(a) AS content, hash
  FROM postrider.audit a
 WHERE number > $1
 ORDER BY number
 LIMIT $2::integer;
