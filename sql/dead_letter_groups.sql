-- dead_letter_groups: what died, of which subscription, and of what.
--
--   $1 bigint    tenant
--   $2 bigint    subscription, or null for all
--   $3 text      reason, or null for any
--   $4 integer   most dead letters to look at, of each subscription: the newest
--   $5 integer   most dead letters to look at, in all
--   $6 integer   most groups
--
-- Returns one row a group, the largest first, or one with a null reason; none if
-- the tenant has no such subscription.  is_complete: all dead letters were looked
-- at.  Times are in microseconds since 1970.

WITH scope AS MATERIALIZED (
    SELECT id, url
      FROM postrider.subscription
     WHERE id = $2::bigint
       AND tenant_id = $1::bigint
       AND state <> 'deleted'
     UNION ALL
    (SELECT id, url
       FROM postrider.subscription
      WHERE $2 IS NULL
        AND tenant_id = $1
        AND state <> 'deleted'
      ORDER BY id)
), letters AS MATERIALIZED (
    SELECT x.id AS subscription_id, x.url, l.delivery_id, l.died_at, l.reason
      FROM scope x
     CROSS JOIN LATERAL (
           SELECT delivery_id, died_at, reason
             FROM postrider.dead_letter
            WHERE subscription_id = x.id
            ORDER BY delivery_id DESC
            LIMIT $4::integer) l
     LIMIT $5::integer
), groups AS MATERIALIZED (
    SELECT subscription_id, url, reason, count(*) AS count,
           min(died_at) AS oldest_died_at,
           max(died_at) AS newest_died_at,
           max(delivery_id) AS newest_delivery_id
      FROM letters
     WHERE $3::text IS NULL
        OR reason = $3
     GROUP BY subscription_id, url, reason
     ORDER BY count DESC, subscription_id, reason
     LIMIT $6::integer
)
SELECT (SELECT count(*) FROM letters) AS examined,
       (SELECT count(*) FROM letters) < $5
       AND NOT EXISTS (SELECT
                         FROM letters
                        GROUP BY subscription_id
                       HAVING count(*) >= $4) AS is_complete,
       g.subscription_id, g.url, g.reason, g.count,
       (extract(epoch FROM g.oldest_died_at) * 1000000)::bigint
           AS oldest_died_at,
       (extract(epoch FROM g.newest_died_at) * 1000000)::bigint
           AS newest_died_at,
       g.newest_delivery_id
  FROM (SELECT
         WHERE $2 IS NULL
            OR EXISTS (SELECT FROM scope)) o
  LEFT JOIN groups g ON true
 ORDER BY g.count DESC, g.subscription_id, g.reason;
