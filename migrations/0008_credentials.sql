-- 0008_credentials: what a subscription's requests show who sends them: headers
-- of its own, a client certificate, signatures by a key pair; and whom they
-- trust.
--
-- Plain headers and certificates are columns of the subscription.  Whatever is
-- secret is sealed, a row each, and told apart by its kind.

ALTER TABLE postrider.subscription
    ADD headers jsonb NOT NULL DEFAULT '{}'
        CHECK (jsonb_typeof(headers) = 'object'
               AND octet_length(headers::text) <= 20000
               AND NOT jsonb_path_exists(
                       headers,
                       'strict $.keyvalue()
                        ? (!(@.key like_regex "^[a-z0-9!#$%&''*+.^_`|~-]{1,64}$")
                           || @.value.type() != "string"
                           || @.value like_regex "[^\t -~]" flag "s")')),
    ADD tls_ca text
        CHECK (octet_length(tls_ca) <= 65536
               AND tls_ca NOT LIKE '%PRIVATE KEY%'),
    ADD tls_certificate text
        CHECK (octet_length(tls_certificate) <= 65536
               AND tls_certificate NOT LIKE '%PRIVATE KEY%');

COMMENT ON COLUMN postrider.subscription.headers IS
    'sent with each request, as lower-case name and value; secret ones are not '
    'here';
COMMENT ON COLUMN postrider.subscription.tls_ca IS
    'PEM: trusted instead of all others; NULL: as the dispatcher is set';
COMMENT ON COLUMN postrider.subscription.tls_certificate IS
    'PEM: shown to the endpoint; its key is sealed';

-- Put off to the end of a statement, so that one can replace what is there.
ALTER TABLE postrider.subscription_secret
    ADD kind text NOT NULL DEFAULT 'secret'
        CHECK (kind IN ('secret', 'signing_key', 'tls_key', 'header')),
    ADD name text
        CHECK (name ~ '^[a-z0-9!#$%&''*+.^_`|~-]{1,64}$'),
    ADD size integer
        GENERATED ALWAYS AS (octet_length(sealed) - 16) STORED,
    ADD public_key text
        CHECK (public_key ~ '^whpk_[A-Za-z0-9+/]{43}=$'),
    ADD CHECK ((kind = 'header') = (name IS NOT NULL)),
    ADD CHECK ((kind = 'signing_key') = (public_key IS NOT NULL)),
    ADD CHECK (expires_at IS NULL OR kind IN ('secret', 'signing_key')),
    ADD CONSTRAINT subscription_secret_one
        EXCLUDE USING btree (subscription_id WITH =, kind WITH =,
                             (coalesce(name, '')) WITH =)
        WHERE (kind IN ('tls_key', 'header'))
        DEFERRABLE;

-- Which keys are in use, without a look at each secret.
CREATE INDEX subscription_secret_key
    ON postrider.subscription_secret (key_id, id);

COMMENT ON COLUMN postrider.subscription_secret.kind IS
    'secret: HMAC; signing_key: Ed25519; tls_key: of the client certificate; '
    'header: a header''s value';
COMMENT ON COLUMN postrider.subscription_secret.name IS
    'the header, in lower case';
COMMENT ON COLUMN postrider.subscription_secret.size IS
    'octets of the secret: what is sealed, less its tag';
COMMENT ON COLUMN postrider.subscription_secret.public_key IS
    'what a receiver verifies with; no secret';
COMMENT ON COLUMN postrider.subscription_secret.sealed IS
    'AES-256-GCM, tag at the end, bound to the subscription by its id, to the '
    'kind and to the name';
COMMENT ON COLUMN postrider.subscription_secret.expires_at IS
    'signs no more from then on; the next rotation removes it';

GRANT UPDATE (headers, tls_ca, tls_certificate)
   ON postrider.subscription TO postrider_ingest;
GRANT SELECT (id, subscription_id, kind, name, size, public_key, key_id,
              expires_at),
      UPDATE (expires_at)
   ON postrider.subscription_secret TO postrider_ingest;
