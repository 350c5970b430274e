-- 0014_history: what was tried, by the minute and by the quarter of an hour.
--
-- Reading a day of attempts takes minutes where there are many.  So dispatchers
-- count them, a few seconds behind, into rows that are few: see history_step.


-- When the attempt was recorded, by the database's clock.  An attempt from before
-- this migration has none and is not counted.

ALTER TABLE postrider.attempt
  ADD COLUMN recorded_at timestamptz;

ALTER TABLE postrider.attempt
ALTER COLUMN recorded_at SET DEFAULT statement_timestamp();

CREATE INDEX attempt_recorded
    ON postrider.attempt (recorded_at)
 WHERE recorded_at IS NOT NULL;

GRANT SELECT (recorded_at) ON postrider.attempt TO postrider_reader;


-- Times as a histogram: how many fell into each bin.  Bin 1 is below 100 us, each
-- that follows reaches 1.41 times as far, the 64th takes all that took longer
-- than two days.

CREATE FUNCTION postrider.histogram_bin(us double precision)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
           WHEN us < 100
           THEN 1
           WHEN us >= 100
           THEN least(2 + floor(2 * ln(us / 100) / ln(2::double precision)), 64)
       END::integer;

CREATE FUNCTION postrider.histogram(bins integer[])
RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    counts integer[] := '{}';
    bin integer;
BEGIN
    FOREACH bin IN ARRAY coalesce(bins, '{}') LOOP
        WHILE cardinality(counts) < bin LOOP
            counts := counts || 0;
        END LOOP;
        counts[bin] := counts[bin] + 1;
    END LOOP;
    RETURN counts;
END
$$;

CREATE FUNCTION postrider.histogram_sum(a integer[], b integer[])
RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    counts integer[] := CASE
                            WHEN cardinality(a) < cardinality(b) THEN b
                            ELSE a
                        END;
    other integer[] := CASE
                           WHEN cardinality(a) < cardinality(b) THEN a
                           ELSE b
                       END;
BEGIN
    FOR bin IN 1 .. cardinality(other) LOOP
        counts[bin] := counts[bin] + other[bin];
    END LOOP;
    RETURN counts;
END
$$;

-- Within a bin, times are taken to be spread evenly by their logarithm: off by a
-- fifth at worst.
CREATE FUNCTION postrider.histogram_ms(counts integer[], part double precision)
RETURNS double precision LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    wanted double precision := 0;
    n integer;
BEGIN
    FOREACH n IN ARRAY coalesce(counts, '{}') LOOP
        wanted := wanted + n;
    END LOOP;
    IF wanted = 0 THEN
        RETURN NULL;
    END IF;
    wanted := greatest(wanted * part, 1);
    FOR bin IN 1 .. cardinality(counts) LOOP
        n := counts[bin];
        IF wanted <= n THEN
            RETURN round((0.1 * 2 ^ ((bin - 2 + wanted / n) / 2))::numeric, 2);
        END IF;
        wanted := wanted - n;
    END LOOP;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION postrider.histogram_ms(integer[], double precision) IS
    'the time in ms that this part of them did not exceed; NULL: there are none';


CREATE FUNCTION postrider.histogram_json(counts integer[])
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
           WHEN cardinality(counts) > 0
           THEN json_build_object('p50', postrider.histogram_ms(counts, 0.50),
                                  'p95', postrider.histogram_ms(counts, 0.95),
                                  'p99', postrider.histogram_ms(counts, 0.99))
       END::text;


-- One row for each period in which there was an attempt: of a subscription, of a
-- tenant (subscription 0), and of all (tenant 0 too).

