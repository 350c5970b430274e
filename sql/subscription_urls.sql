-- subscription_urls: where the newest subscriptions are sent to.
--
--   $1 integer   most rows

SELECT url
  FROM postrider.subscription
 WHERE state = 'active'
 ORDER BY id DESC
 LIMIT $1::integer;
