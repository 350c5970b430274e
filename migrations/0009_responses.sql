-- 0009_responses: what is kept of a response, and endpoints that ask for less.


-- By column, from here on: what a receiver wrote may be what it was sent, so
-- people see it in the delivery's detail only, which asks whose it is.

ALTER TABLE postrider.attempt
  ADD COLUMN dns_us integer,
  ADD COLUMN connect_us integer,
  ADD COLUMN tls_us integer,
  ADD COLUMN wait_us integer,
  ADD COLUMN receive_us integer,
  ADD COLUMN headers text,
  ADD COLUMN excerpt text;

COMMENT ON COLUMN postrider.attempt.dns_us IS
    'looking up the name; NULL, as all that follow: it did not come to that';
COMMENT ON COLUMN postrider.attempt.connect_us IS
    'NULL, as tls_us, on a connection that was used again';
COMMENT ON COLUMN postrider.attempt.wait_us IS
    'from the request to the first octet of the answer';
COMMENT ON COLUMN postrider.attempt.receive_us IS
    'from there to its last';
COMMENT ON COLUMN postrider.attempt.headers IS
    'some of the answer''s, a line each';
COMMENT ON COLUMN postrider.attempt.excerpt IS
    'how the answer''s body begins; up to 1 KiB';

REVOKE SELECT ON postrider.attempt FROM postrider_reader;
GRANT SELECT (delivery_id, started_at, duration_us, generation, attempt, status,
              ended, worker, remote, reason, dns_us, connect_us, tls_us,
              wait_us, receive_us)
   ON postrider.attempt TO postrider_reader;
GRANT SELECT ON postrider.attempt TO postrider_ingest;


-- An endpoint that answers 429, 502, 503 or 504 gets less, and nothing at all
-- until the time that it names.

ALTER TABLE postrider.turn
  DROP CONSTRAINT turn_rest_check,
  ADD CONSTRAINT turn_rest_check
      CHECK (rest IN ('idle', 'limit', 'rate', 'circuit', 'slowed', 'paused',
                      'disabled', 'deleted')),
  ADD COLUMN slowed_to double precision CHECK (slowed_to >= 1),
  ADD COLUMN slowed_at timestamptz;

COMMENT ON COLUMN postrider.turn.wake_at IS
    'back in the round at this time: its earliest lane falls due, the next '
    'request is allowed, the circuit lets a probe through, or the endpoint '
    'wants to be asked again';
COMMENT ON COLUMN postrider.turn.slowed_to IS
    'how many in flight it takes, as far as we know; NULL: max_in_flight';
COMMENT ON COLUMN postrider.turn.slowed_at IS
    'when that was last halved: what was claimed before does so no more';

GRANT UPDATE (slowed_to, slowed_at) ON postrider.turn TO postrider_dispatch;
GRANT UPDATE (slowed_to) ON postrider.turn TO postrider_ingest;


CREATE OR REPLACE FUNCTION postrider.why(due_at timestamptz,
                                         leased_at timestamptz,
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

CREATE OR REPLACE FUNCTION postrider.until(why text, due_at timestamptz,
                                           lease_until timestamptz,
                                           wake_at timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE why
           WHEN 'in flight' THEN lease_until
           WHEN 'circuit'   THEN greatest(wake_at, due_at)
           WHEN 'slowed'    THEN greatest(wake_at, due_at)
           WHEN 'retry'     THEN due_at
           WHEN 'rate'      THEN wake_at
       END;

CREATE FUNCTION postrider.in_flight_limit(circuit text, max_in_flight integer,
                                          slowed_to double precision)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE circuit
           WHEN 'closed' THEN least(max_in_flight, floor(slowed_to)::integer)
           ELSE 1
       END;


-- As before, but for the limit of an endpoint that is slowed down.

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

COMMENT ON COLUMN postrider.endpoint_health.slowed_to IS
    'how many in flight it gets since it answered 429, 502, 503 or 504; NULL: '
    'as many as max_in_flight says';
COMMENT ON COLUMN postrider.endpoint_health.slowed_until IS
    'it asked for no request until then';


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
