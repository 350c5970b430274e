-- replay_span: from where to where the replays of a subscription go.
--
--   $1 bigint    subscription
--   $2 text      dead: over ids of dead letters; events: over events' numbers
--
-- Returns one row; nulls if there is nothing.

SELECT CASE $2::text
           WHEN 'dead'
           THEN (SELECT delivery_id
                   FROM postrider.dead_letter
                  WHERE subscription_id = postrider.by_index($1::bigint)
                  ORDER BY delivery_id
                  LIMIT 1)
           ELSE (SELECT min(event_no) FROM postrider.event)
       END AS first,
       CASE $2
           WHEN 'dead'
           THEN (SELECT delivery_id
                   FROM postrider.dead_letter
                  WHERE subscription_id = postrider.by_index($1::bigint)
                  ORDER BY delivery_id DESC
                  LIMIT 1)
           ELSE (SELECT max(event_no) FROM postrider.event)
       END AS last;
