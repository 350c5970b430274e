#include <assert.h>
#include <inttypes.h>
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
#include "key_uses.h"
#include "pg/pg.h"
#include "problem.h"
#include "rate.h"

enum {
	SLOTS = 1024, /* a key has one, by its hash */
	KEY_TEXT_MAX = 256,
	BATCH_MAX = 256, /* look-ups in one trip to the database */
	WAITING_MAX = 2048, /* look-ups of keys that nobody has seen yet */
};

#define KEEP (60 * USEC_PER_SEC)

struct slot {
	unsigned char hash[KEY_HASH];
	struct key key;
	usec_t until; /* 0: empty */
};

/* A key to be looked up, and the calls that came with it. */
struct lookup {
	TAILQ_ENTRY(lookup) link;
	unsigned char hash[KEY_HASH];
	unsigned roles;
	auth_pass_fn *pass;
	struct calls calls;
};

TAILQ_HEAD(lookups, lookup);

struct auth {
	struct ingest *ingest;
	struct lookups asked; /* in the batch under way */
	struct lookups waiting; /* for the next; empty if none is under way */
	size_t nwaiting;
	struct key_uses *uses;
	struct rate rate;
	struct slot slots[SLOTS];
};

int
auth_open(struct auth **out, struct ingest *ingest, struct err *err)
{
	struct auth *auth = calloc(1, sizeof(*auth));

	if (auth == NULL)
		return err_set(err, ERR_NOMEM, "auth");
	auth->ingest = ingest;
	TAILQ_INIT(&auth->asked);
	TAILQ_INIT(&auth->waiting);
	if (key_uses_open(&auth->uses, ingest, err) != 0) {
		free(auth);
		return -1;
	}
	*out = auth;
	return 0;
}

void
auth_close(struct auth *auth)
{
	if (auth == NULL)
		return;
	assert(TAILQ_EMPTY(&auth->asked) && TAILQ_EMPTY(&auth->waiting));
	key_uses_close(auth->uses);
	free(auth);
}

static struct slot *
slot_of(struct auth *auth, const unsigned char *hash)
{
	return &auth->slots[(hash[0] | (hash[1] << 8)) % SLOTS];
}

static void
refuse_role(struct call *call, unsigned roles)
{
	const char *why = "";

	switch (call->key.role) {
	case KEY_PUBLISHER:
		why = "a publisher's key posts and reads events: this takes an "
		      "admin's key";
		break;
	case KEY_VIEWER:
		why = "a viewer's key reads, and changes nothing: this takes "
		      "an admin's key";
		break;
	case KEY_ADMIN:
		break;
	case KEY_OPERATOR:
		why = "an operator's key belongs to no tenant: this takes a "
		      "key of the tenant";
		break;
	}
	if (roles == 1u << KEY_OPERATOR)
		why = "this takes an operator's key";
	problem_reply(call, 403, "%s", why);
}

static void
admit(struct call *call, const struct key *key, unsigned roles,
    auth_pass_fn *pass)
{
	const struct ingest *ingest = call->ingest;
	int64_t most = ingest->conf->max_requests_per_key;

	call->key = *key;
	if (most > 0 &&
	    !rate_take(&ingest->auth->rate, key->id, most, clock_now()))
		problem_reply(call, 429,
		    "this key may ask %" PRId64 " times a second", most);
	else if ((roles & (1u << key->role)) == 0)
		refuse_role(call, roles);
	else
		pass(call);
}

static void
refuse_key(struct call *call)
{
	problem_reply(call, 401,
	    "this key is not valid: it is unknown, revoked or expired");
}

static void
remember(struct auth *auth, const unsigned char *hash, const struct key *key)
{
	struct slot *slot = slot_of(auth, hash);

	memcpy(slot->hash, hash, KEY_HASH);
	slot->key = *key;
	slot->until = clock_now() + KEEP;
}

/* Answer all who came with a key; `rows` is NULL after an error. */
static void
settle(struct auth *auth, struct lookup *lookup, const struct pg_rows *rows,
    const struct err *err)
{
	struct call *call;
	struct key key;
	bool is_known = rows != NULL && key_found(&key, rows);

	if (is_known)
		remember(auth, lookup->hash, &key);
	if (is_known && key.is_use_due)
		key_uses_note(auth->uses, key.id);
	while ((call = TAILQ_FIRST(&lookup->calls)) != NULL) {
		TAILQ_REMOVE(&lookup->calls, call, link);
		if (rows == NULL)
			problem_reply_err(call, err);
		else if (is_known)
			admit(call, &key, lookup->roles, lookup->pass);
		else
			refuse_key(call);
	}
	free(lookup);
}

