-- 0013_operations: what happens to subscriptions is an event, too; and nobody
-- has a right that is not written down.
--
-- Operational events are told by dispatchers, from what is on record: the audit,
-- dead letters, lanes.  Whoever writes those knows nothing of it.


-- How far it has been told.  Whoever goes on holds the row, so that no two do.
CREATE TABLE postrider.operation (
    is_only      boolean     PRIMARY KEY DEFAULT true CHECK (is_only),
    audit_number bigint      NOT NULL,
    died_in      xid8        NOT NULL,
    dead_id      bigint      NOT NULL,
    dead_at      timestamptz NOT NULL DEFAULT '-infinity',
    backlog_id   bigint      NOT NULL DEFAULT 0,
    backlog_at   timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);

COMMENT ON COLUMN postrider.operation.audit_number IS
    'entries of the audit up to this one; they come in the order of commits';
COMMENT ON COLUMN postrider.operation.died_in IS
    'dead letters of transactions before this one, and of this one up to dead_id';
COMMENT ON COLUMN postrider.operation.dead_at IS
    'dead letters are not looked at before';
COMMENT ON COLUMN postrider.operation.backlog_id IS
    'subscriptions up to this one were asked how old their backlog is';
COMMENT ON COLUMN postrider.operation.backlog_at IS
    'when the next round begins';


-- Of whose old backlog was told, until it is over.
CREATE TABLE postrider.operation_backlog (
    subscription_id bigint      PRIMARY KEY,
    told_at         timestamptz NOT NULL DEFAULT statement_timestamp()
);


-- Dead letters in an order in which none comes late: when no transaction runs any
-- more that is as old as one of them, all of its are to be seen.
ALTER TABLE postrider.dead_letter
    ADD died_in xid8 NOT NULL DEFAULT pg_current_xact_id();

CREATE INDEX dead_letter_order
    ON postrider.dead_letter (died_in, delivery_id);

INSERT INTO postrider.operation (audit_number, died_in, dead_id)
SELECT number, pg_current_xact_id(), 9223372036854775807
  FROM postrider.audit_head;


-- Whether anybody wants to be told: as a rule this index is empty.
CREATE INDEX subscription_pattern_operation
    ON postrider.subscription_pattern (subscription_id)
 WHERE starts_with(pattern, 'postrider.');


-- As events show a time: RFC 3339, in UTC, to the millisecond.
CREATE FUNCTION postrider.rfc3339(at timestamptz)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');


-- The only way in which a dispatcher makes an event.  Returns its number, or NULL
-- if there is one under this id.
CREATE FUNCTION postrider.operation_event(owner bigint, id text, kind text,
                                          at timestamptz, data jsonb,
                                          takers integer)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    body   bytea := convert_to(format('{"id":%s,"type":%s,"timestamp":%s,'
                                      '"data":%s}',
                                      to_json(id), to_json(kind),
                                      to_json(postrider.rfc3339(at)), data),
                               'UTF8');
    number bigint;
BEGIN
    IF starts_with(kind, 'postrider.') IS NOT TRUE THEN
        RAISE invalid_parameter_value
        USING MESSAGE = 'an operational event has a type of its own';
    END IF;
    INSERT INTO postrider.event (tenant_id, event_id, type, fingerprint, body,
                                 fan_out)
    VALUES (owner, id, kind, sha256(body), body, takers)
        ON CONFLICT DO NOTHING
    RETURNING event_no
      INTO number;
    RETURN number;
END
$$;


-- Functions are everybody's until they are taken back.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA postrider FROM PUBLIC;

GRANT EXECUTE ON FUNCTION postrider.why, postrider.until, postrider.by_index,
                          postrider.in_flight_limit
   TO postrider_ingest, postrider_reader;
GRANT EXECUTE ON FUNCTION postrider.in_flight_limit, postrider.rfc3339,
                          postrider.operation_event
   TO postrider_dispatch;

-- Views are for people, and for what ingest shows them.
REVOKE SELECT ON postrider.deliveries, postrider.assets, postrider.backlog,
                 postrider.dead_letters, postrider.endpoint_health,
                 postrider.stuck
  FROM postrider_dispatch;

GRANT SELECT, UPDATE (audit_number, died_in, dead_id, dead_at, backlog_id,
                      backlog_at)
   ON postrider.operation TO postrider_dispatch;
GRANT SELECT, INSERT, DELETE ON postrider.operation_backlog
   TO postrider_dispatch;
GRANT SELECT (number, at, actor, tenant_id, action, subject, detail)
   ON postrider.audit TO postrider_dispatch;
GRANT SELECT (id, name) ON postrider.tenant TO postrider_dispatch;
GRANT SELECT ON postrider.subscription_pattern TO postrider_dispatch;
