-- lane_stuck: how many lanes should move and do not.
--
-- Returns one row; 1000 says that many or more.

SELECT count(*) AS lanes
  FROM (SELECT
          FROM postrider.stuck
         LIMIT 1000) s;
