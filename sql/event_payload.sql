-- event_payload: what is sent of an event, byte for byte.
--
--   $1 bigint    tenant
--   $2 text      event id
--
-- Returns one row, its body null once it was purged; none if the tenant has no
-- such event.

SELECT body
  FROM postrider.event
 WHERE tenant_id = $1
   AND event_id = $2;
