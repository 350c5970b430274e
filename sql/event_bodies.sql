-- event_bodies: what is to be sent.
--
--   $1 bigint[]  the events' numbers
--
-- Returns their ids and bodies, one row for each in the order given: null once
-- purged, or if there is no such event.  Outside of any transaction that locks
-- something: a dispatcher that does not read its answer then keeps nobody waiting.

SELECT e.event_id,
       e.body
  FROM unnest($1::bigint[]) WITH ORDINALITY AS q (event_no, ord)
  LEFT JOIN LATERAL (
       SELECT event_id, body
         FROM postrider.event
        WHERE event_no = q.event_no
       OFFSET 0) e ON true
 ORDER BY q.ord;
