-- receipts_events: the events that came to one path, in the order in which
-- each came first.
--
--   $1 text    path
--   $2 bigint  cursor: go on after this request; 0 to begin
--   $3 bigint  most events to return, from 1
--
-- Returns one row with a JSON object.  "next" is the cursor for what follows,
-- null if that was all.  Requests whose signature was rejected are left out.

WITH page AS (
    SELECT id, event_id, asset, position, body_sha256
      FROM receiver.request
     WHERE path = $1
       AND nth = 1
       AND id > $2
     ORDER BY id
     LIMIT $3::bigint + 1             -- one more tells whether more follow
), listed AS (
    SELECT p.*, a.requests, a.statuses
      FROM (SELECT * FROM page ORDER BY id LIMIT $3) p
     CROSS JOIN LATERAL (
               SELECT count(*) AS requests,
                      json_agg(r.status ORDER BY r.id) AS statuses
                 FROM receiver.request r
                WHERE r.path = $1
                  AND r.event_id = p.event_id
                  AND r.nth IS NOT NULL) a
)
SELECT json_build_object(
           'path', $1::text,
           'events',
           coalesce(json_agg(json_build_object(
                        'event_id',    l.event_id,
                        'asset',       l.asset,
                        'position',    l.position,
                        'requests',    l.requests,
                        'statuses',    l.statuses,
                        'body_sha256', encode(l.body_sha256, 'hex'))
                    ORDER BY l.id), '[]'),
           'next',
           CASE WHEN (SELECT count(*) FROM page) > $3 THEN max(l.id) END)::text
           AS document
  FROM listed l;
