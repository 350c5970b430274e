-- history_lanes: how far each lane has come.
--
-- Returns one row for each asset at each path, with the highest position of
-- an event's first request.

SELECT path, asset, max(position) AS highest
  FROM receiver.request
 WHERE nth = 1
   AND asset IS NOT NULL
   AND position IS NOT NULL
 GROUP BY path, asset;
