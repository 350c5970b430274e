-- receipts_body: the body of an event's first request, as it came.
--
--   $1 text  path
--   $2 text  event id
--
-- Returns at most one row.

SELECT body
  FROM receiver.request
 WHERE path = $1
   AND event_id = $2
   AND nth IS NOT NULL
   AND body IS NOT NULL
 ORDER BY id
 LIMIT 1;
