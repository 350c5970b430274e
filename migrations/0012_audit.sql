-- 0012_audit: the audit is a chain that only grows; keys that only read, and
-- when a key was last used.


-- Keys.

ALTER TABLE postrider.api_key
    DROP CONSTRAINT api_key_role_check,
    ADD CONSTRAINT api_key_role_check
        CHECK (role IN ('publisher', 'viewer', 'admin', 'operator')),
    ADD last_used_at timestamptz;

COMMENT ON COLUMN postrider.api_key.role IS
    'publisher: posts events; viewer: reads what its tenant has; admin: all of '
    'its tenant; operator: of no tenant, looks after all of them';
COMMENT ON COLUMN postrider.api_key.last_used_at IS
    'to within some minutes; NULL: never';

GRANT INSERT (tenant_id, role, name, hash, expires_at),
      UPDATE (revoked_at, last_used_at)
   ON postrider.api_key TO postrider_ingest;
GRANT INSERT (name) ON postrider.tenant TO postrider_ingest;


-- Each entry of the audit has a number, without a gap, and a hash over itself
-- and the hash before it.  Who changes or removes one later would have to change
-- all that follow, and the head.
--
-- Entries are linked as their transaction ends, when it waits for no other lock
-- any more: the head is the last one in the order of locks, and is held for the
-- commit alone.  So whoever writes an entry, wherever in its transaction, cannot
-- be part of a deadlock, and numbers are in the order of commits.

ALTER TABLE postrider.audit
    ADD number bigint UNIQUE,
    ADD source text,
    ADD hash bytea CHECK (octet_length(hash) = 32);

COMMENT ON COLUMN postrider.audit.number IS
    'its place in the chain; NULL only within the transaction that writes it';
COMMENT ON COLUMN postrider.audit.at IS
    'when it was linked; grows along the chain';
COMMENT ON COLUMN postrider.audit.actor IS
    'key:ID, cli, or dispatch by a policy';
COMMENT ON COLUMN postrider.audit.source IS
    'where from: the client''s address, or who ran the command on which host; '
    'else the address of the database''s client';
COMMENT ON COLUMN postrider.audit.hash IS
    'SHA-256 of the hash before it and of audit_content()';

CREATE INDEX audit_at ON postrider.audit (at, number);

-- Only one row: the end of the chain, so that it shows if the last were removed.
CREATE TABLE postrider.audit_head (
    is_only boolean     PRIMARY KEY DEFAULT true CHECK (is_only),
    number  bigint      NOT NULL DEFAULT 0,
    hash    bytea       NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    at      timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);

INSERT INTO postrider.audit_head DEFAULT VALUES;

COMMENT ON TABLE postrider.audit_head IS
    'the last entry of the audit''s chain; the first follows a hash of zeros';


-- What the hash of an entry covers: all that it says, as a JSON array.
CREATE FUNCTION postrider.audit_content(entry postrider.audit)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_build_array(entry.number,
                         (extract(epoch FROM entry.at) * 1000000)::bigint,
                         entry.actor, entry.source, entry.tenant_id,
                         entry.action, entry.subject, entry.detail)::text;

-- Make `entry` the next of the chain, not earlier than the last.  A statement's
-- time-out does not count while a transaction ends, so the wait has its own.
CREATE FUNCTION postrider.audit_append(entry postrider.audit)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '5s' AS $$
DECLARE
    head postrider.audit_head;
BEGIN
    SELECT *
      INTO STRICT head
      FROM postrider.audit_head
     WHERE is_only
       FOR NO KEY UPDATE;

    entry.number := head.number + 1;
    entry.at := greatest(entry.at, head.at);
    entry.hash := sha256(head.hash
                         || convert_to(postrider.audit_content(entry), 'UTF8'));

    UPDATE postrider.audit
       SET number = entry.number,
           at = entry.at,
           source = entry.source,
           hash = entry.hash
     WHERE id = entry.id;

    UPDATE postrider.audit_head
       SET number = entry.number,
           hash = entry.hash,
           at = entry.at
     WHERE is_only;
END
$$;

REVOKE ALL ON FUNCTION postrider.audit_append FROM PUBLIC;

CREATE FUNCTION postrider.audit_link()
RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entry postrider.audit := NEW;
BEGIN
    entry.at := clock_timestamp();
    entry.source := coalesce(
        nullif(current_setting('postrider.source', true), ''),
        host(inet_client_addr()), 'this host');
    PERFORM postrider.audit_append(entry);
    RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION postrider.audit_link FROM PUBLIC;

CREATE FUNCTION postrider.audit_refuse()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE insufficient_privilege USING MESSAGE = 'the audit only grows';
END
$$;


-- What was noted so far.

DO $$
DECLARE
    entry postrider.audit;
BEGIN
    FOR entry IN SELECT * FROM postrider.audit ORDER BY id LOOP
        PERFORM postrider.audit_append(entry);
    END LOOP;
END
$$;

CREATE CONSTRAINT TRIGGER audit_link
    AFTER INSERT ON postrider.audit
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION postrider.audit_link();

CREATE TRIGGER audit_stays
    BEFORE UPDATE ON postrider.audit
    FOR EACH ROW WHEN (OLD.number IS NOT NULL)
    EXECUTE FUNCTION postrider.audit_refuse();

CREATE TRIGGER audit_lasts
    BEFORE DELETE OR TRUNCATE ON postrider.audit
    FOR EACH STATEMENT EXECUTE FUNCTION postrider.audit_refuse();


-- Programs say who and what; the rest is not theirs to say.

REVOKE INSERT ON postrider.audit FROM postrider_ingest, postrider_dispatch;
GRANT INSERT (actor, tenant_id, action, subject, detail)
   ON postrider.audit TO postrider_ingest, postrider_dispatch;
GRANT SELECT ON postrider.audit TO postrider_ingest;

-- What was changed may name headers and certificates: no reader's.
GRANT SELECT (number, at, actor, source, tenant_id, action, subject, hash)
   ON postrider.audit TO postrider_reader;
