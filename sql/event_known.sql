-- event_known: the events that were accepted under these ids.
--
--   $1 bigint[]  tenant
--   $2 text[]    event id
--
-- Returns a row for each that is there, with its place in the list, counted from
-- 1.  accepted_at is in microseconds since 1970.

SELECT q.place,
       e.fingerprint,
       (extract(epoch FROM e.accepted_at) * 1000000)::bigint AS accepted_at,
       e.fan_out
  FROM (SELECT unnest($1::bigint[]) AS tenant_id,
               unnest($2::text[]) AS event_id,
               generate_series(1, cardinality($1)) AS place
       OFFSET 0) q
 CROSS JOIN LATERAL (
       SELECT *
         FROM postrider.event
        WHERE tenant_id = q.tenant_id
          AND event_id = q.event_id
       OFFSET 0) e;
