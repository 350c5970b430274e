-- replay_one: one dead letter is to be replayed.
--
--   $1 bigint    tenant, or null for any
--   $2 bigint    subscription
--   $3 bigint    delivery
--
-- Begins a replay: replay_hold, replay_place, work_share and work_ready follow in
-- the same transaction, and are told by settings for what.  For nothing, if there
-- is no such dead letter: replay_answer then says why.

SELECT set_config('postrider.replay_what', 'dead', true),
       set_config('postrider.replay_ordering', 'asset', true),
       set_config('postrider.replay_subscription',
                  coalesce(max(d.subscription_id), 0)::text, true),
       set_config('postrider.replay_events',
                  coalesce(array_agg(d.event_no), '{}')::text, true)
  FROM postrider.delivery d
  JOIN postrider.subscription s ON s.id = d.subscription_id
 WHERE d.id = $3
   AND d.subscription_id = $2
   AND d.state = 'dead'
   AND s.state <> 'deleted'
   AND ($1::bigint IS NULL OR s.tenant_id = $1);
