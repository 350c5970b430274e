-- 0016_filter: subscriptions may filter events by what is in them.
--
-- Which predicates are taken, and why not all, is in core/filter.h.  What
-- PostgreSQL cannot hold as jsonb, a string with \u0000 or a number that is too
-- large, no filter can judge: such an event is delivered, as if there were none.

ALTER TABLE postrider.subscription
    ADD filter text CHECK (octet_length(filter) <= 1024),
    ADD filter_weight integer CHECK (filter_weight > 0),
    ADD filter_path jsonpath GENERATED ALWAYS AS (filter::jsonpath) STORED,
    ADD CHECK ((filter IS NULL) = (filter_weight IS NULL));

COMMENT ON COLUMN postrider.subscription.filter IS
    'a predicate about the body: of the events that its types match it gets '
    'those for which this is true; NULL: all';
COMMENT ON COLUMN postrider.subscription.filter_weight IS
    'how much work it is for each value in a body, as ingest has judged';

GRANT UPDATE (filter, filter_weight)
   ON postrider.subscription TO postrider_ingest;


-- The body of an event; NULL if it cannot be had as jsonb.
CREATE FUNCTION postrider.event_payload(body bytea)
RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN pg_catalog.convert_from(body, 'UTF8')::pg_catalog.jsonb;
EXCEPTION
    WHEN data_exception OR program_limit_exceeded THEN
        RETURN NULL;
END
$$;

-- How many values it has at the most, as core/filter.h counts them.
CREATE FUNCTION postrider.event_values(body bytea)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 1 + octet_length(body)
       - octet_length(translate(convert_from(body, 'UTF8'), ',{[', ''));

REVOKE ALL ON FUNCTION postrider.event_payload, postrider.event_values
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postrider.event_payload
   TO postrider_ingest, postrider_dispatch;
GRANT EXECUTE ON FUNCTION postrider.event_values TO postrider_dispatch;
