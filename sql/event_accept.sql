-- event_accept: keep new events, each with its deliveries at the tails of their
-- lanes.
--
--   $1 bigint[]   tenant, one element an event
--   $2 text[]     event id, each (tenant, id) once and in order by "C"
--   $3 text[]     type
--   $4 text[]     asset, or null
--   $5 bytea[]    fingerprint
--   $6 bytea[]    body
--   $7 integer[]  fan-out
--   $8 text[]     subscriptions that it names, as an array's text, or null
--   $9 integer[]  its place in the order in which they came, from 1
--   $10 bigint[]  subscription, one element a lane, in order
--   $11 text[]    asset, in order by "C"; null, last, for a delivery without order
--   $12 integer[] how many deliveries it gets, at most 1000: the block of positions
--   $13 integer[] the first one's event, by its place in $9
--   $14 integer[] lane, one element a delivery: its place in $10, from 1
--   $15 integer[] event, by its place in $9
--   $16 integer[] how many come behind it in its lane
--   $17 bigint[]  subscriptions that get any, each once
--
-- What was guessed instead of asked; nulls, if nothing was:
--
--   $18 bigint[]  keys that may be used, as key_valid takes them
--   $19 integer[] question, one element a subscription that it is answered with
--   $20 bigint[]  that subscription, ascending
--   $21 boolean[] whether it wants order; it has no filter
--   $22 integer[] question,
--   $23 bigint[]  its tenant,
--   $24 text[]    and a pattern, as subscription_match takes them
--
-- Returns when they were accepted, in microseconds since 1970; no row if a guess was
-- wrong: then nothing is written, and nobody is told.  A setting tells work_share and
-- work_ready who gets work.  An id that is there already is a wrong guess, or
-- else an error: event_known is asked before, so that this happens only to
-- transactions that race.  The later one waits for the other's end; all take ids in
-- one order, so that two cannot wait for each other.
--
-- The upsert takes each lane's row lock, in one order for all and after the
-- ids; the position of a lane that stands already is drawn after that, and the
-- lock lasts until the commit.  So order is commit order, even when two
-- transactions race.
--
-- What belongs together is found by its place in an array: to join a thousand
-- rows that were just written to where they came from costs more than to write
-- them.

WITH guess AS MATERIALIZED (
    SELECT $18::bigint[] IS NULL
           OR ((SELECT count(*)
                  FROM postrider.api_key
                 WHERE id = ANY ($18)
                   AND revoked_at IS NULL
                   AND (expires_at IS NULL
                        OR expires_at > statement_timestamp()))
               = cardinality($18)
               AND NOT EXISTS (
                   SELECT
                     FROM (SELECT unnest($1::bigint[]) AS tenant_id,
                                  unnest($2::text[])   AS event_id
                           OFFSET 0) q
                    CROSS JOIN LATERAL (
                          SELECT
                            FROM postrider.event
                           WHERE tenant_id = q.tenant_id
                             AND event_id = q.event_id
                          OFFSET 0) e)
               AND (SELECT coalesce(array_agg(question), '{}') = $19::integer[]
                           AND coalesce(array_agg(id), '{}') = $20::bigint[]
                           AND coalesce(array_agg(is_ordered), '{}')
                               = $21::boolean[]
                           AND coalesce(bool_and(filter_weight = 0), true)
                      FROM (SELECT DISTINCT q.question,
                                   s.id,
                                   s.ordering = 'asset' AS is_ordered,
                                   s.filter_weight
                              FROM unnest($22::integer[], $23::bigint[],
                                          $24::text[])
                                   AS q (question, tenant_id, pattern)
                              JOIN postrider.subscription_pattern p
                                ON p.tenant_id = q.tenant_id
                               AND p.pattern = q.pattern
                              JOIN postrider.subscription s
                                ON s.id = p.subscription_id
                             WHERE s.state IN ('active', 'paused')
                             ORDER BY q.question, s.id) m)) AS is_right
), drawn AS MATERIALIZED (
    SELECT array_agg(nextval('postrider.position')) AS numbers
      FROM unnest($1::bigint[])
), accepted AS (
    INSERT INTO postrider.event
           (event_no, tenant_id, event_id, type, asset, fingerprint, body,
            fan_out, named)
    SELECT (SELECT numbers FROM drawn)[place], tenant_id, event_id, type,
           asset, fingerprint, body, fan_out, named::bigint[]
      FROM (SELECT unnest($1::bigint[])  AS tenant_id,
                   unnest($2::text[])    AS event_id,
                   unnest($3::text[])    AS type,
                   unnest($4::text[])    AS asset,
                   unnest($5::bytea[])   AS fingerprint,
                   unnest($6::bytea[])   AS body,
                   unnest($7::integer[]) AS fan_out,
                   unnest($8::text[])    AS named,
                   unnest($9::integer[]) AS place) g
     WHERE (SELECT is_right FROM guess)
    RETURNING event_no
), appended AS (
    INSERT INTO postrider.lane AS l
           (id, subscription_id, asset, head_id, tail_id, head_event_no,
            due_at)
    SELECT first_id, subscription_id, asset, first_id, first_id + n - 1,
           (SELECT numbers FROM drawn)[first], statement_timestamp()
      FROM (SELECT nextval('postrider.position') AS first_id,
                   unnest($10::bigint[])  AS subscription_id,
                   unnest($11::text[])    AS asset,
                   unnest($12::integer[]) AS n,
                   unnest($13::integer[]) AS first
              FROM (SELECT count(*) FROM accepted) ids_are_locked
             WHERE (SELECT is_right FROM guess)) g
        ON CONFLICT (subscription_id, asset) WHERE asset IS NOT NULL
        DO UPDATE
       SET tail_id = nextval('postrider.position')
                     + EXCLUDED.tail_id - EXCLUDED.head_id
    RETURNING l.id, l.subscription_id, l.asset, l.tail_id
), lane AS MATERIALIZED (
    SELECT array_agg(tail_id) AS tails,
           array_agg(CASE WHEN asset IS NOT NULL THEN id END) AS ids
      FROM (SELECT *
              FROM appended
             ORDER BY subscription_id, asset COLLATE "C", id) a
), delivered AS (
    INSERT INTO postrider.delivery (id, event_no, subscription_id, lane_id)
    SELECT (SELECT tails FROM lane)[lane] - behind,
           (SELECT numbers FROM drawn)[place],
           ($10::bigint[])[lane],
           (SELECT ids FROM lane)[lane]
      FROM (SELECT unnest($14::integer[]) AS lane,
                   unnest($15::integer[]) AS place,
                   unnest($16::integer[]) AS behind) g
     WHERE (SELECT is_right FROM guess)
)
SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint
       AS accepted_at,
       set_config('postrider.told', $17::bigint[]::text, true)
 WHERE (SELECT is_right FROM guess);
