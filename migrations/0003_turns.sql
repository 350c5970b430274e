-- 0003_turns: turns between tenants, limits kept exactly, replays in their own
-- place, and walks that do not grow while something holds back vacuum.


-- The rate and the circuit of a subscription.

ALTER TABLE postrider.subscription
  ADD COLUMN rate_per_second double precision
             CHECK (rate_per_second BETWEEN 0.001 AND 10000),
  ADD COLUMN circuit_after integer NOT NULL DEFAULT 20
             CHECK (circuit_after BETWEEN 0 AND 10000);

COMMENT ON COLUMN postrider.subscription.rate_per_second IS
    'requests; NULL without a limit';
COMMENT ON COLUMN postrider.subscription.circuit_after IS
    'failures in a row that open the circuit; 0: it never opens';


-- Who was served is not written down: each dispatcher goes round from where it
-- was, tenants first, then the subscriptions of each.

DROP INDEX postrider.turn_round;

ALTER TABLE postrider.turn
  DROP COLUMN served_at,
  DROP CONSTRAINT turn_rest_check,
  ADD CONSTRAINT turn_rest_check
      CHECK (rest IN ('idle', 'limit', 'rate', 'circuit', 'slowed', 'paused',
                      'disabled', 'deleted')),
  ADD COLUMN tenant_id bigint,
  ADD COLUMN rate_at timestamptz NOT NULL DEFAULT '-infinity',
  ADD COLUMN circuit text NOT NULL DEFAULT 'closed'
             CHECK (circuit IN ('closed', 'open', 'half_open')),
  ADD COLUMN circuit_opens integer NOT NULL DEFAULT 0,
  ADD COLUMN failures integer NOT NULL DEFAULT 0,
  ADD COLUMN due_from timestamptz NOT NULL DEFAULT '-infinity',
  ADD COLUMN leased_from timestamptz NOT NULL DEFAULT '-infinity',
  ADD COLUMN swept_at timestamptz NOT NULL DEFAULT '-infinity',
  ADD COLUMN entered_at timestamptz,
  ADD COLUMN slowed_to double precision CHECK (slowed_to >= 1),
  ADD COLUMN slowed_at timestamptz;

UPDATE postrider.turn t
   SET tenant_id = s.tenant_id,
       entered_at = CASE WHEN t.rest IS NULL THEN now() END
  FROM postrider.subscription s
 WHERE s.id = t.subscription_id;

ALTER TABLE postrider.turn
  ALTER COLUMN tenant_id SET NOT NULL,
  ADD CONSTRAINT turn_entered_check
      CHECK ((rest IS NULL) = (entered_at IS NOT NULL));

COMMENT ON COLUMN postrider.turn.wake_at IS
    'back in the round at this time: its earliest lane falls due, the next '
    'request is allowed, the circuit lets a probe through, or the endpoint '
    'wants to be asked again';
COMMENT ON COLUMN postrider.turn.entered_at IS
    'when it came into the round; NULL while it rests';
COMMENT ON COLUMN postrider.turn.rate_at IS
    'when requests are evenly spaced again: what is ahead of now is used up';
COMMENT ON COLUMN postrider.turn.circuit_opens IS
    'how often it opened since it was closed';
COMMENT ON COLUMN postrider.turn.failures IS
    'in a row, across all lanes';
COMMENT ON COLUMN postrider.turn.due_from IS
    'no lane of it that can be seen is due before';
COMMENT ON COLUMN postrider.turn.leased_from IS
    'no leased lane of it was leased before';
COMMENT ON COLUMN postrider.turn.swept_at IS
    'when due_from and leased_from were last found out from the start';
COMMENT ON COLUMN postrider.turn.slowed_to IS
    'how many in flight it takes, as far as we know; NULL: max_in_flight';
COMMENT ON COLUMN postrider.turn.slowed_at IS
    'when that was last halved: what was claimed before does so no more';

CREATE INDEX turn_round
    ON postrider.turn (entered_at)
 WHERE rest IS NULL;


-- How many requests may be under way: one if the circuit is not closed, and no
-- more than an endpoint takes that is slowed down.

CREATE FUNCTION postrider.in_flight_limit(circuit text, max_in_flight integer,
                                          slowed_to double precision)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE circuit
           WHEN 'closed' THEN least(max_in_flight, floor(slowed_to)::integer)
           ELSE 1
       END;


-- What is deleted wakes only to have its deliveries cancelled.

DROP INDEX postrider.turn_wake;

CREATE INDEX turn_wake
    ON postrider.turn (wake_at)
 WHERE wake_at IS NOT NULL AND rest <> 'deleted';

CREATE INDEX turn_deleted
    ON postrider.turn (wake_at)
 WHERE wake_at IS NOT NULL AND rest = 'deleted';


-- look_at is never later than the lease's end, and moves only when somebody
-- looks; so does leased_at.  A lane that is handed back again and again is leased
-- anew each time, with no index to be written.

DROP INDEX postrider.lane_lease;
DROP INDEX postrider.lane_in_flight;

ALTER TABLE postrider.lane
  ADD COLUMN look_at timestamptz,
  ADD COLUMN leased_at timestamptz,
  ADD COLUMN resume_id bigint,
  ADD COLUMN resume_at timestamptz;

UPDATE postrider.lane
   SET look_at = lease_until,
       leased_at = now()
 WHERE lease_token IS NOT NULL;

ALTER TABLE postrider.lane
  DROP CONSTRAINT lane_check,
  ADD CONSTRAINT lane_lease_check
      CHECK (num_nulls(lease_token, lease_until, lease_worker, look_at,
                       leased_at) IN (0, 5));

COMMENT ON COLUMN postrider.lane.look_at IS
    'when reclaim looks at the lease, which has then run out or was renewed';
COMMENT ON COLUMN postrider.lane.leased_at IS
    'when it was claimed, or its lease was last seen to be renewed';
COMMENT ON COLUMN postrider.lane.resume_id IS
    'the head is a replay: the first that may follow it in the lane''s course';
COMMENT ON COLUMN postrider.lane.resume_at IS
    'when that one was due, if it gave way while it waited for a retry';

CREATE INDEX lane_lease
    ON postrider.lane (look_at)
 WHERE look_at IS NOT NULL;

CREATE INDEX lane_in_flight
    ON postrider.lane (subscription_id, leased_at)
 WHERE leased_at IS NOT NULL;


-- Replays that wait for their lane's head to be over.  In almost every lane
-- there are none, so whoever records looks them up in a table that is empty.

CREATE TABLE postrider.replay (
    lane_id     bigint NOT NULL,
    delivery_id bigint NOT NULL,
    PRIMARY KEY (lane_id, delivery_id)
);


-- An event's number is a block of positions too: a delivery that is made later,
-- for a subscription that was disabled then, takes the event's own place.

ALTER TABLE postrider.event ALTER COLUMN event_no DROP IDENTITY;
ALTER TABLE postrider.event
ALTER COLUMN event_no SET DEFAULT nextval('postrider.position');

SELECT setval('postrider.position',
              greatest((SELECT last_value FROM postrider.position),
                       (SELECT coalesce(max(event_no), 0)
                          FROM postrider.event)) + 1000);


GRANT SELECT, UPDATE (rest, wake_at, entered_at, rate_at, circuit,
                      circuit_opens, failures, due_from, leased_from,
                      swept_at, slowed_to, slowed_at)
   ON postrider.turn TO postrider_dispatch;
GRANT UPDATE (look_at, leased_at, resume_id, resume_at)
   ON postrider.lane TO postrider_dispatch;
GRANT SELECT, INSERT, DELETE ON postrider.replay TO postrider_dispatch;
