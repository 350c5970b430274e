-- state_totals: what waits, in all.
--
--   $1 bigint    tenant, or null for whichever
--   $2 text      the tenant's name, or null; null with $1: all tenants
--   $3 integer   where each count stops
--
-- Returns one row; none if there is no such tenant.  Times are in microseconds
-- since 1970.
--
-- The words are those of the views.  A few look-ups for each subscription, and
-- then no more rows than counts have room for: of one subscription up to a
-- thousand assets of a kind, so that one alone does not hide all others.

WITH who AS MATERIALIZED (
    SELECT id, name
      FROM postrider.tenant
     WHERE id = $1::bigint
     UNION ALL
    SELECT id, name
      FROM postrider.tenant
     WHERE $1 IS NULL
       AND name = $2::text
     UNION ALL
    SELECT NULL, NULL
     WHERE $1 IS NULL
       AND $2 IS NULL
), scope AS MATERIALIZED (
    (SELECT s.id
       FROM who w
      CROSS JOIN LATERAL (
            SELECT id
              FROM postrider.subscription
             WHERE tenant_id = w.id
               AND state <> 'deleted'
             ORDER BY id
            OFFSET 0) s)
     UNION ALL
    (SELECT s.id
       FROM who w
      CROSS JOIN LATERAL (
            SELECT id
              FROM postrider.subscription
             WHERE w.id IS NULL
               AND state <> 'deleted'
             ORDER BY id
            OFFSET 0) s)
     LIMIT $3::integer
), due AS MATERIALIZED (
    SELECT l.*
      FROM scope x
     CROSS JOIN LATERAL (
           SELECT id, head_id, tail_id, resume_id, head_event_no
             FROM postrider.lane
            WHERE subscription_id = x.id
              AND due_at <= statement_timestamp()
            ORDER BY due_at, id
            LIMIT 1000) l
     LIMIT $3
), later AS MATERIALIZED (
    SELECT l.*
      FROM scope x
     CROSS JOIN LATERAL (
           SELECT id, head_id, tail_id, resume_id, head_event_no
             FROM postrider.lane
            WHERE subscription_id = x.id
              AND due_at > statement_timestamp()
            ORDER BY due_at, id
            LIMIT 1000) l
     LIMIT $3
), in_flight AS MATERIALIZED (
    SELECT l.*
      FROM scope x
     CROSS JOIN LATERAL (
           SELECT id, head_id, tail_id, resume_id, head_event_no
             FROM postrider.lane
            WHERE subscription_id = x.id
              AND leased_at IS NOT NULL
            ORDER BY leased_at
            LIMIT $3) l
     LIMIT $3
), held AS MATERIALIZED (
    SELECT l.*
      FROM scope x
     CROSS JOIN LATERAL (
           SELECT id, head_id, tail_id, resume_id
             FROM postrider.lane
            WHERE subscription_id = x.id
              AND due_at IS NULL
              AND leased_at IS NULL
            ORDER BY asset
            LIMIT 1000) l
     LIMIT $3
), moving AS MATERIALIZED (
    SELECT id, head_id, tail_id, resume_id, head_event_no
      FROM due
     UNION ALL
    SELECT id, head_id, tail_id, resume_id, head_event_no
      FROM in_flight
     UNION ALL
    SELECT id, head_id, tail_id, resume_id, head_event_no
      FROM later
), behind AS MATERIALIZED (
    SELECT
      FROM (SELECT id, tail_id, coalesce(resume_id, head_id + 1) AS next_id
              FROM moving
             UNION ALL
            SELECT id, tail_id, coalesce(resume_id, head_id + 1)
              FROM held) l
     CROSS JOIN LATERAL (
           (SELECT
              FROM postrider.delivery
             WHERE l.tail_id >= l.next_id
               AND lane_id = l.id
               AND id >= l.next_id
               AND state = 'pending'
             ORDER BY id
             LIMIT $3)
            UNION ALL
           (SELECT
              FROM postrider.replay
             WHERE lane_id = l.id
             ORDER BY delivery_id
             LIMIT $3)) b
     LIMIT $3
), oldest AS MATERIALIZED (
    SELECT accepted_at
      FROM postrider.event
     WHERE event_no = (SELECT min(head_event_no) FROM moving)
)
SELECT w.name AS tenant,
       (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS at,
       (SELECT count(*) FROM scope) AS subscriptions,
       least((SELECT count(*) FROM moving)
             + (SELECT count(*) FROM behind), $3::bigint) AS waiting,
       (SELECT count(*) FROM due) AS due,
       (SELECT count(*) FROM later) AS later,
       (SELECT count(*) FROM held) AS held,
       (SELECT count(*) FROM in_flight) AS in_flight,
       (SELECT count(*)
          FROM (SELECT
                  FROM scope x
                 CROSS JOIN LATERAL (
                       SELECT
                         FROM postrider.dead_letter
                        WHERE subscription_id = x.id
                        ORDER BY delivery_id
                        LIMIT $3) l
                 LIMIT $3) c) AS dead,
       (extract(epoch FROM (SELECT accepted_at FROM oldest))
        * 1000000)::bigint AS oldest_accepted_at,
       round(extract(epoch FROM statement_timestamp()
                                - (SELECT accepted_at FROM oldest)), 3)::text
           AS oldest_waiting_seconds
  FROM who w;
