-- 0010_views: views that read no more than they show, at any size.
--
-- Where a count stops at 1000, or a person says LIMIT, walking an index reads as
-- many rows.  A bitmap first collects all that match, so does a sort, and another
-- index passes those of others; which of them looks cheapest depends on sizes and
-- statistics.  With by_index it is the walk, which asks for the key once: for
-- any other way the planner reckons with asking again for each row.

CREATE FUNCTION postrider.by_index(key anyelement)
RETURNS anyelement LANGUAGE plpgsql STABLE PARALLEL SAFE COST 10000
AS $$
BEGIN
    RETURN key;
END
$$;

COMMENT ON FUNCTION postrider.by_index(anyelement) IS
    'what it is given; what is compared with it is looked up in an index';


-- By asset too: an index of few rows, as a planner without statistics takes this
-- one to be, is else walked for the one row that lane_asset would find.

DROP INDEX postrider.lane_held;

CREATE INDEX lane_held
    ON postrider.lane (subscription_id, asset)
 WHERE due_at IS NULL AND leased_at IS NULL;


CREATE OR REPLACE VIEW postrider.assets AS
SELECT s.id AS subscription_id,
       n.name AS tenant,
       l.asset,
       l.head_id AS delivery_id,
       e.event_id,
       e.type,
       e.accepted_at,
       CASE
           WHEN d.id IS NULL          THEN 'gone'
           WHEN d.state <> 'pending'  THEN d.state
           WHEN l.leased_at IS NOT NULL THEN 'delivering'
           WHEN l.attempts > 0        THEN 'retrying'
           ELSE 'pending'
       END AS state,
       postrider.why(l.due_at, l.leased_at, s.state, t.circuit, t.rest) AS why,
       postrider.until(postrider.why(l.due_at, l.leased_at, s.state, t.circuit,
                                     t.rest),
                       l.due_at, l.lease_until, t.wake_at) AS until,
       l.attempts,
       (SELECT count(*) FILTER (WHERE b.state = 'pending')
          FROM (SELECT state
                  FROM postrider.delivery
                 WHERE lane_id = postrider.by_index(l.id)
                   AND id >= coalesce(l.resume_id, l.head_id + 1)
                 ORDER BY id
                 LIMIT 100) b) AS behind,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.replay
                 WHERE lane_id = postrider.by_index(l.id)
                 ORDER BY delivery_id
                 LIMIT 100) r) AS replays,
       (SELECT reason
          FROM postrider.dead_letter
         WHERE delivery_id = l.head_id
           AND l.due_at IS NULL
           AND l.leased_at IS NULL) AS dead_reason,
       l.due_at,
       l.leased_at,
       l.lease_until,
       l.lease_worker
  FROM postrider.subscription s
 CROSS JOIN LATERAL (
       SELECT id, asset, head_id, head_event_no, resume_id, attempts, due_at,
              NULL::timestamptz AS leased_at,
              NULL::timestamptz AS lease_until,
              NULL::text AS lease_worker
         FROM postrider.lane
        WHERE subscription_id = postrider.by_index(s.id)
          AND due_at IS NOT NULL
        UNION ALL
       SELECT id, asset, head_id, head_event_no, resume_id, attempts, NULL,
              leased_at, lease_until, lease_worker
         FROM postrider.lane
        WHERE subscription_id = postrider.by_index(s.id)
          AND leased_at IS NOT NULL
        UNION ALL
       SELECT id, asset, head_id, head_event_no, resume_id, attempts, NULL,
              NULL, NULL, NULL
         FROM postrider.lane
        WHERE subscription_id = postrider.by_index(s.id)
          AND due_at IS NULL
          AND leased_at IS NULL) l
  LEFT JOIN postrider.tenant n ON n.id = s.tenant_id
  LEFT JOIN postrider.turn t ON t.subscription_id = s.id
  LEFT JOIN postrider.event e ON e.event_no = l.head_event_no
  LEFT JOIN postrider.delivery d ON d.id = l.head_id;


