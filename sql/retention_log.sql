-- retention_log: forget deliveries, and what died of them.
--
--   $1 integer   most deliveries
--
-- Of the events that retention_judge found to be over.  A delivery with attempts
-- that retention_attempts has left stays; events with deliveries that stay are
-- taken again at once.

WITH over AS MATERIALIZED (
    SELECT event_no
      FROM unnest(current_setting('postrider.retention')::bigint[])
           AS x (event_no)
), old AS MATERIALIZED (
    SELECT d.id
      FROM over v
     CROSS JOIN LATERAL (
           SELECT id
             FROM postrider.delivery
            WHERE event_no = v.event_no
           OFFSET 0) d
     WHERE NOT EXISTS (
           SELECT
             FROM postrider.other_attempt a
            WHERE a.delivery_id = d.id)
     LIMIT $1::integer
), gone AS (
    DELETE FROM postrider.delivery d
     USING old o
     WHERE d.id = ANY (ARRAY[o.id])
    RETURNING d.id
), buried AS (
    DELETE FROM postrider.dead_letter x
     USING gone g
     WHERE x.delivery_id = ANY (ARRAY[g.id])
)
INSERT INTO postrider.retention_late (what, due_at, event_no)
SELECT 'log', r.late_from, v.event_no
  FROM over v
  JOIN postrider.retention r ON r.what = 'log'
 WHERE EXISTS (
       SELECT
         FROM postrider.delivery d
        WHERE d.event_no = v.event_no
          AND d.id <> ALL (ARRAY (SELECT id FROM gone)));
