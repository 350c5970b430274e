-- request_answer: note answers that were given after the request was kept.
--
--   $1 bigint[]   request
--   $2 integer[]  status
--   $3 bigint[]   when, in microseconds since 1970
--
-- Returns nothing.

UPDATE receiver.request r
   SET status      = g.status,
       answered_at = timestamptz 'epoch'
                     + g.answered_us * interval '1 microsecond'
  FROM unnest($1::bigint[], $2::integer[], $3::bigint[])
       AS g (id, status, answered_us)
 WHERE r.id = g.id;
