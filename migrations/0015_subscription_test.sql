-- 0015_subscription_test: test events, which are sent at once and beside the
-- queue.
--
-- Ingest asks, a dispatcher sends, ingest reads what came back: so requests go
-- out from dispatchers alone, past one guard, and ingest opens no secret.  A
-- test is in no lane and no turn, and nothing counts it.


-- The newest test of a subscription, or none: that keeps them to one at a time.
-- Rows are gone minutes later.
CREATE TABLE postrider.subscription_test (
    subscription_id bigint      PRIMARY KEY REFERENCES postrider.subscription,
    tenant_id       bigint      NOT NULL,
    asked_at        timestamptz NOT NULL DEFAULT statement_timestamp(),
    expires_at      timestamptz NOT NULL DEFAULT statement_timestamp()
                                                 + interval '10 seconds',
    event_id        text        NOT NULL,
    body            bytea       NOT NULL,
    taken_by        text,
    finished_at     timestamptz,
    started_at      timestamptz,
    duration_us     bigint,
    status          integer,
    ended           text,
    remote          text,
    reason          text,
    dns_us          integer,
    connect_us      integer,
    tls_us          integer,
    wait_us         integer,
    receive_us      integer,
    headers         text,
    excerpt         text,
    CHECK ((finished_at IS NULL) = (ended IS NULL))
) WITH (fillfactor = 50);

COMMENT ON COLUMN postrider.subscription_test.event_id IS
    'random; so it also tells this test from the one before';
COMMENT ON COLUMN postrider.subscription_test.expires_at IS
    'nobody takes it from then on, or waits for the dispatcher that took it';
COMMENT ON COLUMN postrider.subscription_test.taken_by IS
    'the dispatcher that sends it';
COMMENT ON COLUMN postrider.subscription_test.ended IS
    'as an attempt''s, and so is all that follows';

CREATE INDEX subscription_test_next
    ON postrider.subscription_test (expires_at)
 WHERE taken_by IS NULL;

CREATE INDEX subscription_test_expires
    ON postrider.subscription_test (expires_at);

CREATE INDEX subscription_test_tenant
    ON postrider.subscription_test (tenant_id)
 WHERE finished_at IS NULL;

GRANT SELECT, INSERT (subscription_id, tenant_id, event_id, body),
      UPDATE (asked_at, expires_at, event_id, body, taken_by, finished_at,
              started_at, duration_us, status, ended, remote, reason, dns_us,
              connect_us, tls_us, wait_us, receive_us, headers, excerpt)
   ON postrider.subscription_test TO postrider_ingest;

GRANT SELECT, DELETE,
      UPDATE (expires_at, taken_by, finished_at, started_at, duration_us,
              status, ended, remote, reason, dns_us, connect_us, tls_us,
              wait_us, receive_us, headers, excerpt)
   ON postrider.subscription_test TO postrider_dispatch;

-- What came back may be what was sent: no reader's, as with attempts.
GRANT SELECT (subscription_id, tenant_id, asked_at, expires_at, event_id,
              taken_by, finished_at, started_at, duration_us, status, ended,
              remote, reason, dns_us, connect_us, tls_us, wait_us, receive_us)
   ON postrider.subscription_test TO postrider_reader;