CREATE TABLE postrider.history_count (
    subscription_id bigint      NOT NULL,
    seconds         integer     NOT NULL CHECK (seconds IN (60, 900)),
    at              timestamptz NOT NULL,
    tenant_id       bigint      NOT NULL,
    delivered       integer     NOT NULL,
    failed          integer     NOT NULL,
    dead            integer     NOT NULL,
    attempt_times   integer[]   NOT NULL,
    delivery_times  integer[]   NOT NULL,
    PRIMARY KEY (subscription_id, seconds, at, tenant_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

COMMENT ON COLUMN postrider.history_count.attempt_times IS
    'histogram of how long attempts took, where that is known';
COMMENT ON COLUMN postrider.history_count.delivery_times IS
    'histogram of the times from acceptance to delivery, without replays';

-- For what is old alone: who looks up a period, and knows no better, is not
-- offered all that there is in it.
CREATE INDEX history_count_at
    ON postrider.history_count ((-seconds), at);


-- Only one row: how far the counting has come.  Whoever goes on holds it.
CREATE TABLE postrider.history_progress (
    is_only       boolean     PRIMARY KEY DEFAULT true CHECK (is_only),
    counted_until timestamptz NOT NULL DEFAULT '-infinity',
    watched_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    watched_xid   xid8        NOT NULL DEFAULT pg_current_xact_id(),
    minutes_from  timestamptz NOT NULL DEFAULT '-infinity',
    quarters_from timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);

INSERT INTO postrider.history_progress DEFAULT VALUES;

COMMENT ON COLUMN postrider.history_progress.counted_until IS
    'all attempts that were recorded before are counted, and no other';
COMMENT ON COLUMN postrider.history_progress.watched_xid IS
    'when all transactions up to this one are over, nothing more can come that '
    'is recorded before watched_at';
COMMENT ON COLUMN postrider.history_progress.minutes_from IS
    'no row of a minute before is left; quarters_from likewise';


CREATE VIEW postrider.history AS
SELECT h.seconds,
       h.at,
       h.tenant_id,
       n.name AS tenant,
       h.subscription_id,
       h.delivered,
       h.failed,
       h.dead,
       round(h.delivered::numeric / nullif(h.delivered + h.failed, 0), 4)
           AS success,
       postrider.histogram_ms(h.attempt_times, 0.50) AS attempt_p50,
       postrider.histogram_ms(h.attempt_times, 0.95) AS attempt_p95,
       postrider.histogram_ms(h.attempt_times, 0.99) AS attempt_p99,
       postrider.histogram_ms(h.delivery_times, 0.50) AS delivery_p50,
       postrider.histogram_ms(h.delivery_times, 0.95) AS delivery_p95,
       postrider.histogram_ms(h.delivery_times, 0.99) AS delivery_p99
  FROM postrider.history_count h
  LEFT JOIN postrider.tenant n ON n.id = h.tenant_id;

COMMENT ON VIEW postrider.history IS
    'what was tried in each minute (seconds = 60) and quarter of an hour (900): '
    'of a subscription, of a tenant (subscription_id = 0), of all (tenant_id = '
    '0 as well)';
COMMENT ON COLUMN postrider.history.failed IS
    'attempts that did not deliver, those that ended in a dead letter included';
COMMENT ON COLUMN postrider.history.attempt_p50 IS
    'half of the attempts took no longer than so many ms; 95 and 99: of 100';
COMMENT ON COLUMN postrider.history.delivery_p50 IS
    'likewise from acceptance to delivery, replays left out';


CREATE VIEW postrider.history_reach AS
SELECT CASE
           WHEN (SELECT true
                   FROM postrider.attempt
                  WHERE recorded_at >= p.counted_until
                  ORDER BY recorded_at
                  LIMIT 1)
           THEN nullif(p.counted_until, '-infinity')
           ELSE statement_timestamp()
       END AS until
  FROM postrider.history_progress p;

COMMENT ON VIEW postrider.history_reach IS
    'all that was recorded before is in the history';


REVOKE ALL ON FUNCTION postrider.histogram_bin, postrider.histogram,
                       postrider.histogram_sum, postrider.histogram_ms,
                       postrider.histogram_json
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postrider.histogram_bin, postrider.histogram,
                          postrider.histogram_sum
   TO postrider_dispatch;
GRANT EXECUTE ON FUNCTION postrider.histogram_sum, postrider.histogram_ms,
                          postrider.histogram_json
   TO postrider_ingest;
GRANT EXECUTE ON FUNCTION postrider.histogram_ms TO postrider_reader;

GRANT SELECT ON postrider.history, postrider.history_progress,
                postrider.history_reach
   TO postrider_reader, postrider_ingest;
GRANT SELECT ON postrider.history_count TO postrider_ingest;
GRANT SELECT, INSERT, DELETE,
      UPDATE (delivered, failed, dead, attempt_times, delivery_times)
   ON postrider.history_count TO postrider_dispatch;
GRANT SELECT,
      UPDATE (counted_until, watched_at, watched_xid, minutes_from,
              quarters_from)
   ON postrider.history_progress TO postrider_dispatch;
