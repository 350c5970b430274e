-- turn_wake: back into the round, for what rests and has lanes due by now.
--
--   $1 integer   most subscriptions
--
-- Returns one row: how many woke; whether the round has anybody in it; and in
-- how many microseconds the next lane falls due or the next lease runs out
-- (null if none), so that a dispatcher sleeps exactly so long.  None are left
-- if one is past that somebody else holds.

WITH due AS (
    SELECT subscription_id
      FROM postrider.turn
     WHERE wake_at <= statement_timestamp()
     ORDER BY wake_at
     LIMIT $1::integer
       FOR NO KEY UPDATE SKIP LOCKED
), woken AS (
    UPDATE postrider.turn t
       SET rest = NULL,
           wake_at = NULL
      FROM due d
     WHERE t.subscription_id = d.subscription_id
    RETURNING 1
)
SELECT (SELECT count(*) FROM woken) AS woken,
       EXISTS (SELECT FROM postrider.turn WHERE rest IS NULL) AS has_round,
       (extract(epoch FROM
            least((SELECT min(wake_at)
                     FROM postrider.turn
                    WHERE wake_at IS NOT NULL),
                  (SELECT min(lease_until)
                     FROM postrider.lane
                    WHERE lease_token IS NOT NULL))
            - statement_timestamp()) * 1000000)::bigint AS next_in_us;