CREATE OR REPLACE VIEW postrider.backlog AS
SELECT s.id AS subscription_id,
       n.name AS tenant,
       s.url,
       postrider.why(f.due_at, f.leased_at, s.state, t.circuit, t.rest) AS why,
       postrider.until(postrider.why(f.due_at, f.leased_at, s.state, t.circuit,
                                     t.rest),
                       f.due_at, f.lease_until, t.wake_at) AS until,
       f.due_at AS first_due_at,
       (SELECT e.accepted_at
          FROM postrider.event e
         WHERE e.event_no = (
               SELECT min(c.head_event_no)
                 FROM ((SELECT head_event_no
                          FROM postrider.lane
                         WHERE subscription_id = postrider.by_index(s.id)
                           AND due_at IS NOT NULL
                         ORDER BY due_at, id
                         LIMIT 2)
                        UNION ALL
                       (SELECT head_event_no
                          FROM postrider.lane
                         WHERE subscription_id = postrider.by_index(s.id)
                           AND due_at IS NOT NULL
                         ORDER BY due_at DESC, id DESC
                         LIMIT 2)
                        UNION ALL
                       (SELECT head_event_no
                          FROM postrider.lane
                         WHERE subscription_id = postrider.by_index(s.id)
                           AND leased_at IS NOT NULL
                         ORDER BY leased_at
                         LIMIT 2)) c)) AS oldest_accepted_at,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at <= statement_timestamp()
                 LIMIT 1000) c) AS due,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at > statement_timestamp()
                 LIMIT 1000) c) AS later,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at IS NULL
                   AND leased_at IS NULL
                 LIMIT 1000) c) AS held,
       (SELECT count(*)
          FROM postrider.lane
         WHERE subscription_id = postrider.by_index(s.id)
           AND leased_at IS NOT NULL) AS in_flight,
       postrider.in_flight_limit(t.circuit, s.max_in_flight, t.slowed_to)
           AS in_flight_limit,
       s.rate_per_second
  FROM postrider.subscription s
 CROSS JOIN LATERAL (
       SELECT *
         FROM ((SELECT 1 AS nth, due_at, leased_at, lease_until
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at IS NOT NULL
                 ORDER BY due_at, id
                 LIMIT 1)
                UNION ALL
               (SELECT 2, due_at, leased_at, lease_until
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND leased_at IS NOT NULL
                 ORDER BY leased_at
                 LIMIT 1)
                UNION ALL
               (SELECT 3, due_at, leased_at, lease_until
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at IS NULL
                   AND leased_at IS NULL
                 LIMIT 1)) c
        ORDER BY nth
        LIMIT 1) f
  LEFT JOIN postrider.tenant n ON n.id = s.tenant_id
  LEFT JOIN postrider.turn t ON t.subscription_id = s.id;


