-- event_filter: which deliveries the filters of their subscriptions keep from
-- being made.
--
--   $1 bytea[]   body, one element an event
--   $2 integer[] the first of its own among those that follow, from 1
--   $3 integer[] the last
--   $4 bigint[]  subscription, event after event
--
-- Returns the place in $4 of each that the event is not for: its filter is not
-- true, but false or unknown.  A body that is no jsonb is for all.  An event's
-- body is read once, whatever the number of filters.

SELECT g.place
  FROM (SELECT postrider.event_payload(body) AS payload, first, last
          FROM unnest($1::bytea[], $2::integer[], $3::integer[])
               AS u (body, first, last)
        OFFSET 0) e
 CROSS JOIN LATERAL generate_series(e.first, e.last) AS g (place)
  JOIN postrider.subscription s
    ON s.id = ANY (ARRAY[($4::bigint[])[g.place]])
 WHERE e.payload IS NOT NULL
   AND s.filter_path IS NOT NULL
   AND (e.payload @@ s.filter_path) IS NOT TRUE
 ORDER BY g.place;
