-- audit_from: say where what is changed comes from.
--
--   $1 text      an address, or who ran a command on which host
--   $2 boolean   for this transaction alone, not for the session
--
-- Returns nothing of interest.  It may come last in its transaction: entries of
-- the audit are completed at the end.

SELECT set_config('postrider.source', $1, $2);
