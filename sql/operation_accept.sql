-- operation_accept: keep what is to be told, each with its deliveries.
--
-- Follows operation_backlog.  Each is an event of the tenant whose subscription
-- it is about, and one of the tenant that is called postrider, as far as there are
-- subscriptions that take it: they name it, or postrider.*, for * is all that was
-- posted; and their filter, if they have one, takes it.  It has no asset: one that
-- is refused holds up no other.
--
-- Returns nothing of interest; a setting tells work_share and work_ready who
-- gets work.  Ids are taken in the order in which acceptance takes them.

WITH happened AS MATERIALIZED (
    SELECT *
      FROM jsonb_to_recordset(
               current_setting('postrider.happened')::jsonb)
           AS h (id text, type text, at timestamptz, subscription_id bigint,
                 tenant_id bigint, data jsonb)
), told AS MATERIALIZED (
    SELECT o.tenant_id, h.id, h.type, h.at, h.data, h.subscription_id,
           array_agg(DISTINCT s.id) AS takers
      FROM happened h
     CROSS JOIN LATERAL (
           SELECT h.tenant_id
            UNION
           SELECT id
             FROM postrider.tenant
            WHERE name = 'postrider') o
     CROSS JOIN LATERAL unnest(ARRAY[h.type,
                                     regexp_replace(h.type, '[^.]+$', '*'),
                                     'postrider.*']) AS w (pattern)
     CROSS JOIN LATERAL (
           SELECT subscription_id
             FROM postrider.subscription_pattern
            WHERE tenant_id = o.tenant_id
              AND pattern = w.pattern
           OFFSET 0) p
      JOIN postrider.subscription s ON s.id = ANY (ARRAY[p.subscription_id])
     WHERE s.state IN ('active', 'paused')
       AND (s.filter_path IS NULL
            OR (jsonb_build_object('id', h.id,
                                   'type', h.type,
                                   'timestamp', postrider.rfc3339(h.at),
                                   'data', h.data)
                @@ s.filter_path) IS TRUE)
     GROUP BY o.tenant_id, h.id, h.type, h.at, h.data, h.subscription_id
), made AS MATERIALIZED (
    SELECT t.*,
           postrider.operation_event(t.tenant_id, t.id, t.type, t.at, t.data,
                                     cardinality(t.takers)) AS event_no
      FROM (SELECT *
              FROM told
             ORDER BY tenant_id, id COLLATE "C") t
), delivery AS MATERIALIZED (
    SELECT nextval('postrider.position') AS id, event_no, subscription_id
      FROM (SELECT event_no, unnest(takers) AS subscription_id
              FROM made
             WHERE event_no IS NOT NULL) d
), appended AS (
    INSERT INTO postrider.lane
           (id, subscription_id, head_id, tail_id, head_event_no, due_at)
    SELECT id, subscription_id, id, id, event_no, statement_timestamp()
      FROM delivery
), delivered AS (
    INSERT INTO postrider.delivery (id, event_no, subscription_id)
    SELECT id, event_no, subscription_id
      FROM delivery
), marked AS (
    INSERT INTO postrider.operation_backlog (subscription_id)
    SELECT subscription_id
      FROM made
     WHERE type = 'postrider.backlog.old'
        ON CONFLICT DO NOTHING
)
SELECT set_config('postrider.told',
                  (ARRAY (SELECT DISTINCT subscription_id
                            FROM delivery))::text, true);
