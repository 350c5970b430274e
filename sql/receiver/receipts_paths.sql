-- receipts_paths: what came, counted.
--
-- Returns one row with a JSON object.  A request whose signature was rejected
-- counts as a request, and has no effect.

WITH requests AS (
    SELECT path,
           count(*) AS requests,
           count(*) FILTER (WHERE signature <> 'valid') AS rejected,
           count(*) FILTER (WHERE out_of_order) AS order_violations,
           count(*) FILTER (WHERE overlapping) AS overlaps
      FROM receiver.request
     GROUP BY path
), effects AS (
    SELECT path, count(*) AS effects
      FROM receiver.effect
     GROUP BY path
), paths AS (
    SELECT r.path, r.requests, coalesce(e.effects, 0) AS effects,
           r.rejected AS rejected_signatures, r.order_violations, r.overlaps
      FROM requests r
      LEFT JOIN effects e ON e.path = r.path
)
SELECT json_build_object(
           'paths',
           coalesce(json_agg(row_to_json(p) ORDER BY p.path COLLATE "C"),
                    '[]'),
           'totals',
           json_build_object(
               'requests',            coalesce(sum(p.requests), 0),
               'effects',             coalesce(sum(p.effects), 0),
               'rejected_signatures', coalesce(sum(p.rejected_signatures), 0),
               'order_violations',    coalesce(sum(p.order_violations), 0),
               'overlaps',            coalesce(sum(p.overlaps), 0)))::text
           AS document
  FROM paths p;
