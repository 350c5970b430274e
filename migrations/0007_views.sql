-- 0007_views: what people read in psql, and what it costs them.
--
-- No secret and no payload in any.  A condition on a subscription, an asset, an
-- event or a delivery reaches its index; the newest rows come by walking one; a
-- look at all subscriptions costs each of them a few look-ups.  Hence the shape:
-- counts stop at 1000 or 100; columns that have to be looked up are subqueries,
-- which ORDER BY ... LIMIT asks for the rows that it shows only; joins are LEFT
-- where they can be, so that what nobody asks for is left out of the plan.
--
-- People run them under the planner's default settings and whatever statistics
-- there are.  "BETWEEN s.id AND s.id", ordered by that column first, leaves one
-- index that has the order.  With "=" the planner drops the column from the
-- order, and may walk the ids of all subscriptions for a few rows of this one,
-- or sort all rows of this one to count the first thousand.


-- Held lanes.  Its columns are in other indexes already, so a lane that is
-- handed back is still written without touching any; and no lane is in it but
-- those that wait for a person.

CREATE INDEX lane_held
    ON postrider.lane (subscription_id)
 WHERE due_at IS NULL AND leased_at IS NULL;

CREATE INDEX dead_letter_died
    ON postrider.dead_letter (died_at);


DROP VIEW postrider.deliveries, postrider.backlog, postrider.dead_letters,
          postrider.endpoint_health, postrider.stuck;


-- What a lane waits for, in a word, and until when.  PostgreSQL writes their
-- bodies into the views' plans.

CREATE FUNCTION postrider.why(due_at timestamptz, leased_at timestamptz,
                              state text, circuit text, rest text)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
           WHEN leased_at IS NOT NULL          THEN 'in flight'
           WHEN due_at IS NULL                 THEN 'held'
           WHEN state <> 'active'              THEN state
           WHEN circuit <> 'closed'            THEN 'circuit'
           WHEN rest = 'slowed'                THEN rest
           WHEN due_at > statement_timestamp() THEN 'retry'
           WHEN rest IN ('limit', 'rate')      THEN rest
           ELSE 'ready'
       END;

