-- cancel_begin: take up deleted subscriptions whose time has come.
--
--   $1 integer   most subscriptions
--
-- Returns nothing of interest.
--
-- The mark is taken away first, then their lanes are walked.  FOR UPDATE shuts
-- out whoever makes work (turn_share): what was made before is seen by the
-- statements that follow, and what is made later sets wake_at again (work_ready,
-- turn_settle).  One that somebody is sharing is left for the next time.
--
-- A subscription that is being walked keeps its place: its walk ends with a look
-- from the start, which cannot be under way, or this would wait for it.

WITH begun AS (
    UPDATE postrider.turn t
       SET wake_at = NULL
      FROM (SELECT subscription_id
              FROM postrider.turn
             WHERE rest = 'deleted'
               AND wake_at <= statement_timestamp()
             ORDER BY wake_at
             LIMIT $1::integer
               FOR UPDATE SKIP LOCKED) d
     WHERE t.subscription_id = ANY (ARRAY[d.subscription_id])
    RETURNING t.subscription_id
)
INSERT INTO postrider.cancelling AS c (subscription_id)
SELECT subscription_id
  FROM begun
 ORDER BY subscription_id
    ON CONFLICT (subscription_id) DO UPDATE
   SET look_at = least(c.look_at, EXCLUDED.look_at);
