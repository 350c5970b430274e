-- subscription_test_look: what has come of a test.
--
--   $1 bigint    subscription
--   $2 text      id of the event
--
-- Returns one row, unless it is over for long: is_taken, by a dispatcher;
-- is_over: it will not be finished any more.  The rest is as of an attempt.

SELECT finished_at IS NOT NULL AS is_finished,
       taken_by IS NOT NULL AS is_taken,
       expires_at < statement_timestamp() AS is_over,
       (extract(epoch FROM started_at) * 1000000)::bigint AS started_at,
       duration_us, ended, status AS tried_status, reason, remote, dns_us,
       connect_us, tls_us, wait_us, receive_us, headers, excerpt
  FROM postrider.subscription_test
 WHERE subscription_id = $1
   AND event_id = $2;
