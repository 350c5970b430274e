-- event_known: the events of these ids as they were first accepted.
--
--   $1 bigint[]  tenant
--   $2 text[]    event id
--
-- Returns a row for each, in the order given, with its place there, counted from
-- 1; is_new if this transaction accepted it.  accepted_at is in microseconds
-- since 1970.

SELECT q.ord,
       e.fingerprint,
       (extract(epoch FROM e.accepted_at) * 1000000)::bigint AS accepted_at,
       e.fan_out,
       e.is_new
  FROM unnest($1::bigint[], $2::text[])
       WITH ORDINALITY AS q (tenant_id, event_id, ord)
 CROSS JOIN LATERAL (
       SELECT *, xmin = pg_current_xact_id()::xid AS is_new
         FROM postrider.event
        WHERE tenant_id = q.tenant_id
          AND event_id = q.event_id
       OFFSET 0) e
 ORDER BY q.ord;
