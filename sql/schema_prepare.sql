-- schema_prepare: the roles and the schema that the migrations run in.
--
-- A script, run by whoever migrates first: a superuser, or a role with
-- CREATEROLE and CREATE on the database.  What is there already is left alone
-- and asks for no right.  Roles belong to the cluster, so another database may
-- have made them, even at this moment.

DO $$
DECLARE
    wanted text;
BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'the database is %, and events are UTF-8',
                        getdatabaseencoding()
              USING HINT = 'create it with ENCODING ''UTF8''';
    END IF;

    FOREACH wanted IN ARRAY ARRAY['postrider_owner', 'postrider_ingest',
                                  'postrider_dispatch', 'postrider_reader']
    LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;

    -- Tried, not looked up: since PostgreSQL 16 whoever made a role is a member
    -- of it without the right to become it.
    BEGIN
        SET LOCAL ROLE postrider_owner;
        RESET ROLE;
    EXCEPTION WHEN insufficient_privilege THEN
        BEGIN
            EXECUTE format('GRANT postrider_owner TO %I', current_user);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE EXCEPTION '% may not become postrider_owner: a superuser has '
                            'to run `GRANT postrider_owner TO %`',
                            current_user, quote_ident(current_user);
        END;
    END;

    IF to_regnamespace('postrider') IS NULL THEN
        IF NOT has_database_privilege(current_database(), 'CREATE') THEN
            RAISE EXCEPTION '% may not make a schema here: the database''s '
                            'owner has to run `GRANT CREATE ON DATABASE % TO '
                            '%`', current_user, quote_ident(current_database()),
                            quote_ident(current_user);
        END IF;
        CREATE SCHEMA postrider AUTHORIZATION postrider_owner;
    END IF;
END
$$;

SET LOCAL ROLE postrider_owner;

CREATE TABLE IF NOT EXISTS postrider.schema_migration (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

GRANT USAGE ON SCHEMA postrider
   TO postrider_ingest, postrider_dispatch, postrider_reader;

GRANT SELECT ON postrider.schema_migration
   TO postrider_ingest, postrider_dispatch, postrider_reader;
