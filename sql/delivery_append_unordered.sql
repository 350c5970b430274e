-- delivery_append_unordered: a lane of its own for each delivery without order.
--
--   $1 bigint[]  tenant
--   $2 text[]    event id
--   $3 bigint[]  subscription
--
-- Events that this transaction did not accept itself are passed over.

WITH given AS MATERIALIZED (
    SELECT nextval('postrider.position') AS id,
           e.event_no,
           g.subscription_id
      FROM unnest($1::bigint[], $2::text[], $3::bigint[])
           AS g (tenant_id, event_id, subscription_id)
     CROSS JOIN LATERAL (
           SELECT event_no
             FROM postrider.event
            WHERE tenant_id = g.tenant_id
              AND event_id = g.event_id
              AND xmin = pg_current_xact_id()::xid
           OFFSET 0) e
), alone AS (
    INSERT INTO postrider.lane
           (id, subscription_id, head_id, tail_id, head_event_no, due_at)
    SELECT id, subscription_id, id, id, event_no, statement_timestamp()
      FROM given
)
INSERT INTO postrider.delivery (id, event_no, subscription_id)
SELECT id, event_no, subscription_id
  FROM given;
