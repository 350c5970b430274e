-- schema: the receiver's own tables, in a database of its own.
--
-- Run at every start; what is there already stays.

CREATE SCHEMA IF NOT EXISTS receiver;


-- Every request that reached an endpoint, in the order of arrival.
CREATE TABLE IF NOT EXISTS receiver.request (
    id           bigint      PRIMARY KEY,
    path         text        NOT NULL,
    event_id     text,
    asset        text,
    position     bigint,
    attempt      integer,
    arrived_at   timestamptz NOT NULL,
    answered_at  timestamptz,
    status       integer,
    signature    text        NOT NULL,
    nth          integer     CHECK ((nth IS NULL) OR (signature = 'valid')),
    out_of_order boolean     NOT NULL,
    overlapping  boolean     NOT NULL,
    body_sha256  bytea       NOT NULL CHECK (octet_length(body_sha256) = 32),
    body         bytea
);

COMMENT ON COLUMN receiver.request.signature IS
    'valid, or why not: no_secret, missing, malformed, expired, wrong';
COMMENT ON COLUMN receiver.request.status IS
    'what was answered; null if nothing was, or not yet';
COMMENT ON COLUMN receiver.request.nth IS
    'which request of its event at this path; null if it was rejected';
COMMENT ON COLUMN receiver.request.out_of_order IS
    'the first of its event, behind that of a later event of the asset';
COMMENT ON COLUMN receiver.request.overlapping IS
    'it came while another of its asset was unanswered';
COMMENT ON COLUMN receiver.request.body IS
    'the bytes as they came; of the first request of each event alone';

CREATE INDEX IF NOT EXISTS request_of_event
    ON receiver.request (path, event_id, id)
 WHERE nth IS NOT NULL;

CREATE INDEX IF NOT EXISTS request_first
    ON receiver.request (path, id)
 WHERE nth = 1;


-- The business effect of an event, applied once however often it came.
CREATE TABLE IF NOT EXISTS receiver.effect (
    path       text        NOT NULL,
    event_id   text        NOT NULL,
    request_id bigint      NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (path, event_id)
);
