-- 0005_replay: replays in the background, and whom an event named.


ALTER TABLE postrider.event ADD COLUMN named bigint[];

COMMENT ON COLUMN postrider.event.named IS
    'the subscriptions that its post named; NULL: it went by its type';


-- Nothing but the row says how far a replay has come: a step moves it on in the
-- transaction that replays.
CREATE TABLE postrider.replay_job (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint      NOT NULL REFERENCES postrider.subscription,
    what            text        NOT NULL CHECK (what IN ('dead', 'events')),
    since           timestamptz NOT NULL DEFAULT '-infinity',
    until           timestamptz NOT NULL DEFAULT 'infinity',
    rate_per_second integer     NOT NULL DEFAULT 100
                                CHECK (rate_per_second BETWEEN 1 AND 10000),
    reached         bigint      NOT NULL DEFAULT 0,
    examined        bigint      NOT NULL DEFAULT 0,
    replayed        bigint      NOT NULL DEFAULT 0,
    refused         bigint      NOT NULL DEFAULT 0,
    state           text        NOT NULL DEFAULT 'running'
                                CHECK (state IN ('running', 'done',
                                                 'cancelled')),
    created_by      text        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    created_in      xid8        NOT NULL DEFAULT pg_current_xact_id(),
    next_step_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    finished_at     timestamptz
) WITH (fillfactor = 50);

COMMENT ON COLUMN postrider.replay_job.what IS
    'dead: dead letters; events: all that its event types match';
COMMENT ON COLUMN postrider.replay_job.until IS
    'not later than created_at, whatever it says';
COMMENT ON COLUMN postrider.replay_job.reached IS
    'all up to here is done: a delivery for dead letters, else an event_no';
COMMENT ON COLUMN postrider.replay_job.examined IS
    'how many it came to; what was under way already is among them';
COMMENT ON COLUMN postrider.replay_job.refused IS
    'how many could not be replayed because their payload was purged';
COMMENT ON COLUMN postrider.replay_job.created_in IS
    'what older transactions accept or record is waited for';

CREATE INDEX replay_job_next
    ON postrider.replay_job (next_step_at)
 WHERE state = 'running';

CREATE INDEX replay_job_subscription
    ON postrider.replay_job (subscription_id, id);


-- A retry is one request to ingest; a background replay is a dispatcher's.  To
-- lock an event against its purge takes a right to change something of it.

GRANT SELECT ON postrider.replay_job TO postrider_reader;

GRANT SELECT, INSERT, UPDATE (state, finished_at)
   ON postrider.replay_job TO postrider_ingest;
GRANT UPDATE (lane_id, finished_at, generation, attempts, status, state)
   ON postrider.delivery TO postrider_ingest;
GRANT UPDATE (head_id, head_event_no, resume_id, resume_at, due_at, attempts),
      DELETE
   ON postrider.lane TO postrider_ingest;
GRANT SELECT, INSERT, DELETE ON postrider.replay TO postrider_ingest;
GRANT SELECT, DELETE ON postrider.dead_letter TO postrider_ingest;
GRANT UPDATE (named) ON postrider.event TO postrider_ingest;

GRANT SELECT, UPDATE (reached, examined, replayed, refused, state,
                      next_step_at, finished_at)
   ON postrider.replay_job TO postrider_dispatch;
GRANT INSERT, UPDATE (lane_id, generation)
   ON postrider.delivery TO postrider_dispatch;
GRANT INSERT, UPDATE (tail_id) ON postrider.lane TO postrider_dispatch;
GRANT SELECT, DELETE ON postrider.dead_letter TO postrider_dispatch;
GRANT USAGE ON SEQUENCE postrider.position TO postrider_dispatch;
