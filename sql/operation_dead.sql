-- operation_dead: of which deliveries that died is to be told.
--
--   $1 integer   most dead letters
--   $2 bigint    after telling, not to be looked at for so many microseconds
--
-- Follows operation_take.  One event for each subscription and look, with their
-- count, so that many which die at once do not become as many events.
--
-- Dead letters are walked by their transactions, as far as all are over, or as one
-- is seen that wrote its own a minute ago: no longer does a transaction of ours
-- last, while others' may.  What died as an operational event is passed over, so
-- nothing goes round.  Dead letters that were retried meanwhile are no more.

WITH place AS MATERIALIZED (
    SELECT died_in, dead_id,
           greatest(pg_snapshot_xmin(pg_current_snapshot()),
                    (SELECT (died_in::text::bigint + 1)::text::xid8
                       FROM postrider.dead_letter
                      WHERE died_at < statement_timestamp()
                                      - interval '1 minute'
                      ORDER BY died_at DESC
                      LIMIT 1)) AS horizon,
           current_setting('postrider.operation') = 'tell' AS is_wanted
      FROM postrider.operation
     WHERE is_only
       AND current_setting('postrider.operation') <> ''
       AND dead_at <= statement_timestamp()
), ahead AS MATERIALIZED (
    SELECT x.*
      FROM place p
     CROSS JOIN LATERAL (
          (SELECT died_in, delivery_id, subscription_id, died_at, reason
             FROM postrider.dead_letter
            WHERE (died_in, delivery_id) > (p.died_in, p.dead_id)
              AND died_in < p.horizon
              AND p.is_wanted
            ORDER BY died_in, delivery_id
            LIMIT $1::integer)
            UNION ALL
          (SELECT died_in, delivery_id, NULL, NULL, NULL
             FROM postrider.dead_letter
            WHERE (died_in, delivery_id) > (p.died_in, p.dead_id)
              AND died_in < p.horizon
              AND NOT p.is_wanted
            ORDER BY died_in DESC, delivery_id DESC
            LIMIT 1)) x
), last AS MATERIALIZED (
    SELECT died_in, delivery_id, (SELECT count(*) FROM ahead) AS n
      FROM ahead
     ORDER BY died_in DESC, delivery_id DESC
     LIMIT 1
), dead AS MATERIALIZED (
    SELECT a.subscription_id,
           count(*) AS n,
           min(a.died_at) AS first_at,
           max(a.died_at) AS last_at,
           (array_agg(jsonb_build_object(
                          'delivery_id', a.delivery_id::text,
                          'event_id', e.event_id,
                          'reason', a.reason)
                      ORDER BY a.died_at DESC, a.delivery_id DESC))[1]
               AS newest
      FROM ahead a
     CROSS JOIN LATERAL (
           SELECT event_no
             FROM postrider.delivery
            WHERE id = a.delivery_id
           OFFSET 0) d
     CROSS JOIN LATERAL (
           SELECT event_id, type
             FROM postrider.event
            WHERE event_no = d.event_no
           OFFSET 0) e
     WHERE a.subscription_id IS NOT NULL
       AND NOT starts_with(e.type, 'postrider.')
     GROUP BY a.subscription_id
), happened AS (
    SELECT jsonb_agg(jsonb_build_object(
               'id', concat_ws(':', 'postrider:dead', d.subscription_id,
                               l.died_in, l.delivery_id),
               'type', 'postrider.delivery.dead',
               'at', d.last_at,
               'subscription_id', d.subscription_id,
               'tenant_id', s.tenant_id,
               'data', jsonb_build_object(
                   'subscription_id', d.subscription_id::text,
                   'tenant', n.name,
                   'count', d.n,
                   'first_at', postrider.rfc3339(d.first_at),
                   'last_at', postrider.rfc3339(d.last_at),
                   'newest', d.newest))) AS events
      FROM dead d
     CROSS JOIN last l
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[d.subscription_id])
      JOIN postrider.tenant n ON n.id = ANY (ARRAY[s.tenant_id])
), moved AS (
    UPDATE postrider.operation
       SET died_in = l.died_in,
           dead_id = l.delivery_id,
           dead_at = CASE
                         WHEN l.n < $1 AND EXISTS (SELECT FROM dead)
                         THEN statement_timestamp()
                              + $2::bigint * interval '1 microsecond'
                         ELSE dead_at
                     END
      FROM last l
     WHERE is_only
)
SELECT set_config('postrider.happened',
                  (current_setting('postrider.happened')::jsonb
                   || h.events)::text, true),
       set_config('postrider.operation_did',
                  (current_setting('postrider.operation_did')::bigint
                   + l.n)::text, true),
       set_config('postrider.operation_more',
                  (current_setting('postrider.operation_more')::boolean
                   OR l.n = $1)::text, true)
  FROM last l
 CROSS JOIN (SELECT coalesce((SELECT events FROM happened), '[]') AS events) h;