CREATE FUNCTION postrider.until(why text, due_at timestamptz,
                                lease_until timestamptz, wake_at timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE why
           WHEN 'in flight' THEN lease_until
           WHEN 'circuit'   THEN greatest(wake_at, due_at)
           WHEN 'slowed'    THEN greatest(wake_at, due_at)
           WHEN 'retry'     THEN due_at
           WHEN 'rate'      THEN wake_at
       END;


CREATE VIEW postrider.deliveries AS
SELECT d.id,
       e.event_id,
       n.name AS tenant,
       d.subscription_id,
       e.type,
       e.asset,
       CASE
           WHEN d.state <> 'pending'
           THEN d.state
           WHEN l.head_id = d.id AND l.leased_at IS NOT NULL
           THEN 'delivering'
           WHEN CASE l.head_id WHEN d.id THEN l.attempts ELSE d.attempts END > 0
           THEN 'retrying'
           ELSE 'pending'
       END AS state,
       CASE
           WHEN l.head_id = d.id
           THEN postrider.why(l.due_at, l.leased_at, s.state, t.circuit, t.rest)
           WHEN l.head_id <> d.id
           THEN 'order'
       END AS why,
       CASE
           WHEN l.head_id = d.id
           THEN postrider.until(postrider.why(l.due_at, l.leased_at, s.state,
                                              t.circuit, t.rest),
                                l.due_at, l.lease_until, t.wake_at)
       END AS until,
       nullif(l.head_id, d.id) AS behind,
       d.generation,
       CASE l.head_id WHEN d.id THEN l.attempts ELSE d.attempts END AS attempts,
       d.status,
       e.accepted_at,
       d.finished_at,
       CASE l.head_id WHEN d.id THEN l.due_at END AS due_at,
       CASE l.head_id WHEN d.id THEN l.lease_until END AS lease_until,
       CASE l.head_id WHEN d.id THEN l.lease_worker END AS lease_worker,
       e.body IS NULL AS is_purged
  FROM postrider.delivery d
  JOIN postrider.event e ON e.event_no = d.event_no
  JOIN postrider.tenant n ON n.id = e.tenant_id
  LEFT JOIN postrider.lane l
    ON l.id = CASE d.state WHEN 'pending' THEN coalesce(d.lane_id, d.id) END
  LEFT JOIN postrider.subscription s ON s.id = l.subscription_id
  LEFT JOIN postrider.turn t ON t.subscription_id = l.subscription_id;

COMMENT ON VIEW postrider.deliveries IS
    'every delivery: pending, delivering, retrying, delivered, dead, cancelled';
COMMENT ON COLUMN postrider.deliveries.why IS
    'what it waits for; order: for the delivery that it is behind';


-- Every lane is in one of three partial indexes, and in no other that is sorted
-- by subscription alone.  What is NULL in all of a part is written so: a
-- condition on lease_until leaves only the part that is in flight.

CREATE VIEW postrider.assets AS
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
                 WHERE lane_id BETWEEN l.id AND l.id
                   AND id >= coalesce(l.resume_id, l.head_id + 1)
                 ORDER BY lane_id, id
                 LIMIT 100) b) AS behind,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.replay
                 WHERE lane_id = l.id
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
        WHERE subscription_id = s.id
          AND due_at IS NOT NULL
        UNION ALL
       SELECT id, asset, head_id, head_event_no, resume_id, attempts, NULL,
              leased_at, lease_until, lease_worker
         FROM postrider.lane
        WHERE subscription_id = s.id
          AND leased_at IS NOT NULL
        UNION ALL
       SELECT id, asset, head_id, head_event_no, resume_id, attempts, NULL,
              NULL, NULL, NULL
         FROM postrider.lane
        WHERE subscription_id = s.id
          AND due_at IS NULL
          AND leased_at IS NULL) l
  LEFT JOIN postrider.tenant n ON n.id = s.tenant_id
  LEFT JOIN postrider.turn t ON t.subscription_id = s.id
  LEFT JOIN postrider.event e ON e.event_no = l.head_event_no
  LEFT JOIN postrider.delivery d ON d.id = l.head_id;

COMMENT ON VIEW postrider.assets IS
    'each asset of a subscription with unfinished deliveries, by the one that '
    'goes next; a delivery without order stands alone, its asset NULL';
COMMENT ON COLUMN postrider.assets.behind IS
    'how many wait for this one; 100: that many or more';
COMMENT ON COLUMN postrider.assets.replays IS
    'how many replays wait, which go before what was not sent; 100: that many '
    'or more';
COMMENT ON COLUMN postrider.assets.dead_reason IS
    'why the dead letter died that holds the asset until a person decides';


-- A subscription is shown by its lane that is due first, or else by one in
-- flight, or else by one that is held.

