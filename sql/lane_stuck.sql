-- lane_stuck: how many lanes should move and do not.
--
-- Returns one row.

SELECT count(*) AS lanes
  FROM postrider.stuck;
