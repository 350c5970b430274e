-- subscription_hold: one subscription and its turn, locked for a change.
--
--   $1 bigint    tenant; null: whosever it is
--   $2 bigint    subscription
--
-- Returns one row if it is there.  The change follows in the same transaction,
-- and sees all that was committed before these locks were had: two changes come
-- one after the other.  So do a change and a claim, which holds the turn: what
-- is claimed once the change is committed is claimed by its terms.

SELECT s.id
  FROM (SELECT id
          FROM postrider.subscription
         WHERE id = $2
           AND ($1::bigint IS NULL OR tenant_id = $1)
           AND state <> 'deleted'
           FOR NO KEY UPDATE) s
 CROSS JOIN LATERAL (
       SELECT
         FROM postrider.turn
        WHERE subscription_id = s.id
          FOR NO KEY UPDATE) t;
