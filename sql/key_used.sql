-- key_used: note that keys were used just now.
--
--   $1 bigint[]  keys
--
-- Returns nothing.  Many programs see a key being used, and it is told only
-- roughly when: one writes it down every five minutes, and whose row another has
-- in hand is left to that one, so that nobody waits here.

UPDATE postrider.api_key k
   SET last_used_at = statement_timestamp()
  FROM (SELECT id
          FROM postrider.api_key
         WHERE id = ANY ($1)
           AND (last_used_at IS NULL
                OR last_used_at
                   < statement_timestamp() - interval '5 minutes')
           FOR NO KEY UPDATE SKIP LOCKED) d
 WHERE k.id = ANY (ARRAY[d.id]);
