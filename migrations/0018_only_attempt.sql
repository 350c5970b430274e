-- 0018_only_attempt: the only attempt at a delivery is kept in the delivery.
--
-- Most deliveries are taken at the first attempt, of which there is no more to say
-- than how long it took.  A row and an index entry for that were a sixth of the WAL
-- of a delivery, and a fifth of what is kept of it beside the payload.  All others
-- stay rows: several attempts, failures, answers with words of their own.  Who reads
-- finds all of them in the view, under the name that the table had.  A view of
-- somebody's own that was made of the table has to be made anew: it would show only
-- what is a row.

ALTER TABLE postrider.attempt RENAME TO other_attempt;
ALTER INDEX postrider.attempt_pkey RENAME TO other_attempt_pkey;

COMMENT ON TABLE postrider.other_attempt IS
    'attempts that their delivery does not keep itself';

ALTER TABLE postrider.delivery
  ADD COLUMN duration_us bigint,
  ADD COLUMN dns_us integer,
  ADD COLUMN connect_us integer,
  ADD COLUMN tls_us integer,
  ADD COLUMN wait_us integer,
  ADD COLUMN receive_us integer,
  ADD COLUMN worker text,
  ADD COLUMN remote text;

COMMENT ON COLUMN postrider.delivery.worker IS
    'of its only attempt, as the other columns of the view attempt; NULL: its '
    'attempts are in other_attempt';

-- A third of a page: each row once more, and longer, so that its update stays there.
ALTER TABLE postrider.delivery SET (fillfactor = 33);

CREATE VIEW postrider.attempt AS
SELECT delivery_id, generation, attempt, started_at, duration_us, status, ended,
       worker, remote, reason, dns_us, connect_us, tls_us, wait_us, receive_us,
       headers, excerpt
  FROM postrider.other_attempt
 UNION ALL
SELECT id, generation, 1, finished_at - duration_us * interval '1 microsecond',
       duration_us, status, 'answered', worker, remote, NULL, dns_us,
       connect_us, tls_us, wait_us, receive_us, NULL, NULL
  FROM postrider.delivery
 WHERE worker IS NOT NULL;

COMMENT ON VIEW postrider.attempt IS 'every attempt, wherever it is kept';

DO $$
DECLARE
    it record;
BEGIN
    FOR it IN
        SELECT a.attname, d.description
          FROM pg_description d
          JOIN pg_attribute a ON a.attrelid = d.objoid AND a.attnum = d.objsubid
         WHERE d.objoid = 'postrider.other_attempt'::regclass
           AND d.classoid = 'pg_class'::regclass
           AND d.objsubid > 0
    LOOP
        EXECUTE format('COMMENT ON COLUMN postrider.attempt.%I IS %L',
                       it.attname, it.description);
    END LOOP;
END
$$;

REVOKE SELECT ON postrider.other_attempt FROM postrider_ingest;
REVOKE SELECT (delivery_id, started_at, duration_us, generation, attempt, status,
               ended, worker, remote, reason, dns_us, connect_us, tls_us,
               wait_us, receive_us)
    ON postrider.other_attempt FROM postrider_reader;
GRANT SELECT ON postrider.attempt TO postrider_ingest;
GRANT SELECT (delivery_id, started_at, duration_us, generation, attempt, status,
              ended, worker, remote, reason, dns_us, connect_us, tls_us,
              wait_us, receive_us)
   ON postrider.attempt TO postrider_reader;

-- A replay makes it one of several.
GRANT INSERT ON postrider.other_attempt TO postrider_ingest;
GRANT UPDATE (duration_us, dns_us, connect_us, tls_us, wait_us, receive_us,
              worker, remote)
   ON postrider.delivery TO postrider_ingest, postrider_dispatch;


-- Nothing counts rows that are not there: the history adds up what was tried.

ALTER TABLE postrider.history_progress
  ADD COLUMN tried bigint NOT NULL DEFAULT 0;

COMMENT ON COLUMN postrider.history_progress.tried IS
    'attempts that were counted';

GRANT UPDATE (tried) ON postrider.history_progress TO postrider_dispatch;
