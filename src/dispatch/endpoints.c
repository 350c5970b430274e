#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "dispatch/endpoints.h"

enum {
	NBUCKETS = 4096,
	MAX_KNOWN = 16384, /* secrets of idle subscriptions are let go */
};

/* Long enough for all that were claimed at once. */
#define KEYLESS_AGE (2 * USEC_PER_SEC)

struct endpoints {
	struct endpoint_ref *buckets[NBUCKETS];
	int known;
};

int
endpoints_new(struct endpoints **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? err_set(err, ERR_NOMEM, "endpoints") : 0;
}

static struct endpoint_ref **
find(struct endpoints *endpoints, int64_t subscription_id)
{
	struct endpoint_ref **at =
	    &endpoints->buckets[(uint64_t)subscription_id % NBUCKETS];

	while (
	    *at != NULL && (*at)->endpoint->subscription_id != subscription_id)
		at = &(*at)->next;
	return at;
}

/* The table itself is one of the users. */
static void
forget(struct endpoints *endpoints, struct endpoint_ref **at)
{
	struct endpoint_ref *ref = *at;

	*at = ref->next;
	endpoints->known--;
	endpoints_release(ref);
}

static void
forget_all(struct endpoints *endpoints)
{
	for (int i = 0; i < NBUCKETS; i++)
		while (endpoints->buckets[i] != NULL)
			forget(endpoints, &endpoints->buckets[i]);
}

void
endpoints_free(struct endpoints *endpoints)
{
	if (endpoints == NULL)
		return;
	forget_all(endpoints);
	free(endpoints);
}

/* What lacks a key may have been sealed anew, under the same version. */
static bool
is_stale(const struct endpoint_ref *ref)
{
	return ref->endpoint->missing_key[0] != '\0' &&
	       clock_now() - ref->known_at > KEYLESS_AGE;
}

struct endpoint_ref *
endpoints_hold(
    struct endpoints *endpoints, int64_t subscription_id, int64_t version)
{
	struct endpoint_ref *ref = *find(endpoints, subscription_id);

	if (ref == NULL || ref->endpoint->version < version || is_stale(ref))
		return NULL;
	ref->users++;
	return ref;
}

void
endpoints_release(struct endpoint_ref *ref)
{
	assert(ref->users > 0);
	if (--ref->users > 0)
		return;
	endpoint_free(ref->endpoint);
	free(ref);
}

int
endpoints_put(
    struct endpoints *endpoints, struct endpoint *endpoint, struct err *err)
{
	struct endpoint_ref *ref = calloc(1, sizeof(*ref));
	struct endpoint_ref **at;

	if (ref == NULL) {
		endpoint_free(endpoint);
		return err_set(err, ERR_NOMEM, "endpoint");
	}
	if (endpoints->known >= MAX_KNOWN)
		forget_all(endpoints);
	at = find(endpoints, endpoint->subscription_id);
	if (*at != NULL)
		forget(endpoints, at);
	*ref = (struct endpoint_ref){
		.endpoint = endpoint,
		.users = 1,
		.known_at = clock_now(),
		.next = *at,
	};
	*at = ref;
	endpoints->known++;
	return 0;
}
