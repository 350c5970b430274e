-- 0006_retention: what is cancelled, and what goes when it is old.


-- Deleted subscriptions whose unfinished deliveries are being cancelled.  The
-- walk goes over lanes with an asset first, then over what is due.
CREATE TABLE postrider.cancelling (
    subscription_id bigint      PRIMARY KEY,
    look_at         timestamptz NOT NULL DEFAULT statement_timestamp(),
    due_from        timestamptz NOT NULL DEFAULT '-infinity',
    after_asset     text        NOT NULL DEFAULT ''
);

COMMENT ON COLUMN postrider.cancelling.after_asset IS
    'lanes up to this asset have been walked';
COMMENT ON COLUMN postrider.cancelling.due_from IS
    'lanes due before have been walked';

CREATE INDEX cancelling_look
    ON postrider.cancelling (look_at);


-- How far the two walks over old events have come.  Whoever goes on with one
-- holds its row, so that no two do.
CREATE TABLE postrider.retention (
    what      text        PRIMARY KEY CHECK (what IN ('payload', 'log')),
    event_no  bigint      NOT NULL DEFAULT 0,
    late_from timestamptz NOT NULL DEFAULT '-infinity'
);

COMMENT ON COLUMN postrider.retention.event_no IS
    'events up to this one have been looked at';
COMMENT ON COLUMN postrider.retention.late_from IS
    'nothing in retention_late is due before';

INSERT INTO postrider.retention (what) VALUES ('payload'), ('log');


-- Events that could not go when the walk came by, and when to look again.
CREATE TABLE postrider.retention_late (
    what     text        NOT NULL,
    due_at   timestamptz NOT NULL,
    event_no bigint      NOT NULL,
    PRIMARY KEY (what, due_at, event_no)
);


-- Whoever may forget what was sent may not change it.
CREATE FUNCTION postrider.refuse_another_body() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE insufficient_privilege
    USING MESSAGE = 'the body of an event is forgotten or stays as it is';
END
$$;

CREATE TRIGGER event_body
BEFORE UPDATE OF body ON postrider.event
   FOR EACH ROW
  WHEN (NEW.body IS NOT NULL)
EXECUTE FUNCTION postrider.refuse_another_body();


-- A fifth of these tables may be much: what is deleted makes room for what
-- comes only once it is vacuumed.
ALTER TABLE postrider.event SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE postrider.delivery SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE postrider.attempt SET (autovacuum_vacuum_scale_factor = 0.05);


GRANT SELECT, INSERT, DELETE, UPDATE (look_at, due_from, after_asset)
   ON postrider.cancelling TO postrider_dispatch;
GRANT SELECT, UPDATE (event_no, late_from)
   ON postrider.retention TO postrider_dispatch;
GRANT SELECT, INSERT, DELETE ON postrider.retention_late TO postrider_dispatch;
GRANT UPDATE (body) ON postrider.event TO postrider_dispatch;
GRANT DELETE ON postrider.delivery TO postrider_dispatch;
GRANT SELECT, DELETE ON postrider.attempt, postrider.dead_letter
   TO postrider_dispatch;

GRANT SELECT ON postrider.cancelling, postrider.retention,
                postrider.retention_late
   TO postrider_reader;
