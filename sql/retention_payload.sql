-- retention_payload: forget what was sent.
--
-- Of the events that retention_judge found to be over.  The event's row stays,
-- so that its id stays reserved, and its fingerprint, so that a repeat is known.

UPDATE postrider.event
   SET body = NULL
 WHERE event_no = ANY (current_setting('postrider.retention')::bigint[])
   AND body IS NOT NULL;
