-- subscription_exists: is there any subscription to serve?
--
-- Returns one row.  Until there is, a dispatcher runs no other query.

SELECT EXISTS (SELECT FROM postrider.subscription) AS is_any;