CREATE VIEW postrider.backlog AS
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
                         WHERE subscription_id = s.id
                           AND due_at IS NOT NULL
                         ORDER BY due_at, id
                         LIMIT 2)
                        UNION ALL
                       (SELECT head_event_no
                          FROM postrider.lane
                         WHERE subscription_id = s.id
                           AND due_at IS NOT NULL
                         ORDER BY due_at DESC, id DESC
                         LIMIT 2)
                        UNION ALL
                       (SELECT head_event_no
                          FROM postrider.lane
                         WHERE subscription_id = s.id
                           AND leased_at IS NOT NULL
                         ORDER BY leased_at
                         LIMIT 2)) c)) AS oldest_accepted_at,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id BETWEEN s.id AND s.id
                   AND due_at <= statement_timestamp()
                 ORDER BY subscription_id, due_at, id
                 LIMIT 1000) c) AS due,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id BETWEEN s.id AND s.id
                   AND due_at > statement_timestamp()
                 ORDER BY subscription_id, due_at, id
                 LIMIT 1000) c) AS later,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id = s.id
                   AND due_at IS NULL
                   AND leased_at IS NULL
                 LIMIT 1000) c) AS held,
       (SELECT count(*)
          FROM postrider.lane
         WHERE subscription_id = s.id
           AND leased_at IS NOT NULL) AS in_flight,
       postrider.in_flight_limit(t.circuit, s.max_in_flight, t.slowed_to)
           AS in_flight_limit,
       s.rate_per_second
  FROM postrider.subscription s
 CROSS JOIN LATERAL (
       SELECT *
         FROM ((SELECT 1 AS nth, due_at, leased_at, lease_until
                  FROM postrider.lane
                 WHERE subscription_id = s.id
                   AND due_at IS NOT NULL
                 ORDER BY due_at, id
                 LIMIT 1)
                UNION ALL
               (SELECT 2, due_at, leased_at, lease_until
                  FROM postrider.lane
                 WHERE subscription_id = s.id
                   AND leased_at IS NOT NULL
                 ORDER BY leased_at
                 LIMIT 1)
                UNION ALL
               (SELECT 3, due_at, leased_at, lease_until
                  FROM postrider.lane
                 WHERE subscription_id = s.id
                   AND due_at IS NULL
                   AND leased_at IS NULL
                 LIMIT 1)) c
        ORDER BY nth
        LIMIT 1) f
  LEFT JOIN postrider.tenant n ON n.id = s.tenant_id
  LEFT JOIN postrider.turn t ON t.subscription_id = s.id;

COMMENT ON VIEW postrider.backlog IS
    'subscriptions with unfinished deliveries, and what each waits for';
COMMENT ON COLUMN postrider.backlog.oldest_accepted_at IS
    'its oldest unfinished event that is not held is at least this old: of the '
    'two assets that are due first, the two that are due last, and the two '
    'longest in flight';
COMMENT ON COLUMN postrider.backlog.due IS
    'assets that could be sent now; 1000: that many or more';
COMMENT ON COLUMN postrider.backlog.later IS
    'assets whose next try is still to come; 1000: that many or more';
COMMENT ON COLUMN postrider.backlog.held IS
    'assets held by a dead letter; 1000: that many or more';


CREATE VIEW postrider.dead_letters AS
SELECT x.delivery_id,
       e.event_id,
       n.name AS tenant,
       x.subscription_id,
       s.url,
       e.type,
       e.asset,
       d.generation,
       d.attempts,
       d.status,
       x.reason,
       e.accepted_at,
       x.died_at,
       e.body IS NULL AS is_purged
  FROM postrider.dead_letter x
  LEFT JOIN postrider.delivery d ON d.id = x.delivery_id
  LEFT JOIN postrider.event e ON e.event_no = d.event_no
  LEFT JOIN postrider.subscription s ON s.id = x.subscription_id
  LEFT JOIN postrider.tenant n ON n.id = s.tenant_id;

COMMENT ON VIEW postrider.dead_letters IS
    'deliveries that ended without success and wait for a person';


