-- event_accept: keep the events whose ids are new.
--
--   $1 bigint[]  tenant
--   $2 text[]    event id, each (tenant, id) once
--   $3 text[]    type
--   $4 text[]    asset, or null
--   $5 bytea[]   fingerprint
--   $6 bytea[]   body
--   $7 integer[] fan-out
--   $8 text[]    subscriptions that it names, as an array's text, or null
--
-- Returns nothing: event_known tells which were new.  A transaction that is
-- inserting the same id is waited for; all take ids in one order, so that two
-- such transactions cannot wait for each other.

INSERT INTO postrider.event
       (tenant_id, event_id, type, asset, fingerprint, body, fan_out, named)
SELECT tenant_id, event_id, type, asset, fingerprint, body, fan_out,
       named::bigint[]
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[],
              $6::bytea[], $7::integer[], $8::text[])
       AS g (tenant_id, event_id, type, asset, fingerprint, body, fan_out,
             named)
 ORDER BY tenant_id, event_id COLLATE "C"
    ON CONFLICT (tenant_id, event_id) DO NOTHING;
