-- audit_list: entries of the audit, the newest first.
--
--   $1 bigint    before this number, or null for the newest
--   $2 text      tenant's name, or null for any; so are all up to $7
--   $3 text      actor
--   $4 text      action
--   $5 text      subject
--   $6 bigint    since, in microseconds since 1970
--   $7 bigint    until, which is not included
--   $8 integer   most rows
--   $9 integer   most entries to look at
--
-- Returns rows; if none fits, one with a null number.  A page costs the same
-- however few fit, so it may be short: more_before says before which number to
-- go on then, null if all was looked at.
--
-- Times grow along the chain, so a time is a number in it.

SELECT a.number,
       (extract(epoch FROM a.at) * 1000000)::bigint AS at,
       a.actor, a.source, a.tenant, a.action, a.subject,
       a.detail::text AS detail,
       encode(a.hash, 'hex') AS hash,
       nullif(w.reached, w.low) AS more_before
  FROM (SELECT low, high, greatest(low, high - $9::integer) AS reached
          FROM (SELECT CASE
                           WHEN $6::bigint IS NULL THEN 1
                           ELSE coalesce(
                                    (SELECT number
                                       FROM postrider.audit
                                      WHERE at >= timestamptz 'epoch'
                                                  + $6
                                                    * interval '1 microsecond'
                                      ORDER BY at, number
                                      LIMIT 1),
                                    9223372036854775807)
                       END AS low,
                       least($1::bigint,
                             (SELECT number
                                FROM postrider.audit
                               WHERE at >= timestamptz 'epoch'
                                           + $7::bigint
                                             * interval '1 microsecond'
                               ORDER BY at, number
                               LIMIT 1),
                             (SELECT number + 1
                                FROM postrider.audit
                               WHERE number > 0
                               ORDER BY number DESC
                               LIMIT 1)) AS high) b) w
  LEFT JOIN LATERAL (
       SELECT e.*, t.name AS tenant
         FROM postrider.audit e
         LEFT JOIN postrider.tenant t ON t.id = ANY (ARRAY[e.tenant_id])
        WHERE e.number >= w.reached
          AND e.number < w.high
          AND ($2::text IS NULL OR t.name = $2)
          AND ($3::text IS NULL OR e.actor = $3)
          AND ($4::text IS NULL OR e.action = $4)
          AND ($5::text IS NULL OR e.subject = $5)
        ORDER BY e.number DESC
        LIMIT $8::integer) a ON true
 ORDER BY a.number DESC;
