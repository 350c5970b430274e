-- operation_next: the end of a step of telling, and when to go on.
--
-- Returns one row: did, to how many entries, dead letters and subscriptions it
-- came; and next_in_us, in how many microseconds there is more to do, null if
-- nothing is known.

SELECT current_setting('postrider.operation_did')::integer AS did,
       CASE
           WHEN current_setting('postrider.operation_more')::boolean THEN 0
           WHEN current_setting('postrider.operation') = 'tell'
            AND backlog_at > statement_timestamp()
           THEN (extract(epoch FROM backlog_at - statement_timestamp())
                 * 1000000)::bigint
       END AS next_in_us
  FROM postrider.operation
 WHERE is_only;
