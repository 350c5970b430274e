-- turn_next: when there will be something to claim, for a pass that took no turn.
--
--   $1 bigint    look from there, as turn_wake returns it; null: from the start
--
-- Follows turn_take or turn_rest in its transaction.  Returns one row: in how many microseconds
-- the next turn wakes or the next lease is to be looked at (null if none), so that
-- a dispatcher sleeps exactly so long.  None are left if one is past that somebody
-- else holds.  Where a turn was taken it is null: there is another pass, or a rest.

SELECT (extract(epoch FROM
            least((SELECT min(wake_at)
                     FROM postrider.turn
                    WHERE wake_at > p.look_from - interval '5 seconds'
                      AND rest <> 'deleted'),
                  (SELECT min(look_at)
                     FROM postrider.lane
                    WHERE look_at >= p.look_from))
            - statement_timestamp()) * 1000000)::bigint AS next_in_us
  FROM (SELECT coalesce('epoch'::timestamptz
                        + $1::bigint * interval '1 microsecond',
                        '-infinity') AS look_from
         WHERE coalesce(current_setting('postrider.taken', true), '')
               IN ('', '{}')
        OFFSET 0) p
 UNION ALL
SELECT NULL
 WHERE coalesce(current_setting('postrider.taken', true), '')
       NOT IN ('', '{}');