static void ask(struct auth *auth);

static void
on_found(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct auth *auth = arg;
	struct err passing = { 0 };
	struct lookups asked;
	struct lookup *lookup;

	if (err != NULL)
		passing = *err;
	/* It only reads: nothing can have been done. */
	if (passing.code == ERR_UNKNOWN)
		passing.code = ERR_RETRY;
	TAILQ_INIT(&asked);
	TAILQ_CONCAT(&asked, &auth->asked, link);
	while ((lookup = TAILQ_FIRST(&asked)) != NULL) {
		TAILQ_REMOVE(&asked, lookup, link);
		settle(auth, lookup, err == NULL ? *rows++ : NULL, &passing);
	}
	ask(auth);
}

/* What came while a batch was under way is the next. */
static void
ask(struct auth *auth)
{
	struct pg_batch *batch;
	struct lookup *lookup;
	struct err err;

	if (TAILQ_EMPTY(&auth->waiting))
		return;
	batch = pg_batch_new();
	for (int n = 0; n < BATCH_MAX; n++) {
		lookup = TAILQ_FIRST(&auth->waiting);
		if (lookup == NULL)
			break;
		TAILQ_REMOVE(&auth->waiting, lookup, link);
		auth->nwaiting--;
		TAILQ_INSERT_TAIL(&auth->asked, lookup, link);
		if (batch != NULL)
			key_find(batch, lookup->hash);
	}
	if (batch == NULL)
		(void)err_set(&err, ERR_NOMEM, "key");
	if (batch == NULL || desk_submit_first(auth->ingest->desk, batch,
				 on_found, auth, &err) != 0)
		on_found(auth, NULL, &err);
}

static struct lookup *
find(const struct lookups *lookups, const struct lookup *wanted)
{
	struct lookup *lookup;

	TAILQ_FOREACH (lookup, lookups, link)
		if (lookup->pass == wanted->pass &&
		    lookup->roles == wanted->roles &&
		    memcmp(lookup->hash, wanted->hash, KEY_HASH) == 0)
			return lookup;
	return NULL;
}

static struct lookup *
add(struct auth *auth, const struct lookup *wanted)
{
	struct lookup *lookup = malloc(sizeof(*lookup));

	if (lookup == NULL)
		return NULL;
	*lookup = *wanted;
	TAILQ_INIT(&lookup->calls);
	TAILQ_INSERT_TAIL(&auth->waiting, lookup, link);
	auth->nwaiting++;
	return lookup;
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

bool
auth_is_offered(const struct request *request)
{
	size_t len;

	return bearer(request, &len) != NULL;
}

static bool
is_remembered(const struct slot *slot, const unsigned char *hash)
{
	return slot->until > clock_now() &&
	       memcmp(slot->hash, hash, KEY_HASH) == 0;
}

/* Look the key up, together with whoever else waits for the same. */
static void
look_up(struct auth *auth, struct call *call, const struct lookup *wanted,
    bool is_fresh, bool is_stranger)
{
	struct lookup *lookup = find(&auth->waiting, wanted);

	/* What is asked already may be answered from before this call came. */
	if (lookup == NULL && !is_fresh)
		lookup = find(&auth->asked, wanted);
	if (lookup == NULL && (!is_stranger || auth->nwaiting < WAITING_MAX))
		lookup = add(auth, wanted);
	if (lookup == NULL) {
		problem_reply(call, 503, "too many keys wait to be looked up");
		return;
	}
	TAILQ_INSERT_TAIL(&lookup->calls, call, link);
	if (TAILQ_EMPTY(&auth->asked))
		ask(auth);
}

void
auth_check(struct call *call, unsigned roles, bool is_fresh, auth_pass_fn *pass)
{
	struct auth *auth = call->ingest->auth;
	struct lookup wanted = { .roles = roles, .pass = pass };
	const struct slot *slot;
	const char *key;
	size_t len;
	struct err err;
	bool is_stranger;

	key = bearer(call->request, &len);
	assert(key != NULL);
	if (key_hash(wanted.hash, key, len, &err) != 0) {
		problem_reply_err(call, &err);
		return;
	}
	slot = slot_of(auth, wanted.hash);
	is_stranger = !is_remembered(slot, wanted.hash);
	if (is_fresh || is_stranger)
		look_up(auth, call, &wanted, is_fresh, is_stranger);
	else
		admit(call, &slot->key, roles, pass);
}
