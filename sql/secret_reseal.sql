-- secret_reseal: keep a secret sealed anew, unless somebody was faster or has it
-- in hand.
--
--   $1 bigint    secret
--   $2 bytea     the nonce that it was read with
--   $3 text      id of the key that it is now sealed under
--   $4 bytea     the nonce
--   $5 bytea     sealed
--
-- A nonce is random and new each time, so it tells whether this is still what
-- was read.  Many in one transaction: since none waits, none can wait in a
-- circle.  The subscription keeps its version: what is known of it stays true.

UPDATE postrider.subscription_secret
   SET key_id = $3,
       nonce = $4,
       sealed = $5
 WHERE id = ANY (ARRAY(SELECT id
                         FROM postrider.subscription_secret
                        WHERE id = $1
                          AND nonce = $2
                          FOR NO KEY UPDATE SKIP LOCKED));
