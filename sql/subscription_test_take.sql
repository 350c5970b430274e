-- subscription_test_take: take tests that somebody waits for, to send them.
--
--   $1 text      the dispatcher
--   $2 integer   most
--
-- Returns what is to be sent, and for how long the dispatcher has it is in the
-- row: as long as an attempt may take, and ten seconds.  Whatever is over for a
-- minute is forgotten.  It waits for no lock.

WITH forgotten AS (
    DELETE FROM postrider.subscription_test
     WHERE subscription_id = ANY (ARRAY(
           SELECT subscription_id
             FROM postrider.subscription_test
            WHERE expires_at < statement_timestamp() - interval '1 minute'
            ORDER BY expires_at
            LIMIT 100
              FOR UPDATE SKIP LOCKED))
), next AS MATERIALIZED (
    SELECT t.subscription_id, s.timeout_ms
      FROM postrider.subscription_test t
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[t.subscription_id])
     WHERE t.taken_by IS NULL
       AND t.expires_at > statement_timestamp()
       AND s.state <> 'deleted'
     ORDER BY t.expires_at
     LIMIT $2::integer
       FOR UPDATE OF t SKIP LOCKED
)
UPDATE postrider.subscription_test t
   SET taken_by = $1,
       expires_at = statement_timestamp()
                    + n.timeout_ms * interval '1 millisecond'
                    + interval '10 seconds'
  FROM next n
 WHERE t.subscription_id = ANY (ARRAY[n.subscription_id])
RETURNING t.subscription_id, t.event_id, t.body;