CREATE VIEW postrider.endpoint_health AS
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
                  WHERE subscription_id BETWEEN s.id AND s.id
                  ORDER BY subscription_id DESC, id DESC
                  LIMIT 50)
                 UNION
                (SELECT id, lane_id, state
                   FROM postrider.delivery
                  WHERE subscription_id BETWEEN s.id AND s.id
                    AND id <= coalesce(
                                  (SELECT head_id
                                     FROM postrider.lane
                                    WHERE subscription_id = s.id
                                      AND due_at IS NOT NULL
                                    ORDER BY due_at, id
                                    LIMIT 1),
                                  (SELECT head_id
                                     FROM postrider.lane
                                    WHERE subscription_id = s.id
                                      AND leased_at IS NOT NULL
                                    ORDER BY leased_at
                                    LIMIT 1))
                  ORDER BY subscription_id DESC, id DESC
                  LIMIT 50)) c
          LEFT JOIN postrider.lane l
            ON l.id = coalesce(c.lane_id, c.id)
           AND l.head_id = c.id
           AND c.state = 'pending'
         WHERE c.state IN ('delivered', 'dead')
            OR l.attempts > (l.leased_at IS NOT NULL)::integer) AS success,
       f.error AS last_error,
       f.started_at AS last_error_at,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.lane
                 WHERE subscription_id BETWEEN s.id AND s.id
                   AND due_at > statement_timestamp()
                 ORDER BY subscription_id, due_at, id
                 LIMIT 1000) c) AS later,
       (SELECT count(*)
          FROM (SELECT
                  FROM postrider.dead_letter
                 WHERE subscription_id BETWEEN s.id AND s.id
                 ORDER BY subscription_id, delivery_id
                 LIMIT 1000) c) AS dead,
       (SELECT count(*)
          FROM postrider.lane
         WHERE subscription_id = s.id
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
                 WHERE subscription_id = s.id
                   AND due_at > statement_timestamp()
                 ORDER BY due_at DESC, id DESC
                 LIMIT 3)
                UNION ALL
               (SELECT delivery_id
                  FROM postrider.dead_letter
                 WHERE subscription_id BETWEEN s.id AND s.id
                 ORDER BY subscription_id DESC, delivery_id DESC
                 LIMIT 3)) c
        CROSS JOIN LATERAL (
              SELECT *
                FROM postrider.attempt
               WHERE delivery_id = c.head_id
               ORDER BY generation DESC, attempt DESC
               LIMIT 1) a
        ORDER BY a.started_at DESC NULLS LAST
        LIMIT 1) f ON true
 WHERE s.state <> 'deleted';

COMMENT ON VIEW postrider.endpoint_health IS
    'each subscription: how its endpoint answers';
COMMENT ON COLUMN postrider.endpoint_health.failures IS
    'in a row, up to now';
COMMENT ON COLUMN postrider.endpoint_health.success IS
    'which part was delivered of what was tried, of its newest 50 deliveries '
    'and the 50 up to the one that is due first';
COMMENT ON COLUMN postrider.endpoint_health.last_error IS
    'of the 3 assets whose next try is furthest away, and the 3 newest dead '
    'letters';
COMMENT ON COLUMN postrider.endpoint_health.dead IS
    'dead letters; 1000: that many or more';
COMMENT ON COLUMN postrider.endpoint_health.slowed_to IS
    'how many in flight it gets since it answered 429, 502, 503 or 504; NULL: '
    'as many as max_in_flight says';
COMMENT ON COLUMN postrider.endpoint_health.slowed_until IS
    'it asked for no request until then';


-- What waits for a reason that backlog names (paused, at its limit or rate, its
-- circuit open, slowed down, being cancelled) is not stuck.

CREATE VIEW postrider.stuck AS
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
SELECT l.id, l.subscription_id, l.asset, l.head_id,
       'held by a dead letter',
       l.attempts,
       (SELECT died_at
          FROM postrider.dead_letter
         WHERE delivery_id = l.head_id)
  FROM postrider.lane l
 WHERE l.due_at IS NULL
   AND l.leased_at IS NULL
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
        WHERE subscription_id = t.subscription_id
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
                  WHERE subscription_id = t.subscription_id
                    AND leased_at IS NOT NULL
                  LIMIT 1) IS NULL
           ELSE true
       END;

COMMENT ON VIEW postrider.stuck IS
    'assets that should move and do not, and why; of a subscription up to 10 '
    'that are overdue';


GRANT SELECT ON postrider.deliveries, postrider.assets, postrider.backlog,
                postrider.dead_letters, postrider.endpoint_health,
                postrider.stuck
   TO postrider_reader, postrider_ingest, postrider_dispatch;

GRANT SELECT ON postrider.replay TO postrider_reader;
