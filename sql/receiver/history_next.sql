-- history_next: the first id that is free.
--
-- Returns one row.

SELECT coalesce(max(id), 0) + 1 AS id
  FROM receiver.request;
