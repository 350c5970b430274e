-- event_body: what is to be sent.
--
--   $1 bigint    the event's number
--
-- Returns its id and body, which is null once purged.

SELECT event_id, body
  FROM postrider.event
 WHERE event_no = $1;
