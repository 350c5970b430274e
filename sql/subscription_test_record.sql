-- subscription_test_record: what came of a test.
--
--   $1 bigint    subscription
--   $2 text      id of the event
--   $3 text      ended, as of an attempt, and so are all that follow
--   $4 integer   status, or null
--   $5 bigint    duration, microseconds
--   $6 text      remote
--   $7 text      reason
--   $8 integer   dns_us, or null; so may be all that follow
--   $9 integer   connect_us
--   $10 integer  tls_us
--   $11 integer  wait_us
--   $12 integer  receive_us
--   $13 text     headers
--   $14 text     excerpt
--
-- Whoever asked for it may have given up: then there is a newer test, or none.

UPDATE postrider.subscription_test
   SET finished_at = statement_timestamp(),
       started_at = statement_timestamp() - $5::bigint * interval '1 microsecond',
       duration_us = $5,
       status = $4,
       ended = $3,
       remote = $6,
       reason = $7,
       dns_us = $8,
       connect_us = $9,
       tls_us = $10,
       wait_us = $11,
       receive_us = $12,
       headers = $13,
       excerpt = $14
 WHERE subscription_id = $1
   AND event_id = $2
   AND finished_at IS NULL;
