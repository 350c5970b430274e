-- turn_wake: back into the round, for what rests until a time that has come.
--
--   $1 integer   most subscriptions
--   $2 bigint    look from there, microseconds since 1970; null: from the start
--
-- Returns one row: how many woke; and from where the next look is to begin, which
-- is where this one did if there may be more to wake.
--
-- Where something holds back vacuum, all that was ever past lies dead before what
-- is past now; so a look begins where the last one ended, and one now and then at
-- the start.

WITH due AS (
    SELECT subscription_id
      FROM postrider.turn
     WHERE wake_at <= statement_timestamp()
       AND wake_at > coalesce('epoch'::timestamptz
                              + $2::bigint * interval '1 microsecond'
                              - interval '5 seconds',
                              '-infinity')
       AND rest <> 'deleted'
     ORDER BY wake_at
     LIMIT $1::integer
       FOR NO KEY UPDATE SKIP LOCKED
), woken AS (
    UPDATE postrider.turn t
       SET rest = NULL,
           wake_at = NULL,
           entered_at = clock_timestamp()
      FROM due d
     WHERE t.subscription_id = ANY (ARRAY[d.subscription_id])
    RETURNING 1
)
SELECT (SELECT count(*) FROM woken) AS woken,
       CASE
           WHEN (SELECT count(*) FROM woken) = $1 THEN $2
           ELSE (extract(epoch FROM coalesce(
                    (SELECT min(look_at)
                       FROM postrider.lane
                      WHERE look_at >= coalesce('epoch'::timestamptz
                                                + $2 * interval '1 microsecond',
                                                '-infinity')
                        AND look_at <= statement_timestamp()),
                    statement_timestamp())) * 1000000)::bigint
       END AS look_from;
