-- delivery_record: keep the outcomes of attempts and move the lanes on.
--
--   $1 bigint[]  lane, held by lane_hold
--   $2 uuid[]    the token of our lease
--   $3 text[]    verdict: delivered, retry, dead, release
--   $4 bigint[]  retry: microseconds to wait
--   $5 text[]    how the attempt ended; null: keep no record of the attempt
--   $6 integer[] HTTP status, or null
--   $7 bigint[]  duration in microseconds, or null if nobody knows
--   $8 text[]    address connected to, or null
--   $9 text[]    reason, or null
--   $10 boolean[] whether the subscription is to be disabled
--   $11 boolean  hand a lane's next head straight back, leased anew
--   $12 bigint   how long a lease outlives the longest attempt, microseconds
--
-- Returns one row for each outcome that was recorded, with its place in the
-- arrays, from 1.  One that is missing was no longer ours: its lease ran out,
-- and another worker has the lane.  Where the next head was handed back there
-- is a second row, with the new token and what the attempt, its first, needs.
-- It is not while another lane of the subscription has been due for a second:
-- at its limit, lanes that never run dry would keep all others waiting.
--
-- Every part sees the tables as they were when the statement began; a lane is
-- written by exactly one of moved, emptied and waiting.  OFFSET 0 keeps the
-- look-up of a lane by its id: joined, the planner may walk a partial index
-- that looks empty to it, once for each outcome.  A head whose delivery somebody
-- removed by hand has no generation; its lane goes on all the same.

WITH outcome AS MATERIALIZED (
    SELECT o.ord, o.lane_id, o.token, o.verdict, o.wait_us, o.ended, o.status,
           o.duration_us, o.remote, o.reason, o.disables,
           l.subscription_id, l.head_id, l.tail_id, l.attempts,
           l.lease_worker, d.generation,
           s.state = 'active' AND $11 AS hands_back,
           s.on_dead = 'hold' AND o.verdict = 'dead' AS holds,
           s.timeout_ms
      FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[],
                  $5::text[], $6::integer[], $7::bigint[], $8::text[],
                  $9::text[], $10::boolean[])
           WITH ORDINALITY
           AS o (lane_id, token, verdict, wait_us, ended, status, duration_us,
                 remote, reason, disables, ord)
     CROSS JOIN LATERAL (
           SELECT *
             FROM postrider.lane
            WHERE id = o.lane_id
           OFFSET 0) l
      JOIN postrider.subscription s ON s.id = l.subscription_id
      LEFT JOIN postrider.delivery d ON d.id = l.head_id
     WHERE l.lease_token = o.token
       AND l.lease_until > statement_timestamp()
), attempted AS (
    INSERT INTO postrider.attempt
           (delivery_id, generation, attempt, started_at, duration_us, ended,
            status, worker, remote, reason)
    SELECT head_id, generation, attempts,
           statement_timestamp() - duration_us * interval '1 microsecond',
           duration_us, ended, status, lease_worker, remote, reason
      FROM outcome
     WHERE verdict <> 'release'
       AND ended IS NOT NULL
       AND generation IS NOT NULL
), finished AS (
    UPDATE postrider.delivery d
       SET state = o.verdict,
           attempts = o.attempts,
           status = o.status,
           finished_at = statement_timestamp()
      FROM outcome o
     WHERE d.id = o.head_id
       AND o.verdict IN ('delivered', 'dead')
), buried AS (
    INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)
    SELECT head_id, subscription_id,
           coalesce(reason, 'HTTP status ' || status,
                    'the reason could not be kept')
      FROM outcome
     WHERE verdict = 'dead'
       AND generation IS NOT NULL
), disabled AS (
    UPDATE postrider.subscription s
       SET state = 'disabled',
           state_reason = 'the receiver answered 410 Gone',
           version = version + 1,
           updated_at = statement_timestamp()
      FROM (SELECT DISTINCT subscription_id FROM outcome WHERE disables) o
     WHERE s.id = o.subscription_id
       AND s.state IN ('active', 'paused')
    RETURNING s.id, s.tenant_id
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject)
    SELECT 'dispatch', tenant_id, 'subscription.disabled', id::text
      FROM disabled
), crowded AS MATERIALIZED (
    SELECT o.subscription_id
      FROM (SELECT DISTINCT subscription_id
              FROM outcome
             WHERE hands_back
               AND tail_id > head_id) o
     WHERE EXISTS (
           SELECT
             FROM postrider.lane w
            WHERE w.subscription_id = o.subscription_id
              AND w.due_at < statement_timestamp() - interval '1 second')
), next AS MATERIALIZED (
    SELECT o.ord, o.lane_id, n.id AS head_id, n.event_no,
           o.hands_back
           AND NOT o.disables
           AND o.subscription_id
               <> ALL (ARRAY (SELECT subscription_id FROM crowded))
           AS hands_back,
           o.timeout_ms
      FROM outcome o
      LEFT JOIN LATERAL (
           SELECT d.id, d.event_no
             FROM postrider.delivery d
            WHERE d.lane_id = o.lane_id
              AND d.id > o.head_id
              AND d.state = 'pending'
            ORDER BY d.id
            LIMIT 1) n ON o.tail_id > o.head_id
     WHERE o.verdict IN ('delivered', 'dead')
       AND NOT o.holds
), emptied AS (
    DELETE FROM postrider.lane l
     USING next n
     WHERE l.id = n.lane_id
       AND n.head_id IS NULL
), moved AS (
    UPDATE postrider.lane l
       SET head_id = n.head_id,
           head_event_no = n.event_no,
           attempts = n.hands_back::integer,
           due_at = CASE WHEN NOT n.hands_back THEN statement_timestamp() END,
           lease_token = CASE WHEN n.hands_back THEN gen_random_uuid() END,
           lease_until = CASE
                             WHEN n.hands_back
                             THEN statement_timestamp()
                                  + n.timeout_ms * interval '1 millisecond'
                                  + $12::bigint * interval '1 microsecond'
                         END,
           lease_worker = CASE WHEN n.hands_back THEN l.lease_worker END
      FROM next n
     WHERE l.id = n.lane_id
       AND n.head_id IS NOT NULL
    RETURNING n.ord, l.id, l.subscription_id, l.lease_token, l.head_id,
              l.head_event_no, n.timeout_ms
), waiting AS (
    UPDATE postrider.lane l
       SET due_at = CASE
                        WHEN NOT o.holds
                        THEN statement_timestamp()
                             + o.wait_us * interval '1 microsecond'
                    END,
           attempts = l.attempts - (o.verdict = 'release')::integer,
           lease_token = NULL,
           lease_until = NULL,
           lease_worker = NULL
      FROM outcome o
     WHERE l.id = o.lane_id
       AND (o.verdict IN ('retry', 'release') OR o.holds)
)
SELECT ord,
       NULL::uuid AS lease_token,
       NULL::bigint AS lane_id,
       NULL::bigint AS subscription_id,
       NULL::bigint AS version,
       NULL::bigint AS head_id,
       NULL::bigint AS head_event_no,
       NULL::integer AS timeout_ms,
       NULL::text AS event_id,
       NULL::bytea AS body
  FROM outcome
 UNION ALL
SELECT m.ord, m.lease_token, m.id, m.subscription_id, s.version, m.head_id,
       m.head_event_no, m.timeout_ms, e.event_id, e.body
  FROM moved m
  JOIN postrider.subscription s ON s.id = m.subscription_id
  LEFT JOIN postrider.event e ON e.event_no = m.head_event_no
 WHERE m.lease_token IS NOT NULL;
