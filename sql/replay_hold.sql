-- replay_hold: lock the lanes that what is to be replayed goes into.
--
-- Follows replay_one or replay_look.  Returns nothing of interest: replay_place
-- follows in the same transaction, and sees all that was committed before these
-- locks were had.
--
-- A lane that does not stand is made, and one that acceptance is just making is
-- waited for: both take lanes in one order.  head_event_no is 0 in a new one
-- until replay_place knows its head; nobody else ever sees that.

WITH wanted AS (
    SELECT s.id AS subscription_id, e.asset
      FROM unnest(current_setting('postrider.replay_events')::bigint[])
           AS r (event_no)
      JOIN postrider.event e ON e.event_no = r.event_no
      JOIN postrider.subscription s
        ON s.id = current_setting('postrider.replay_subscription')::bigint
      LEFT JOIN postrider.delivery d
        ON d.event_no = r.event_no
       AND d.subscription_id = s.id
     WHERE e.asset IS NOT NULL
       AND CASE
               WHEN d.id IS NULL
               THEN current_setting('postrider.replay_ordering') = 'asset'
               ELSE d.lane_id IS NOT NULL
           END
     GROUP BY s.id, e.asset
), new AS (
    SELECT nextval('postrider.position') AS id, subscription_id, asset
      FROM wanted
     ORDER BY asset COLLATE "C"
)
INSERT INTO postrider.lane AS l
       (id, subscription_id, asset, head_id, tail_id, head_event_no)
SELECT id, subscription_id, asset, id, id, 0
  FROM new
    ON CONFLICT (subscription_id, asset) WHERE asset IS NOT NULL
    DO UPDATE
   SET tail_id = l.tail_id;
