-- 0002_views: what people read in psql.  No secret and no payload in any.

CREATE VIEW postrider.deliveries AS
SELECT d.id,
       e.event_id,
       t.name AS tenant,
       d.subscription_id,
       e.type,
       e.asset,
       CASE
           WHEN d.state <> 'pending'        THEN d.state
           WHEN l.id IS NULL                THEN 'pending'
           WHEN l.lease_token IS NOT NULL   THEN 'delivering'
           WHEN l.attempts > 0              THEN 'retrying'
           ELSE 'pending'
       END AS state,
       d.generation,
       coalesce(l.attempts, d.attempts) AS attempts,
       d.status,
       e.accepted_at,
       d.finished_at,
       l.due_at,
       l.lease_until,
       l.lease_worker
  FROM postrider.delivery d
  JOIN postrider.event e ON e.event_no = d.event_no
  JOIN postrider.tenant t ON t.id = e.tenant_id
  LEFT JOIN postrider.lane l
    ON l.id = coalesce(d.lane_id, d.id)
   AND l.head_id = d.id;

COMMENT ON VIEW postrider.deliveries IS
    'every delivery: pending, delivering, retrying, delivered, dead, cancelled';


CREATE VIEW postrider.backlog AS
SELECT s.id AS subscription_id,
       n.name AS tenant,
       s.url,
       s.state,
       t.rest,
       t.wake_at,
       l.lanes,
       l.in_flight,
       l.due,
       l.oldest_due_at
  FROM postrider.subscription s
  JOIN postrider.tenant n ON n.id = s.tenant_id
  JOIN postrider.turn t ON t.subscription_id = s.id
  JOIN (SELECT subscription_id,
               count(*) AS lanes,
               count(lease_token) AS in_flight,
               count(*) FILTER (WHERE due_at <= now()) AS due,
               min(due_at) AS oldest_due_at
          FROM postrider.lane
         GROUP BY subscription_id) l ON l.subscription_id = s.id;

COMMENT ON VIEW postrider.backlog IS
    'subscriptions with unfinished lanes, and why each waits';


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
  JOIN postrider.delivery d ON d.id = x.delivery_id
  JOIN postrider.event e ON e.event_no = d.event_no
  JOIN postrider.tenant n ON n.id = e.tenant_id
  JOIN postrider.subscription s ON s.id = x.subscription_id;

COMMENT ON VIEW postrider.dead_letters IS
    'deliveries that ended without success and wait for a person';


CREATE VIEW postrider.endpoint_health AS
SELECT s.id AS subscription_id,
       n.name AS tenant,
       s.url,
       s.state,
       s.state_reason,
       t.rest,
       (SELECT count(*)
          FROM postrider.lane l
         WHERE l.subscription_id = s.id
           AND l.lease_token IS NOT NULL) AS in_flight,
       s.max_in_flight,
       (SELECT count(*)
          FROM postrider.dead_letter x
         WHERE x.subscription_id = s.id) AS dead
  FROM postrider.subscription s
  JOIN postrider.tenant n ON n.id = s.tenant_id
  JOIN postrider.turn t ON t.subscription_id = s.id
 WHERE s.state <> 'deleted';

COMMENT ON VIEW postrider.endpoint_health IS
    'each subscription with what it has in flight and what died';


CREATE VIEW postrider.stuck AS
SELECT l.id AS lane_id,
       l.subscription_id,
       l.asset,
       l.head_id AS delivery_id,
       CASE
           WHEN d.id IS NULL          THEN 'its delivery is gone'
           WHEN s.id IS NULL          THEN 'its subscription is gone'
           WHEN l.lease_until < now() THEN 'its lease ran out'
           WHEN l.lease_token IS NULL AND l.due_at IS NULL
                                      THEN 'held by a dead letter'
           WHEN s.state <> 'active'   THEN 'subscription is ' || s.state
           ELSE 'due for over a minute'
       END AS why,
       l.attempts,
       coalesce(l.due_at, l.lease_until) AS since
  FROM postrider.lane l
  LEFT JOIN postrider.subscription s ON s.id = l.subscription_id
  LEFT JOIN postrider.delivery d ON d.id = l.head_id
 WHERE d.id IS NULL
    OR s.id IS NULL
    OR l.lease_until < now()
    OR (l.lease_token IS NULL AND l.due_at IS NULL)
    OR l.due_at < now() - interval '1 minute';

COMMENT ON VIEW postrider.stuck IS
    'lanes that should move and do not, and why';


GRANT USAGE ON SCHEMA postrider
   TO postrider_ingest, postrider_dispatch, postrider_reader;

GRANT SELECT ON postrider.deliveries, postrider.backlog,
                postrider.dead_letters, postrider.endpoint_health,
                postrider.stuck, postrider.schema_migration
   TO postrider_reader, postrider_ingest, postrider_dispatch;

GRANT SELECT ON postrider.attempt TO postrider_reader;

GRANT SELECT ON postrider.tenant, postrider.api_key TO postrider_ingest;
GRANT SELECT, INSERT ON postrider.subscription TO postrider_ingest;
GRANT SELECT, INSERT ON postrider.subscription_pattern TO postrider_ingest;
GRANT INSERT ON postrider.subscription_secret TO postrider_ingest;
GRANT SELECT, INSERT, UPDATE (rest, wake_at)
   ON postrider.turn TO postrider_ingest;
GRANT SELECT, INSERT, UPDATE (tail_id)
   ON postrider.lane TO postrider_ingest;
GRANT SELECT, INSERT ON postrider.event, postrider.delivery
   TO postrider_ingest;
GRANT INSERT ON postrider.audit TO postrider_ingest;
GRANT USAGE ON SEQUENCE postrider.position, postrider.subscription_id_seq
   TO postrider_ingest;

GRANT SELECT ON postrider.subscription, postrider.subscription_secret,
                postrider.event
   TO postrider_dispatch;
GRANT UPDATE (state, state_reason, version, updated_at)
   ON postrider.subscription TO postrider_dispatch;
GRANT SELECT, UPDATE (rest, wake_at, served_at)
   ON postrider.turn TO postrider_dispatch;
GRANT SELECT, UPDATE (finished_at, attempts, status, state)
   ON postrider.delivery TO postrider_dispatch;
GRANT SELECT, DELETE,
      UPDATE (head_id, head_event_no, due_at, lease_until, lease_token,
              attempts, lease_worker)
   ON postrider.lane TO postrider_dispatch;
GRANT INSERT ON postrider.attempt, postrider.dead_letter, postrider.audit
   TO postrider_dispatch;
