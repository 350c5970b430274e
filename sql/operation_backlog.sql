-- operation_backlog: of which backlogs that are old is to be told.
--
--   $1 bigint    how old their oldest delivery has to be, microseconds; 0: never
--   $2 integer   most subscriptions
--   $3 bigint    microseconds between two rounds
--
-- Follows operation_dead.  Goes round over all subscriptions, and tells of each
-- once: again only after its oldest was not half as old in between.  What is told
-- to nobody is asked about again, operation_accept keeps the others.
--
-- The oldest is sought among the heads that are due first and last and those that
-- have been in flight for longest, as the view backlog does.

WITH place AS MATERIALIZED (
    SELECT backlog_id
      FROM postrider.operation
     WHERE is_only
       AND current_setting('postrider.operation') = 'tell'
       AND backlog_at <= statement_timestamp()
       AND $1::bigint > 0
), page AS MATERIALIZED (
    SELECT t.*
      FROM place p
     CROSS JOIN LATERAL (
           SELECT subscription_id, tenant_id, circuit, due_from, leased_from
             FROM postrider.turn
            WHERE subscription_id > p.backlog_id
            ORDER BY subscription_id
            LIMIT $2::integer) t
), looked_at AS MATERIALIZED (
    SELECT g.*, o.event_no, e.accepted_at,
           statement_timestamp() - e.accepted_at AS age,
           (SELECT told_at
              FROM postrider.operation_backlog b
             WHERE b.subscription_id = g.subscription_id) IS NOT NULL
               AS is_told
      FROM page g
     CROSS JOIN LATERAL (
           SELECT min(head_event_no) AS event_no
             FROM ((SELECT head_event_no
                      FROM postrider.lane
                     WHERE subscription_id = g.subscription_id
                       AND due_at >= g.due_from
                     ORDER BY due_at, id
                     LIMIT 2)
                    UNION ALL
                   (SELECT head_event_no
                      FROM postrider.lane
                     WHERE subscription_id = g.subscription_id
                       AND due_at >= g.due_from
                     ORDER BY due_at DESC, id DESC
                     LIMIT 2)
                    UNION ALL
                   (SELECT head_event_no
                      FROM postrider.lane
                     WHERE subscription_id = g.subscription_id
                       AND leased_at >= g.leased_from
                     ORDER BY leased_at
                     LIMIT 2)) h) o
      LEFT JOIN LATERAL (
           SELECT accepted_at
             FROM postrider.event
            WHERE event_no = o.event_no
           OFFSET 0) e ON true
), over AS (
    DELETE FROM postrider.operation_backlog b
     USING looked_at l
     WHERE b.subscription_id = ANY (ARRAY[l.subscription_id])
       AND coalesce(l.age < $1 / 2 * interval '1 microsecond', true)
), happened AS (
    SELECT jsonb_agg(jsonb_build_object(
               'id', concat_ws(':', 'postrider:backlog', l.subscription_id,
                               l.event_no,
                               (extract(epoch FROM statement_timestamp())
                                * 1000000)::bigint),
               'type', 'postrider.backlog.old',
               'at', statement_timestamp(),
               'subscription_id', l.subscription_id,
               'tenant_id', l.tenant_id,
               'data', jsonb_build_object(
                   'subscription_id', l.subscription_id::text,
                   'tenant', n.name,
                   'at', postrider.rfc3339(statement_timestamp()),
                   'oldest_accepted_at', postrider.rfc3339(l.accepted_at),
                   'state', s.state,
                   'circuit', l.circuit))) AS events
      FROM looked_at l
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[l.subscription_id])
      JOIN postrider.tenant n ON n.id = ANY (ARRAY[l.tenant_id])
     WHERE l.age >= $1 * interval '1 microsecond'
       AND NOT l.is_told
       AND s.state <> 'deleted'
       AND NOT EXISTS (
           SELECT
             FROM postrider.subscription_pattern w
            WHERE w.subscription_id = l.subscription_id
              AND starts_with(w.pattern, 'postrider.'))
), told AS MATERIALIZED (
    SELECT count(*) AS n, max(subscription_id) AS last_id FROM page
), moved AS (
    UPDATE postrider.operation
       SET backlog_id = CASE WHEN t.n = $2 THEN t.last_id ELSE 0 END,
           backlog_at = CASE
                            WHEN t.n = $2 THEN backlog_at
                            ELSE statement_timestamp()
                                 + $3::bigint * interval '1 microsecond'
                        END
      FROM place p
     CROSS JOIN told t
     WHERE is_only
)
SELECT set_config('postrider.happened',
                  (current_setting('postrider.happened')::jsonb
                   || h.events)::text, true),
       set_config('postrider.operation_did',
                  (current_setting('postrider.operation_did')::bigint
                   + t.n)::text, true),
       set_config('postrider.operation_more',
                  (current_setting('postrider.operation_more')::boolean
                   OR t.n = $2)::text, true)
  FROM told t
 CROSS JOIN (SELECT coalesce((SELECT events FROM happened), '[]') AS events) h;
