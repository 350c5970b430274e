-- delivery_list: the log of a subscription: its deliveries, the newest first.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    only those with a smaller id, or null for the newest
--   $4 text      state, as the view `deliveries` has it; null for any, and so are
--                all up to $9
--   $5 text      the event's type
--   $6 text      asset
--   $7 text      event id
--   $8 bigint    accepted since, in microseconds since 1970
--   $9 bigint    accepted until, which is not included
--   $10 integer  most rows
--   $11 integer  most deliveries to look at
--
-- Returns rows that say of a delivery what delivery_get does, with how its last
-- attempt ended; if none fits, one with a null id; none if there is no such
-- subscription.  Times are in microseconds since 1970.
--
-- A page costs the same however few fit, so it may be short: more_after is then
-- the id to go on from, null if all was looked at.  What is dead or in flight,
-- and an event, have indexes of their own; all else walks the subscription's
-- deliveries.  Nothing finds them by time, but their ids grow with it, as events'
-- numbers do, save for what overtakes on the way to the commit, which is less
-- than a minute.  So the ends are looked for by halves, and a minute farther.

WITH RECURSIVE asked AS MATERIALIZED (
    SELECT s.id, s.tenant_id, s.state, t.circuit, t.rest, t.wake_at
      FROM postrider.subscription s
      LEFT JOIN postrider.turn t ON t.subscription_id = ANY (ARRAY[s.id])
     WHERE s.id = $2
       AND s.state <> 'deleted'
       AND ($1::bigint IS NULL OR s.tenant_id = $1)
), halves AS (
    SELECT b.is_since, b.at, 0::bigint AS low,
           coalesce((SELECT max(event_no) FROM postrider.event), 0) AS high
      FROM asked
     CROSS JOIN (
           VALUES (true, timestamptz 'epoch'
                         + $8::bigint * interval '1 microsecond'
                         - interval '1 minute'),
                  (false, timestamptz 'epoch'
                          + $9::bigint * interval '1 microsecond'
                          + interval '1 minute')) b (is_since, at)
     WHERE b.at IS NOT NULL
     UNION ALL
    SELECT h.is_since, h.at,
           CASE WHEN e.is_before THEN e.event_no ELSE h.low END,
           CASE WHEN e.is_before THEN h.high ELSE h.middle - 1 END
      FROM (SELECT *, low + (high - low + 1) / 2 AS middle
              FROM halves
             WHERE low < high) h
      LEFT JOIN LATERAL (
           SELECT event_no, accepted_at < h.at AS is_before
             FROM postrider.event
            WHERE event_no >= h.middle
              AND event_no <= h.high
            ORDER BY event_no
            LIMIT 1) e ON true
), range AS MATERIALIZED (
    SELECT a.*,
           coalesce((SELECT max(low) FROM halves WHERE is_since), 0)
               AS above,
           least($3::bigint,
                 (SELECT event_no
                    FROM postrider.event
                   WHERE event_no > (SELECT max(low)
                                       FROM halves
                                      WHERE NOT is_since)
                   ORDER BY event_no
                   LIMIT 1),
                 9223372036854775807) AS below
      FROM asked a
), page AS MATERIALIZED (
    SELECT p.*
      FROM range r
     CROSS JOIN LATERAL (
           SELECT d.id, e.event_id, e.type, e.asset, v.state,
                  CASE WHEN l.head_id <> d.id THEN 'order' ELSE l.why END AS why,
                  CASE
                      WHEN l.head_id = d.id
                      THEN postrider.until(l.why, l.due_at, l.lease_until,
                                           r.wake_at)
                  END AS until,
                  nullif(l.head_id, d.id) AS behind,
                  d.generation, v.attempts, d.status, e.accepted_at,
                  d.finished_at,
                  e.body IS NULL AS is_purged
             FROM ((SELECT id, event_no, lane_id, finished_at, generation,
                           attempts, status, state
                      FROM postrider.delivery
                     WHERE subscription_id = postrider.by_index(r.id)
                       AND id > r.above
                       AND id < r.below
                       AND $7::text IS NULL
                       AND coalesce($4::text, '') NOT IN ('dead', 'delivering')
                     ORDER BY id DESC
                     LIMIT $11::integer)
                    UNION ALL
                   (SELECT x.delivery_id, d.event_no, d.lane_id, d.finished_at,
                           d.generation, d.attempts, d.status, d.state
                      FROM (SELECT delivery_id
                              FROM postrider.dead_letter
                             WHERE subscription_id = postrider.by_index(r.id)
                               AND delivery_id > r.above
                               AND delivery_id < r.below
                               AND $7 IS NULL
                               AND $4 = 'dead'
                             ORDER BY delivery_id DESC
                             LIMIT $11) x
                      JOIN postrider.delivery d
                        ON d.id = ANY (ARRAY[x.delivery_id])
                     ORDER BY x.delivery_id DESC)
                    UNION ALL
                   (SELECT x.head_id, d.event_no, d.lane_id, d.finished_at,
                           d.generation, d.attempts, d.status, d.state
                      FROM (SELECT head_id
                              FROM postrider.lane
                             WHERE subscription_id = postrider.by_index(r.id)
                               AND leased_at IS NOT NULL
                               AND head_id > r.above
                               AND head_id < r.below
                               AND $7 IS NULL
                               AND $4 = 'delivering'
                             ORDER BY head_id DESC) x
                      JOIN postrider.delivery d ON d.id = ANY (ARRAY[x.head_id])
                     ORDER BY x.head_id DESC)
                    UNION ALL
                   (SELECT d.id, d.event_no, d.lane_id, d.finished_at,
                           d.generation, d.attempts, d.status, d.state
                      FROM postrider.event e
                     CROSS JOIN LATERAL (
                           SELECT *
                             FROM postrider.delivery
                            WHERE event_no = postrider.by_index(e.event_no)
                              AND subscription_id = r.id
                           OFFSET 0) d
                     WHERE e.tenant_id = r.tenant_id
                       AND e.event_id = $7
                       AND d.id > r.above
                       AND d.id < r.below
                     ORDER BY d.id DESC)) d
            CROSS JOIN LATERAL (
                  SELECT *
                    FROM postrider.event
                   WHERE event_no = d.event_no
                  OFFSET 0) e
             LEFT JOIN LATERAL (
                  SELECT head_id, attempts, due_at, leased_at, lease_until,
                         postrider.why(due_at, leased_at, r.state, r.circuit,
                                       r.rest) AS why
                    FROM postrider.lane
                   WHERE d.state = 'pending'
                     AND id = coalesce(d.lane_id, d.id)
                  OFFSET 0) l ON true
            CROSS JOIN LATERAL (
                  SELECT CASE l.head_id
                             WHEN d.id THEN l.attempts
                             ELSE d.attempts
                         END AS attempts,
                         CASE
                             WHEN d.state <> 'pending'
                             THEN d.state
                             WHEN l.head_id = d.id AND l.leased_at IS NOT NULL
                             THEN 'delivering'
                             WHEN CASE l.head_id
                                      WHEN d.id THEN l.attempts
                                      ELSE d.attempts
                                  END > 0
                             THEN 'retrying'
                             ELSE 'pending'
                         END AS state) v
            WHERE ($4 IS NULL
                   OR d.state = CASE
                                    WHEN $4 IN ('delivering', 'retrying')
                                    THEN 'pending'
                                    ELSE $4
                                END)
              AND ($4 IS NULL OR v.state = $4)
              AND ($5::text IS NULL OR e.type = $5)
              AND ($6::text IS NULL OR e.asset = $6)
              AND ($8 IS NULL
                   OR e.accepted_at >= timestamptz 'epoch'
                                       + $8 * interval '1 microsecond')
              AND ($9 IS NULL
                   OR e.accepted_at < timestamptz 'epoch'
                                      + $9 * interval '1 microsecond')
            ORDER BY d.id DESC
            LIMIT $10::integer) p
), end_of_page AS MATERIALIZED (
    SELECT CASE
               WHEN $7 IS NOT NULL OR $4 = 'delivering'
                    OR (SELECT count(*) FROM page) = $10
               THEN NULL
               WHEN $4 = 'dead'
               THEN (SELECT delivery_id
                       FROM postrider.dead_letter
                      WHERE subscription_id = postrider.by_index(r.id)
                        AND delivery_id > r.above
                        AND delivery_id < r.below
                      ORDER BY delivery_id DESC
                     OFFSET $11 - 1
                      LIMIT 1)
               ELSE (SELECT id
                       FROM postrider.delivery
                      WHERE subscription_id = postrider.by_index(r.id)
                        AND id > r.above
                        AND id < r.below
                      ORDER BY id DESC
                     OFFSET $11 - 1
                      LIMIT 1)
           END AS more_after
      FROM range r
)
SELECT m.more_after,
       p.id, p.event_id, p.type, p.asset, p.state, p.why,
       (extract(epoch FROM p.until) * 1000000)::bigint AS until,
       p.behind, p.generation, p.attempts, p.status,
       (extract(epoch FROM p.accepted_at) * 1000000)::bigint AS accepted_at,
       (extract(epoch FROM p.finished_at) * 1000000)::bigint AS finished_at,
       p.is_purged,
       a.status AS last_status,
       CASE
           WHEN a.ended <> 'answered' OR a.status NOT BETWEEN 200 AND 299
           THEN coalesce(a.reason, 'HTTP status ' || a.status, a.ended)
       END AS last_error
  FROM end_of_page m
  LEFT JOIN page p ON true
  LEFT JOIN LATERAL (
       SELECT status, ended, reason
         FROM postrider.attempt
        WHERE delivery_id = p.id
        ORDER BY generation DESC, attempt DESC
        LIMIT 1) a ON true
 ORDER BY p.id DESC;
