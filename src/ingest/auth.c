#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "auth.h"
#include "base/clock.h"
#include "base/err.h"
#include "call.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "pg/pg.h"
#include "problem.h"

enum {
	SLOTS = 1024, /* a key has one, by its hash */
	KEY_TEXT_MAX = 256,
};

/* A flood of wrong keys, each a look-up, does not turn away those who are known. */
#define KEEP (60 * USEC_PER_SEC)

struct slot {
	unsigned char hash[KEY_HASH];
	struct key key;
	usec_t until; /* 0: empty */
};

/* A key being looked up, and the calls that came with it meanwhile. */
struct lookup {
	TAILQ_ENTRY(lookup) link;
	struct auth *auth;
	unsigned char hash[KEY_HASH];
	bool is_fresh; /* nobody may join: the answer may be older than he is */
	unsigned roles;
	auth_pass_fn *pass;
	struct calls calls;
};

struct auth {
	TAILQ_HEAD(, lookup) lookups;
	struct slot slots[SLOTS];
};

int
auth_open(struct auth **out, struct err *err)
{
	struct auth *auth = calloc(1, sizeof(*auth));

	if (auth == NULL)
		return err_set(err, ERR_NOMEM, "auth");
	TAILQ_INIT(&auth->lookups);
	*out = auth;
	return 0;
}

static void
free_lookup(struct lookup *lookup)
{
	TAILQ_REMOVE(&lookup->auth->lookups, lookup, link);
	free(lookup);
}

void
auth_close(struct auth *auth)
{
	struct lookup *lookup;

	if (auth == NULL)
		return;
	while ((lookup = TAILQ_FIRST(&auth->lookups)) != NULL) {
		struct call *call;

		while ((call = TAILQ_FIRST(&lookup->calls)) != NULL) {
			TAILQ_REMOVE(&lookup->calls, call, link);
			free(call);
		}
		free_lookup(lookup);
	}
	free(auth);
}

static struct slot *
slot_of(struct auth *auth, const unsigned char *hash)
{
	return &auth->slots[(hash[0] | (hash[1] << 8)) % SLOTS];
}

static void
refuse_role(struct call *call)
{
	if (call->key.role == KEY_OPERATOR)
		problem_reply(call, 403,
		    "an operator's key belongs to no tenant: this takes a key "
		    "of the tenant");
	else
		problem_reply(call, 403,
		    "a publisher's key posts and reads events: this takes an "
		    "admin's key");
}

static void
admit(struct call *call, const struct key *key, unsigned roles,
    auth_pass_fn *pass)
{
	call->key = *key;
	if ((roles & (1u << key->role)) == 0)
		refuse_role(call);
	else
		pass(call);
}

static void
refuse_key(struct call *call)
{
	problem_reply(call, 401, "this key is not valid");
}

static void
remember(struct auth *auth, const unsigned char *hash, const struct key *key)
{
	struct slot *slot = slot_of(auth, hash);

	memcpy(slot->hash, hash, KEY_HASH);
	slot->key = *key;
	slot->until = clock_now() + KEEP;
}

static void
on_found(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct lookup *lookup = arg;
	struct call *call;
	struct key key;
	bool is_known = err == NULL && key_found(&key, rows[0]);

	if (is_known)
		remember(lookup->auth, lookup->hash, &key);
	while ((call = TAILQ_FIRST(&lookup->calls)) != NULL) {
		TAILQ_REMOVE(&lookup->calls, call, link);
		if (err != NULL)
			problem_reply_err(call, err);
		else if (is_known)
			admit(call, &key, lookup->roles, lookup->pass);
		else
			refuse_key(call);
	}
	free_lookup(lookup);
}

static struct lookup *
find_lookup(struct auth *auth, const struct lookup *wanted)
{
	struct lookup *lookup;

	TAILQ_FOREACH (lookup, &auth->lookups, link)
		if (!lookup->is_fresh && lookup->pass == wanted->pass &&
		    lookup->roles == wanted->roles &&
		    memcmp(lookup->hash, wanted->hash, KEY_HASH) == 0)
			return lookup;
	return NULL;
}

static int
ask(struct auth *auth, struct desk *desk, const struct lookup *wanted,
    struct lookup **out, struct err *err)
{
	struct lookup *lookup = malloc(sizeof(*lookup));
	struct pg_batch *batch = pg_batch_new();

	if (lookup == NULL || batch == NULL) {
		free(lookup);
		pg_batch_free(batch);
		return err_set(err, ERR_NOMEM, "key");
	}
	*lookup = *wanted;
	TAILQ_INIT(&lookup->calls);
	TAILQ_INSERT_TAIL(&auth->lookups, lookup, link);
	key_find(batch, lookup->hash);
	if (desk_submit(desk, batch, on_found, lookup, err) != 0) {
		free_lookup(lookup);
		return -1;
	}
	*out = lookup;
	return 0;
}

/* "Bearer KEY": the key's text in the header, and its length; NULL if there is
 * none. */
static const char *
bearer(const struct request *request, size_t *len)
{
	const char *value = request_header(request, "Authorization");

	if (value == NULL || strncasecmp(value, "Bearer ", 7) != 0)
		return NULL;
	value += 7;
	value += strspn(value, " ");
	*len = strlen(value);
	return *len == 0 || *len > KEY_TEXT_MAX ? NULL : value;
}

void
auth_check(struct call *call, unsigned roles, bool is_fresh, auth_pass_fn *pass)
{
	struct auth *auth = call->ingest->auth;
	struct lookup wanted = {
		.auth = auth,
		.is_fresh = is_fresh,
		.roles = roles,
		.pass = pass,
	};
	struct lookup *lookup;
	const struct slot *slot;
	const char *key;
	size_t len;
	struct err err;

	key = bearer(call->request, &len);
	if (key == NULL) {
		problem_reply(
		    call, 401, "send the header `Authorization: Bearer KEY`");
		return;
	}
	if (key_hash(wanted.hash, key, len, &err) != 0) {
		problem_reply_err(call, &err);
		return;
	}
	slot = slot_of(auth, wanted.hash);
	if (!is_fresh && slot->until > clock_now() &&
	    memcmp(slot->hash, wanted.hash, KEY_HASH) == 0) {
		admit(call, &slot->key, roles, pass);
		return;
	}
	lookup = is_fresh ? NULL : find_lookup(auth, &wanted);
	if (lookup == NULL &&
	    ask(auth, call->ingest->desk, &wanted, &lookup, &err) != 0) {
		problem_reply_err(call, &err);
		return;
	}
	TAILQ_INSERT_TAIL(&lookup->calls, call, link);
}
