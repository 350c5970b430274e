-- 0004_administration: subscriptions are changed, paused, disabled and deleted
-- over HTTP.
--
-- A change locks the subscription, then its turn.  It waits for no lane, so it
-- fits into the order of locks: lanes, then subscriptions, then turns.

GRANT UPDATE (url, event_types, state, state_reason, ordering, on_dead,
              older_signature, max_attempts, max_in_flight, retry_base_ms,
              retry_cap_ms, timeout_ms, rate_per_second, circuit_after, version,
              updated_at)
   ON postrider.subscription TO postrider_ingest;
GRANT UPDATE (rest, wake_at, entered_at, rate_at, circuit, circuit_opens,
              failures, slowed_to)
   ON postrider.turn TO postrider_ingest;
GRANT DELETE ON postrider.subscription_pattern TO postrider_ingest;
GRANT SELECT (subscription_id), DELETE
   ON postrider.subscription_secret TO postrider_ingest;
