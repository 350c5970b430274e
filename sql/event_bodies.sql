-- event_bodies: what is to be sent.
--
-- Of the heads that lane_claim or delivery_record has just leased in this session,
-- one row each, in their order: the event's number, its id, when it was accepted, in
-- microseconds since 1970, and its body, null once purged.
--
-- It follows the commit, in the same round trip.  A dispatcher that does not read
-- a long answer then keeps nobody waiting: before the commit it would hold up all
-- that wait for these lanes and turns.

SELECT h.event_no,
       e.event_id,
       (1000000 * date_part('epoch', e.accepted_at))::bigint AS accepted_us,
       e.body
  FROM unnest(coalesce(nullif(current_setting('postrider.heads', true), ''),
                       '{}')::bigint[])
       WITH ORDINALITY AS h (event_no, ord)
  LEFT JOIN LATERAL (
       SELECT event_id, accepted_at, body
         FROM postrider.event
        WHERE event_no = h.event_no
       OFFSET 0) e ON true
 ORDER BY h.ord;
