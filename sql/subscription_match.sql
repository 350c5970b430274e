-- subscription_match: the subscriptions that events of these types go to.
--
--   $1 integer[] number of the question
--   $2 bigint[]  its tenant
--   $3 text[]    a pattern that its type matches: 'a.b', 'a.*', '*'
--
-- Returns question and subscription, each pair once.  A paused subscription
-- takes events and waits; a disabled one takes none (replay brings them).  What
-- has a filter_weight, its filter has yet to take (event_filter).

SELECT DISTINCT q.question,
       s.id AS subscription_id,
       s.ordering = 'asset' AS is_ordered,
       s.filter_weight
  FROM unnest($1::integer[], $2::bigint[], $3::text[])
       AS q (question, tenant_id, pattern)
  JOIN postrider.subscription_pattern p
    ON p.tenant_id = q.tenant_id
   AND p.pattern = q.pattern
  JOIN postrider.subscription s
    ON s.id = p.subscription_id
 WHERE s.state IN ('active', 'paused')
 ORDER BY q.question, s.id;
