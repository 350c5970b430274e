-- retention_attempts: forget the attempts at deliveries.
--
--   $1 integer   most deliveries, and for each of them four attempts
--
-- Of the events that retention_judge found to be over.

WITH old AS MATERIALIZED (
    SELECT d.id
      FROM unnest(current_setting('postrider.retention')::bigint[])
           AS x (event_no)
     CROSS JOIN LATERAL (
           SELECT id
             FROM postrider.delivery
            WHERE event_no = x.event_no
           OFFSET 0) d
     LIMIT $1::integer
), tried AS MATERIALIZED (
    SELECT a.*
      FROM old o
     CROSS JOIN LATERAL (
           SELECT delivery_id, generation, attempt
             FROM postrider.other_attempt
            WHERE delivery_id = o.id
           OFFSET 0) a
     LIMIT 4 * $1
)
DELETE FROM postrider.other_attempt a
 USING tried t
 WHERE a.delivery_id = ANY (ARRAY[t.delivery_id])
   AND a.generation = t.generation
   AND a.attempt = t.attempt;
