-- retention_hold: shut out, until the commit, whoever would send these again.
--
-- Of the events that retention_take took, for a walk over payloads.  Returns
-- nothing of interest.
--
-- Whoever makes a delivery of an accepted event, or makes one pending again,
-- takes the event FOR KEY SHARE in the statement that asks for its body, before
-- it writes.  So either it finds the body gone; or the statements that follow
-- here find the delivery pending; or it is at it just now, and this one is looked
-- at again in a while.

WITH taken AS MATERIALIZED (
    SELECT event_no
      FROM unnest(current_setting('postrider.retention')::bigint[])
           AS x (event_no)
), held AS MATERIALIZED (
    SELECT e.event_no
      FROM taken t
     CROSS JOIN LATERAL (
           SELECT event_no
             FROM postrider.event
            WHERE event_no = t.event_no
              FOR UPDATE SKIP LOCKED) e
), left_out AS (
    INSERT INTO postrider.retention_late (what, due_at, event_no)
    SELECT 'payload', statement_timestamp() + interval '1 minute', event_no
      FROM taken
     WHERE event_no <> ALL (ARRAY (SELECT event_no FROM held))
)
SELECT set_config('postrider.retention',
                  (ARRAY (SELECT event_no FROM held))::text, true);
