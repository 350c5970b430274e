-- delivery_record: keep the outcomes of attempts and move the lanes on.
--
--   $1 bigint[]  lane, held by lane_hold
--   $2 uuid[]    the token of our lease
--   $3 bigint[]  version of the subscription when it was leased
--   $4 text[]    verdict: delivered, retry, dead, release
--   $5 bigint[]  retry: microseconds to wait
--   $6 text[]    how the attempt ended; null: keep no record of the attempt
--   $7 integer[] HTTP status, or null
--   $8 bigint[]  duration in microseconds, or null if nobody knows
--   $9 text[]    address connected to, or null
--   $10 text[]   reason, or null
--   $11 boolean[] whether the subscription is to be disabled
--   $12 boolean[] whether to hand its lane's next head straight back, leased anew
--   $13 bigint   how long a lease outlives the longest attempt, microseconds
--   $14 integer[] microseconds of each phase that there was: looking up the name;
--   $15 integer[] connecting;
--   $16 integer[] TLS;
--   $17 integer[] waiting for an answer;
--   $18 integer[] receiving it
--   $19 text[]   headers of the answer, or null
--   $20 text[]   how its body begins, or null
--   $21 bigint[] when the event was accepted, microseconds since 1970, or null
--
-- Any of $14 to $20 is null if it would hold nothing but nulls.
--
-- Returns one row for each outcome that was recorded, with its place in the
-- arrays, from 1; turn_settle is told by a setting which these are.  One that is
-- missing was no longer ours: its lease ran out, and another worker has the lane.
-- Where the next head was handed back there is a second row, with the new token
-- and what the attempt, its first, needs but the body: event_bodies follows the
-- commit.  It is told by a setting, which is written also where nothing was handed
-- back: that is what the count at the end is for.
--
-- A lane is handed back only where no claim would have to be asked: not past a
-- change of the subscription, which may have lowered its limit, nor at a rate,
-- nor unless its circuit is closed, nor while its endpoint is slowed down.  And
-- not while another lane of the subscription has been due for a second: at its
-- limit, lanes that never run dry would keep all others waiting.  A lane that was
-- claimed less than a quarter of a second ago goes on even then, so that a claim
-- serves more than one head.
--
-- A replay that waits in the lane goes first, in its own place: before what was
-- not sent yet, and before a later head that is to be tried again.  That one
-- keeps the count of its attempts in its delivery.  resume_id says from where the
-- lane goes on when its replays are over, resume_at not before when.
--
-- Every part sees the tables as they were when the statement began; a lane is
-- written by exactly one of moved, emptied and waiting.  A head whose delivery
-- somebody removed by hand has no generation; its lane goes on all the same.

