-- history_events: how many valid requests of each event there were.
--
-- Returns one row for each event at each path.

SELECT path, event_id, max(nth) AS requests
  FROM receiver.request
 WHERE nth IS NOT NULL
 GROUP BY path, event_id;
