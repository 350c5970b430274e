/*
 * endpoints: the endpoints in use, by subscription, at their newest version.
 *
 * A lease names the version of its subscription.  An endpoint that is older is
 * never used, so a rotated secret or a new URL counts from the next attempt.
 * One that lacks a key is used for a few seconds only, and then asked for again.
 */

#ifndef DISPATCH_ENDPOINTS_H
#define DISPATCH_ENDPOINTS_H

#include <stdint.h>

#include "store/endpoint.h"

struct endpoints;
struct err;

/* An endpoint shared by attempts; it lives as long as any holds it. */
struct endpoint_ref {
	struct endpoint *endpoint;
	int users;
	usec_t known_at; /* on clock_now() */
	/* The recorder's: attempts that wait to be recorded at length, and until
	 * when, on clock_now(), the others are, too. */
	int nintricate;
	usec_t intricate_until;
	struct endpoint_ref *next;
};

int endpoints_new(struct endpoints **out, struct err *err);
void endpoints_free(struct endpoints *endpoints);

/* Hold the endpoint of `subscription_id`, if it is known at `version` or
 * newer and still good; else NULL.  Give it back with endpoints_release(). */
struct endpoint_ref *endpoints_hold(
    struct endpoints *endpoints, int64_t subscription_id, int64_t version);
void endpoints_release(struct endpoint_ref *ref);

/* Take over `endpoint`, in place of an older one.  Frees it on failure. */
int endpoints_put(
    struct endpoints *endpoints, struct endpoint *endpoint, struct err *err);

#endif
