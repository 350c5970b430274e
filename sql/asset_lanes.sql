-- asset_lanes: where an asset stands, with each subscription that has something of
-- it unfinished.
--
--   $1 bigint    tenant
--   $2 text      asset
--   $3 bigint    subscription, or null for all
--   $4 integer   most subscriptions
--   $5 integer   most deliveries that wait, of each subscription
--   $6 integer   most that are over, of each
--
-- Returns one row a delivery: by subscription, and of each first the head (part
-- 1), then replays that wait (2) and what was not sent yet (3), in the order in
-- which they will go, at last what is over (4), newest first.  None if nothing
-- waits.  Times are in microseconds since 1970.
--
-- What it says is what the views `assets` and `deliveries` say.  What is over is
-- known for as long as its lane, which ends when nothing waits any more.

WITH subscriptions AS MATERIALIZED (
    SELECT id, url, state
      FROM postrider.subscription
     WHERE id = $3::bigint
       AND tenant_id = $1::bigint
       AND state <> 'deleted'
     UNION ALL
    (SELECT id, url, state
       FROM postrider.subscription
      WHERE $3 IS NULL
        AND tenant_id = $1
        AND state <> 'deleted'
      ORDER BY id)
), lanes AS MATERIALIZED (
    SELECT s.id AS subscription_id, s.url, l.id, l.head_id, l.tail_id,
           l.resume_id, l.due_at, l.lease_until, t.wake_at,
           postrider.why(l.due_at, l.leased_at, s.state, t.circuit, t.rest)
               AS why
      FROM subscriptions s
     CROSS JOIN LATERAL (
           SELECT *
             FROM postrider.lane
            WHERE subscription_id = s.id
              AND asset = $2::text
           OFFSET 0) l
      LEFT JOIN postrider.turn t ON t.subscription_id = ANY (ARRAY[s.id])
     LIMIT $4::integer
)
SELECT l.subscription_id, l.url, l.why,
       (extract(epoch FROM postrider.until(l.why, l.due_at, l.lease_until,
                                           l.wake_at)) * 1000000)::bigint
           AS until,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.delivery
                 WHERE l.tail_id >= coalesce(l.resume_id, l.head_id + 1)
                   AND lane_id = l.id
                   AND id >= coalesce(l.resume_id, l.head_id + 1)
                   AND state = 'pending'
                 ORDER BY id
                 LIMIT 100) b) AS behind,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.replay
                 WHERE lane_id = l.id
                 ORDER BY delivery_id
                 LIMIT 100) b) AS replays,
       i.part, d.id, d.event_id, d.type, d.state, d.generation,
       d.generation > 1 AS replayed, d.attempts, d.status,
       CASE WHEN d.state <> 'delivered' THEN a.error END AS last_error,
       (extract(epoch FROM a.started_at) * 1000000)::bigint AS last_attempt_at,
       (extract(epoch FROM d.accepted_at) * 1000000)::bigint AS accepted_at,
       (extract(epoch FROM d.finished_at) * 1000000)::bigint AS finished_at
  FROM lanes l
 CROSS JOIN LATERAL (
       SELECT 1 AS part, l.head_id AS id
        UNION ALL
       (SELECT 2, delivery_id
          FROM postrider.replay
         WHERE lane_id = l.id
         ORDER BY delivery_id
         LIMIT $5::integer)
        UNION ALL
       (SELECT 3, id
          FROM postrider.delivery
         WHERE l.tail_id >= coalesce(l.resume_id, l.head_id + 1)
           AND lane_id = l.id
           AND id >= coalesce(l.resume_id, l.head_id + 1)
           AND state = 'pending'
         ORDER BY id
         LIMIT $5)
        UNION ALL
       (SELECT 4, id
          FROM postrider.delivery
         WHERE lane_id = l.id
           AND id < coalesce(l.resume_id, l.head_id)
           AND id <> l.head_id
           AND state <> 'pending'
         ORDER BY id DESC
         LIMIT $6::integer)) i
 CROSS JOIN LATERAL (
       SELECT *
         FROM postrider.deliveries
        WHERE id = i.id
       OFFSET 0) d
  LEFT JOIN LATERAL (
       SELECT coalesce(reason, 'HTTP status ' || status, ended) AS error,
              started_at
         FROM postrider.attempt
        WHERE delivery_id = i.id
        ORDER BY generation DESC, attempt DESC
        LIMIT 1) a ON true
 ORDER BY l.subscription_id, i.part,
          CASE i.part WHEN 4 THEN -i.id ELSE i.id END;