WITH outcome AS MATERIALIZED (
    SELECT o.ord, o.lane_id, o.token, o.verdict, o.retry_us, o.ended, o.status,
           o.duration_us, o.remote, o.reason, o.disables,
           o.dns_us, o.connect_us, o.tls_us, o.wait_us, o.receive_us,
           o.headers, o.excerpt, o.accepted_us,
           l.subscription_id, l.head_id, l.tail_id, l.attempts,
           l.lease_worker, l.leased_at, l.lane_at,
           d.generation, d.ctid AS delivery_at,
           l.resume_id, l.resume_at,
           coalesce(l.resume_id, l.head_id + 1) AS next_id,
           r.delivery_id AS replay_id,
           s.on_dead = 'hold' AND o.verdict = 'dead' AND l.asset IS NOT NULL
               AS holds,
           o.hands_back
           AND s.version = o.version
           AND s.state = 'active'
           AND s.rate_per_second IS NULL
           AND t.circuit = 'closed'
           AND t.slowed_to IS NULL
           AND coalesce(t.rest, 'idle') IN ('idle', 'limit') AS hands_back,
           t.due_from,
           s.timeout_ms, s.version
      FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[],
                  $5::bigint[], $6::text[], $7::integer[], $8::bigint[],
                  $9::text[], $10::text[], $11::boolean[], $12::boolean[],
                  $14::integer[], $15::integer[], $16::integer[],
                  $17::integer[], $18::integer[], $19::text[], $20::text[],
                  $21::bigint[])
           WITH ORDINALITY
           AS o (lane_id, token, version, verdict, retry_us, ended, status,
                 duration_us, remote, reason, disables, hands_back,
                 dns_us, connect_us, tls_us, wait_us, receive_us,
                 headers, excerpt, accepted_us, ord)
     CROSS JOIN LATERAL (
           SELECT *, ctid AS lane_at
             FROM postrider.lane
            WHERE id = o.lane_id
           OFFSET 0) l
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[l.subscription_id])
      LEFT JOIN postrider.turn t
        ON t.subscription_id = ANY (ARRAY[l.subscription_id])
      LEFT JOIN postrider.delivery d ON d.id = ANY (ARRAY[l.head_id])
      LEFT JOIN LATERAL (
           SELECT p.delivery_id
             FROM postrider.replay p
             JOIN postrider.delivery x ON x.id = ANY (ARRAY[p.delivery_id])
            WHERE p.lane_id = o.lane_id
            ORDER BY p.delivery_id
            LIMIT 1) r ON true
     WHERE l.lease_token = o.token
       AND l.lease_until > statement_timestamp()
), attempted AS (
    INSERT INTO postrider.other_attempt
           (delivery_id, generation, attempt, started_at, duration_us, ended,
            status, worker, remote, reason, dns_us, connect_us, tls_us, wait_us,
            receive_us, headers, excerpt)
    SELECT head_id, generation, attempts,
           statement_timestamp() - duration_us * interval '1 microsecond',
           duration_us, ended, status, lease_worker, remote, reason, dns_us,
           connect_us, tls_us, wait_us, receive_us, headers, excerpt
      FROM outcome
     WHERE verdict <> 'release'
       AND ended IS NOT NULL
       AND generation IS NOT NULL
), tallied AS (
    INSERT INTO postrider.history_tally
           (recorded_at, verdict, subscription_ids, attempt_us, delivery_us)
    SELECT statement_timestamp(), verdict, array_agg(subscription_id),
           array_agg(duration_us::real),
           array_agg((CASE
                          WHEN verdict = 'delivered' AND generation = 1
                          THEN 1000000 * date_part('epoch',
                                                   statement_timestamp())
                               - accepted_us
                      END)::real)
      FROM outcome
     WHERE verdict <> 'release'
       AND ended IS NOT NULL
       AND generation IS NOT NULL
     GROUP BY verdict
), finished AS (
    UPDATE postrider.delivery d
       SET state = o.verdict,
           attempts = o.attempts,
           status = o.status,
           finished_at = statement_timestamp()
      FROM outcome o
     WHERE d.ctid = o.delivery_at
       AND o.verdict IN ('delivered', 'dead')
), buried AS (
    INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)
    SELECT head_id, subscription_id,
           coalesce(reason, 'HTTP status ' || status,
                    'the reason could not be kept')
      FROM outcome
     WHERE verdict = 'dead'
       AND generation IS NOT NULL
), gone AS MATERIALIZED (
    SELECT s.id, s.state, s.state_reason
      FROM (SELECT DISTINCT subscription_id
              FROM outcome
             WHERE disables
             ORDER BY subscription_id) o
     CROSS JOIN LATERAL (
           SELECT id, state, state_reason
             FROM postrider.subscription
            WHERE id = o.subscription_id
              AND state IN ('active', 'paused')
              FOR NO KEY UPDATE) s
), disabled AS (
    UPDATE postrider.subscription s
       SET state = 'disabled',
           state_reason = 'the receiver answered 410 Gone',
           version = version + 1,
           updated_at = statement_timestamp()
      FROM gone g
     WHERE s.id = ANY (ARRAY[g.id])
    RETURNING s.id, s.tenant_id, s.state, s.state_reason,
              g.state AS state_was, g.state_reason AS reason_was
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT 'dispatch', tenant_id, 'subscription.disabled', id::text,
           jsonb_build_object(
               'before', jsonb_build_object('state', state_was,
                                            'state_reason', reason_was),
               'after', jsonb_build_object('state', state,
                                           'state_reason', state_reason))
      FROM disabled
), crowded AS MATERIALIZED (
    SELECT o.subscription_id
      FROM (SELECT DISTINCT subscription_id, due_from
              FROM outcome
             WHERE hands_back
               AND tail_id > head_id) o
     WHERE EXISTS (
           SELECT
             FROM postrider.lane w
            WHERE w.subscription_id = o.subscription_id
              AND w.due_at >= o.due_from
              AND w.due_at < statement_timestamp() - interval '1 second')
), next AS MATERIALIZED (
    SELECT o.ord, o.lane_id, o.lane_at, o.version,
           r.id AS replay_id,
           coalesce(r.id, n.id) AS head_id,
           coalesce(r.event_no, n.event_no) AS event_no,
           coalesce(r.attempts, n.attempts) AS attempts,
           CASE WHEN r.id IS NOT NULL THEN o.next_id END AS resume_id,
           o.resume_at,
           n.id = o.resume_id AS is_resumed,
           o.hands_back
           AND NOT o.disables
           AND r.id IS NULL
           AND n.attempts = 0
           AND (o.leased_at > statement_timestamp() - interval '250 ms'
                OR o.subscription_id
                   <> ALL (ARRAY (SELECT subscription_id FROM crowded)))
           AS hands_back,
           o.timeout_ms
      FROM outcome o
      LEFT JOIN postrider.delivery r ON r.id = ANY (ARRAY[o.replay_id])
      LEFT JOIN LATERAL (
           SELECT d.id, d.event_no, d.attempts
             FROM postrider.delivery d
            WHERE r.id IS NULL
              AND o.tail_id >= o.next_id
              AND d.lane_id = o.lane_id
              AND d.id >= o.next_id
              AND d.state = 'pending'
            ORDER BY d.id
            LIMIT 1) n ON true
     WHERE o.verdict IN ('delivered', 'dead')
       AND NOT o.holds
), emptied AS (
    DELETE FROM postrider.lane l
     USING next n
     WHERE l.ctid = n.lane_at
       AND n.head_id IS NULL
), moved AS (
    UPDATE postrider.lane l
       SET head_id = n.head_id,
           head_event_no = n.event_no,
           resume_id = n.resume_id,
           resume_at = CASE WHEN n.resume_id IS NOT NULL THEN n.resume_at END,
           attempts = n.attempts + n.hands_back::integer,
           due_at = CASE
                        WHEN n.hands_back THEN NULL
                        WHEN n.is_resumed
                        THEN greatest(n.resume_at, statement_timestamp())
                        ELSE statement_timestamp()
                    END,
           lease_token = CASE
                             WHEN n.hands_back THEN (SELECT gen_random_uuid())
                         END,
           lease_until = CASE
                             WHEN n.hands_back
                             THEN statement_timestamp()
                                  + n.timeout_ms * interval '1 millisecond'
                                  + $13::bigint * interval '1 microsecond'
                         END,
           look_at = CASE WHEN n.hands_back THEN l.look_at END,
           leased_at = CASE WHEN n.hands_back THEN l.leased_at END,
           lease_worker = CASE WHEN n.hands_back THEN l.lease_worker END
      FROM next n
     WHERE l.ctid = n.lane_at
       AND n.head_id IS NOT NULL
    RETURNING n.ord, l.id, l.subscription_id, l.lease_token, l.head_id,
              l.head_event_no, l.tail_id > l.head_id AS goes_on,
              n.timeout_ms, n.version
), waits AS MATERIALIZED (
    SELECT o.lane_id, o.lane_at, o.head_id, o.resume_id, o.retry_us, o.holds,
           o.replay_id,
           o.attempts - (o.verdict = 'release')::integer AS attempts,
           d.event_no AS replay_event_no,
           d.attempts AS replay_attempts,
           d.id IS NOT NULL AS gives_way
      FROM outcome o
      LEFT JOIN postrider.delivery d
        ON d.id = ANY (ARRAY[o.replay_id])
       AND d.id < o.head_id
       AND NOT o.holds
     WHERE o.verdict IN ('retry', 'release')
        OR o.holds
), waiting AS (
    UPDATE postrider.lane l
       SET head_id = CASE WHEN w.gives_way THEN w.replay_id ELSE l.head_id END,
           head_event_no = CASE
                               WHEN w.gives_way THEN w.replay_event_no
                               ELSE l.head_event_no
                           END,
           resume_id = CASE
                           WHEN w.gives_way
                           THEN coalesce(w.resume_id, w.head_id)
                           ELSE w.resume_id
                       END,
           resume_at = CASE
                           WHEN w.gives_way AND w.resume_id IS NULL
                           THEN statement_timestamp()
                                + w.retry_us * interval '1 microsecond'
                           ELSE l.resume_at
                       END,
           attempts = CASE
                          WHEN w.gives_way THEN w.replay_attempts
                          ELSE w.attempts
                      END,
           due_at = CASE
                        WHEN w.gives_way
                        THEN statement_timestamp()
                        WHEN NOT w.holds
                        THEN statement_timestamp()
                             + w.retry_us * interval '1 microsecond'
                    END,
           lease_token = NULL,
           lease_until = NULL,
           look_at = NULL,
           leased_at = NULL,
           lease_worker = NULL
      FROM waits w
     WHERE l.ctid = w.lane_at
), kept AS (
    UPDATE postrider.delivery d
       SET attempts = w.attempts
      FROM waits w
     WHERE d.id = ANY (ARRAY[w.head_id])
       AND w.gives_way
), put_back AS (
    INSERT INTO postrider.replay (lane_id, delivery_id)
    SELECT lane_id, head_id
      FROM waits
     WHERE gives_way
       AND resume_id IS NOT NULL
), taken_up AS (
    DELETE FROM postrider.replay r
     USING (SELECT lane_id, replay_id FROM next
             WHERE replay_id IS NOT NULL
             UNION ALL
            SELECT lane_id, replay_id FROM waits WHERE gives_way) u
     WHERE r.lane_id = ANY (ARRAY[u.lane_id])
       AND r.delivery_id = u.replay_id
), told AS MATERIALIZED (
    SELECT set_config('postrider.recorded',
                      (SELECT array_agg(ord)::text FROM outcome), true),
           set_config('postrider.heads',
                      (SELECT array_agg(head_event_no ORDER BY ord)::text
                         FROM moved
                        WHERE lease_token IS NOT NULL), false)
)
SELECT ord,
       NULL::uuid AS lease_token,
       NULL::bigint AS lane_id,
       NULL::bigint AS subscription_id,
       NULL::bigint AS version,
       NULL::bigint AS head_id,
       NULL::bigint AS head_event_no,
       NULL::integer AS timeout_ms,
       NULL::boolean AS goes_on
  FROM outcome
 WHERE (SELECT count(*) FROM told) = 1
 UNION ALL
SELECT ord, lease_token, id, subscription_id, version, head_id, head_event_no,
       timeout_ms, goes_on
  FROM moved
 WHERE lease_token IS NOT NULL
 ORDER BY ord;
