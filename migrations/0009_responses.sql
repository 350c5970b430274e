-- 0009_responses: what is kept of a response.
--
-- The reader's rights are by column from here on: what a receiver wrote may be
-- what it was sent, so people see it in the delivery's detail only, which asks
-- whose it is.

ALTER TABLE postrider.attempt
  ADD COLUMN dns_us integer,
  ADD COLUMN connect_us integer,
  ADD COLUMN tls_us integer,
  ADD COLUMN wait_us integer,
  ADD COLUMN receive_us integer,
  ADD COLUMN headers text,
  ADD COLUMN excerpt text;

COMMENT ON COLUMN postrider.attempt.dns_us IS
    'looking up the name; NULL, as all that follow: it did not come to that';
COMMENT ON COLUMN postrider.attempt.connect_us IS
    'NULL, as tls_us, on a connection that was used again';
COMMENT ON COLUMN postrider.attempt.wait_us IS
    'from the request to the first octet of the answer';
COMMENT ON COLUMN postrider.attempt.receive_us IS
    'from there to its last';
COMMENT ON COLUMN postrider.attempt.headers IS
    'some of the answer''s, a line each';
COMMENT ON COLUMN postrider.attempt.excerpt IS
    'how the answer''s body begins; up to 1 KiB';

REVOKE SELECT ON postrider.attempt FROM postrider_reader;
GRANT SELECT (delivery_id, started_at, duration_us, generation, attempt, status,
              ended, worker, remote, reason, dns_us, connect_us, tls_us,
              wait_us, receive_us)
   ON postrider.attempt TO postrider_reader;
GRANT SELECT ON postrider.attempt TO postrider_ingest;