CREATE OR REPLACE VIEW postrider.endpoint_health AS
SELECT s.id AS subscription_id,
       n.name AS tenant,
       s.url,
       s.state,
       s.state_reason,
       t.circuit,
       CASE t.circuit WHEN 'open' THEN t.wake_at END AS probe_at,
       t.failures,
       (SELECT round(count(*) FILTER (WHERE c.state = 'delivered')::numeric
                     / nullif(count(*), 0), 2)
          FROM ((SELECT id, lane_id, state
                   FROM postrider.delivery
                  WHERE subscription_id = postrider.by_index(s.id)
                  ORDER BY id DESC
                  LIMIT 50)
                 UNION
                (SELECT id, lane_id, state
                   FROM postrider.delivery
                  WHERE subscription_id = postrider.by_index(s.id)
                    AND id <= coalesce(
                          (SELECT head_id
                             FROM postrider.lane
                            WHERE subscription_id = postrider.by_index(s.id)
                              AND due_at IS NOT NULL
                            ORDER BY due_at, id
                            LIMIT 1),
                          (SELECT head_id
                             FROM postrider.lane
                            WHERE subscription_id = postrider.by_index(s.id)
                              AND leased_at IS NOT NULL
                            ORDER BY leased_at
                            LIMIT 1))
                  ORDER BY id DESC
                  LIMIT 50)) c
          LEFT JOIN postrider.lane l
            ON l.id = ANY (ARRAY[postrider.by_index(coalesce(c.lane_id, c.id))])
           AND l.head_id = c.id
           AND c.state = 'pending'
         WHERE c.state IN ('delivered', 'dead')
            OR l.attempts > (l.leased_at IS NOT NULL)::integer) AS success,
       f.error AS last_error,
       f.started_at AS last_error_at,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at > statement_timestamp()
                 LIMIT 1000) c) AS later,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.dead_letter
                 WHERE subscription_id = postrider.by_index(s.id)
                 LIMIT 1000) c) AS dead,
       (SELECT count(*)
          FROM postrider.lane
         WHERE subscription_id = postrider.by_index(s.id)
           AND leased_at IS NOT NULL) AS in_flight,
       postrider.in_flight_limit(t.circuit, s.max_in_flight, t.slowed_to)
           AS in_flight_limit,
       s.rate_per_second,
       floor(t.slowed_to)::integer AS slowed_to,
       CASE t.rest WHEN 'slowed' THEN t.wake_at END AS slowed_until
  FROM postrider.subscription s
  LEFT JOIN postrider.tenant n ON n.id = s.tenant_id
  LEFT JOIN postrider.turn t ON t.subscription_id = s.id
  LEFT JOIN LATERAL (
       SELECT coalesce(a.reason, 'HTTP status ' || a.status, a.ended) AS error,
              a.started_at
         FROM ((SELECT head_id
                  FROM postrider.lane
                 WHERE subscription_id = postrider.by_index(s.id)
                   AND due_at > statement_timestamp()
                 ORDER BY due_at DESC, id DESC
                 LIMIT 3)
                UNION ALL
               (SELECT delivery_id
                  FROM postrider.dead_letter
                 WHERE subscription_id = postrider.by_index(s.id)
                 ORDER BY delivery_id DESC
                 LIMIT 3)) c
        CROSS JOIN LATERAL (
              SELECT *
                FROM postrider.attempt
               WHERE delivery_id = postrider.by_index(c.head_id)
               ORDER BY generation DESC, attempt DESC
               LIMIT 1) a
        ORDER BY a.started_at DESC NULLS LAST
        LIMIT 1) f ON true
 WHERE s.state <> 'deleted';


CREATE OR REPLACE VIEW postrider.stuck AS
SELECT l.id AS lane_id,
       l.subscription_id,
       l.asset,
       l.head_id AS delivery_id,
       'its lease ran out' AS why,
       l.attempts,
       l.lease_until AS since
  FROM postrider.lane l
 WHERE l.look_at < statement_timestamp() - interval '10 seconds'
   AND l.lease_until < statement_timestamp() - interval '10 seconds'
 UNION ALL
SELECT l.id, t.subscription_id, l.asset, l.head_id,
       'due for over a minute',
       l.attempts,
       l.due_at
  FROM postrider.turn t
  JOIN postrider.subscription s ON s.id = t.subscription_id
 CROSS JOIN LATERAL (
       SELECT id, asset, head_id, attempts, due_at
         FROM postrider.lane
        WHERE subscription_id = postrider.by_index(t.subscription_id)
          AND due_at < statement_timestamp() - interval '1 minute'
        ORDER BY due_at, id
        LIMIT 10) l
 WHERE CASE
           WHEN s.state <> 'active'
           THEN false
           WHEN t.rest IN ('rate', 'circuit', 'slowed')
           THEN t.wake_at < statement_timestamp() - interval '1 minute'
           WHEN t.rest = 'limit' OR t.circuit <> 'closed'
           THEN (SELECT true
                   FROM postrider.lane
                  WHERE subscription_id = postrider.by_index(t.subscription_id)
                    AND leased_at IS NOT NULL
                  LIMIT 1) IS NULL
           ELSE true
       END
 UNION ALL
SELECT l.id, s.id, l.asset, l.head_id,
       'held by a dead letter',
       l.attempts,
       (SELECT died_at
          FROM postrider.dead_letter
         WHERE delivery_id = l.head_id)
  FROM postrider.subscription s
 CROSS JOIN LATERAL (
       SELECT id, asset, head_id, attempts
         FROM postrider.lane
        WHERE subscription_id = postrider.by_index(s.id)
          AND due_at IS NULL
          AND leased_at IS NULL
        LIMIT 10) l;

COMMENT ON VIEW postrider.stuck IS
    'assets that should move and do not, and why; of a subscription up to 10 '
    'that are overdue and 10 that are held';
