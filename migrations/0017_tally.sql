-- 0017_tally: attempts are counted from what their record says of them.
--
-- To look up each attempt, its delivery and its event a second time, by an index
-- that is there for nothing else, cost more than all the rest of the history.  So
-- who records attempts leaves a note of them, a row a verdict whatever their
-- number, which is removed as it is counted: see history_step.

-- What is not counted yet is little, beside all that is on record.
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;

LOCK TABLE postrider.attempt IN ACCESS EXCLUSIVE MODE;

CREATE TABLE postrider.history_tally (
    recorded_at      timestamptz NOT NULL,
    verdict          text        NOT NULL,
    subscription_ids bigint[]    NOT NULL,
    attempt_us       real[]      NOT NULL,
    delivery_us      real[]      NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_threshold = -1,
        autovacuum_vacuum_cost_delay = 0, toast_tuple_target = 8160);

COMMENT ON TABLE postrider.history_tally IS
    'attempts that were recorded together and are not in history_count yet';
COMMENT ON COLUMN postrider.history_tally.verdict IS
    'delivered, retry or dead: what became of all of them';
COMMENT ON COLUMN postrider.history_tally.subscription_ids IS
    'of each attempt, in the order of the other two arrays';
COMMENT ON COLUMN postrider.history_tally.attempt_us IS
    'how long each took; NULL: nobody knows';
COMMENT ON COLUMN postrider.history_tally.delivery_us IS
    'from acceptance to delivery; NULL: not delivered, or a replay';

-- A record of two hundred is kept on the page, and as it is.
ALTER TABLE postrider.history_tally
    ALTER subscription_ids SET STORAGE EXTERNAL,
    ALTER attempt_us SET STORAGE EXTERNAL,
    ALTER delivery_us SET STORAGE EXTERNAL;

CREATE INDEX history_tally_recorded
    ON postrider.history_tally (recorded_at);

GRANT SELECT, INSERT, DELETE ON postrider.history_tally TO postrider_dispatch;


-- What is not counted yet.  A failed attempt that was its generation's last left
-- a dead letter, or one that was retried or discarded since.

INSERT INTO postrider.history_tally
       (recorded_at, verdict, subscription_ids, attempt_us, delivery_us)
SELECT recorded_at, verdict, array_agg(subscription_id),
       array_agg(duration_us::real),
       array_agg(CASE
                     WHEN verdict = 'delivered' AND generation = 1
                     THEN (1000000 * extract(epoch FROM recorded_at
                                                        - accepted_at))::real
                 END)
  FROM (SELECT a.recorded_at, a.duration_us, a.generation, d.subscription_id,
               e.accepted_at,
               CASE
                   WHEN a.ended = 'answered' AND a.status BETWEEN 200 AND 299
                   THEN 'delivered'
                   WHEN (d.generation > a.generation
                         OR (d.attempts = a.attempt
                             AND (d.state = 'dead'
                                  OR (d.state = 'cancelled'
                                      AND s.state <> 'deleted'))))
                        AND NOT EXISTS (
                            SELECT
                              FROM postrider.attempt later
                             WHERE later.delivery_id = a.delivery_id
                               AND later.generation = a.generation
                               AND later.attempt > a.attempt)
                   THEN 'dead'
                   ELSE 'retry'
               END AS verdict
          FROM postrider.attempt a
          JOIN postrider.delivery d ON d.id = a.delivery_id
          JOIN postrider.subscription s ON s.id = d.subscription_id
          LEFT JOIN postrider.event e ON e.event_no = d.event_no
         WHERE a.recorded_at >= (SELECT counted_until
                                   FROM postrider.history_progress)) t
 GROUP BY recorded_at, verdict;

CREATE OR REPLACE VIEW postrider.history_reach AS
SELECT CASE
           WHEN (SELECT true
                   FROM postrider.history_tally
                  WHERE recorded_at >= p.counted_until
                  ORDER BY recorded_at
                  LIMIT 1)
           THEN nullif(p.counted_until, '-infinity')
           ELSE statement_timestamp()
       END AS until
  FROM postrider.history_progress p;

ALTER TABLE postrider.attempt DROP COLUMN recorded_at;


-- The bins are those of 0014; they are searched instead of reckoned, and added up
-- as they were counted, not one by one.

CREATE OR REPLACE FUNCTION postrider.histogram_bin(us double precision)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 1 + width_bucket(us, ARRAY[
    100, 141.4214, 200, 282.8427, 400, 565.6854, 800, 1131.3708, 1600,
    2262.7417, 3200, 4525.4834, 6400, 9050.9668, 12800, 18101.9336,
    25600, 36203.8672, 51200, 72407.7344, 102400, 144815.4688, 204800,
    289630.9376, 409600, 579261.8751, 819200, 1158523.7503, 1638400,
    2317047.5006, 3276800, 4634095.0012, 6553600, 9268190.0024,
    13107200, 18536380.0047, 26214400, 37072760.0095, 52428800,
    74145520.0189, 104857600, 148291040.0379, 209715200, 296582080.0758,
    419430400, 593164160.1516, 838860800, 1186328320.3031, 1677721600,
    2372656640.6063, 3355443200, 4745313281.2126, 6710886400,
    9490626562.4252, 13421772800, 18981253124.8503, 26843545600,
    37962506249.7006, 53687091200, 75925012499.4012, 107374182400,
    151850024998.8025, 214748364800
]::double precision[]);

DROP FUNCTION postrider.histogram(integer[]);

CREATE FUNCTION postrider.histogram(bins integer[], numbers bigint[])
RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    counts integer[] := array_fill(0, '{64}');
    last integer := 0;
    bin integer;
BEGIN
    FOR i IN 1 .. coalesce(cardinality(bins), 0) LOOP
        bin := bins[i];
        IF bin IS NOT NULL THEN
            counts[bin] := counts[bin] + numbers[i];
            last := greatest(last, bin);
        END IF;
    END LOOP;
    RETURN counts[1:last];
END
$$;

REVOKE ALL ON FUNCTION postrider.histogram FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postrider.histogram TO postrider_dispatch;
