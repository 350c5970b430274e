-- effect_insert: apply events, each once.
--
--   $1 text[]    path
--   $2 text[]    event id
--   $3 bigint[]  the request that brings it
--
-- Returns nothing.  An event that has been applied is passed over, also when
-- it comes twice in one call.

INSERT INTO receiver.effect (path, event_id, request_id)
SELECT path, event_id, request_id
  FROM unnest($1::text[], $2::text[], $3::bigint[])
       AS g (path, event_id, request_id)
    ON CONFLICT (path, event_id) DO NOTHING;
