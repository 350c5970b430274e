-- request_insert: keep requests.
--
--   $1  bigint[]   id
--   $2  text[]     path
--   $3  text[]     event id, or null
--   $4  text[]     asset, or null
--   $5  bigint[]   position, or null
--   $6  integer[]  attempt, or null
--   $7  bigint[]   arrival, in microseconds since 1970
--   $8  integer[]  status that is answered now, or null
--   $9  text[]     verdict on the signature
--   $10 integer[]  number of its event's request, null if rejected
--   $11 boolean[]  out of order
--   $12 boolean[]  overlaps another
--   $13 bytea[]    SHA-256 of the body
--   $14 bytea[]    body, null if an earlier request has it
--
-- Returns nothing.

INSERT INTO receiver.request
       (id, path, event_id, asset, position, attempt, arrived_at, answered_at,
        status, signature, nth, out_of_order, overlapping, body_sha256, body)
SELECT id, path, event_id, asset, position, attempt,
       timestamptz 'epoch' + arrived_us * interval '1 microsecond',
       CASE WHEN status IS NOT NULL THEN statement_timestamp() END,
       status, signature, nth, out_of_order, overlapping, body_sha256, body
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[],
              $6::integer[], $7::bigint[], $8::integer[], $9::text[],
              $10::integer[], $11::boolean[], $12::boolean[], $13::bytea[],
              $14::bytea[])
       AS g (id, path, event_id, asset, position, attempt, arrived_us, status,
             signature, nth, out_of_order, overlapping, body_sha256, body);
