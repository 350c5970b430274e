-- lane_hold: lock the lanes whose leases are still ours.
--
--   $1 bigint[]  lanes
--   $2 uuid[]    the tokens of our leases
--
-- Returns nothing of interest.  delivery_record follows in the same
-- transaction: only a statement that begins after the lock was had sees every
-- delivery that was appended behind the head.

SELECT l.id
  FROM unnest($1::bigint[], $2::uuid[]) AS o (lane_id, token)
 CROSS JOIN LATERAL (
       SELECT id, subscription_id, asset, lease_token
         FROM postrider.lane
        WHERE id = o.lane_id
       OFFSET 0) l
 WHERE l.lease_token = o.token
 ORDER BY l.subscription_id, l.asset COLLATE "C", l.id
   FOR NO KEY UPDATE OF l;
