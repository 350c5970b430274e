#include <assert.h>
#include <string.h>
#include <strings.h>

#include "audit.h"
#include "auth.h"
#include "base/buf.h"
#include "call.h"
#include "deliveries.h"
#include "events.h"
#include "http/server.h"
#include "ingest.h"
#include "keys.h"
#include "metrics.h"
#include "problem.h"
#include "replays.h"
#include "routes.h"
#include "subscription_changes.h"
#include "subscriptions.h"
#include "tenants.h"

#define JSON "application/json"
#define NDJSON "application/x-ndjson"

#define POST_KEYS (1u << KEY_PUBLISHER | 1u << KEY_ADMIN)
#define READ_KEYS (1u << KEY_VIEWER | 1u << KEY_ADMIN)
#define ADMIN_KEYS (1u << KEY_ADMIN)
#define OPERATOR_KEYS (1u << KEY_OPERATOR)

enum { BODY_MAX = 65536 };

struct route {
	const char *method;
	const char *path; /* {id}, twice at most, stands for one segment */
	void (*handle)(struct call *call);
	const char *type; /* of the body that it takes; NULL for none */
	unsigned roles; /* who may; 0: everybody, without a key */
	bool is_fresh; /* the key is looked up each time */
	bool is_large; /* its body may have max_batch_bytes */
};

#define ROUTE(m, p, h) .method = (m), .path = (p), .handle = (h)

static const struct route routes[] = {
	{ ROUTE("GET", "/healthz", metrics_healthz) },
	{ ROUTE("GET", "/metrics", metrics_get) },
	{ ROUTE("GET", "/readyz", metrics_readyz) },
	{ ROUTE("POST", "/v1/events", events_post), .type = JSON,
	    .roles = POST_KEYS },
	{ ROUTE("POST", "/v1/events/batch", events_post_batch), .type = NDJSON,
	    .roles = POST_KEYS, .is_large = true },
	{ ROUTE("GET", "/v1/events/{id}", events_get),
	    .roles = POST_KEYS | 1u << KEY_VIEWER, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions", subscriptions_list),
	    .roles = READ_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions", subscriptions_post), .type = JSON,
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions/{id}", subscriptions_get),
	    .roles = READ_KEYS, .is_fresh = true },
	{ ROUTE("PATCH", "/v1/subscriptions/{id}", subscription_changes_patch),
	    .type = JSON, .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE(
	      "DELETE", "/v1/subscriptions/{id}", subscription_changes_delete),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/pause",
	      subscription_changes_pause),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/resume",
	      subscription_changes_resume),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/disable",
	      subscription_changes_disable),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/enable",
	      subscription_changes_enable),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/rotate-secret",
	      subscription_changes_rotate_secret),
	    .type = JSON, .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/rotate-signing-key",
	      subscription_changes_rotate_key),
	    .type = JSON, .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE(
	      "GET", "/v1/subscriptions/{id}/deliveries/{id}", deliveries_get),
	    .roles = READ_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/deliveries/{id}/retry",
	      replays_retry),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/deliveries/{id}/discard",
	      replays_discard),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/retry-dead", replays_post_dead),
	    .type = JSON, .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions/{id}/replay", replays_post_events),
	    .type = JSON, .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions/{id}/replays", replays_list),
	    .roles = READ_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions/{id}/replays/{id}", replays_get),
	    .roles = READ_KEYS, .is_fresh = true },
	{ ROUTE(
	      "DELETE", "/v1/subscriptions/{id}/replays/{id}", replays_delete),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/audit", audit_get), .roles = OPERATOR_KEYS,
	    .is_fresh = true },
	{ ROUTE("GET", "/v1/keys", keys_list), .roles = OPERATOR_KEYS,
	    .is_fresh = true },
	{ ROUTE("POST", "/v1/keys", keys_post), .type = JSON,
	    .roles = OPERATOR_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/keys/{id}", keys_get), .roles = OPERATOR_KEYS,
	    .is_fresh = true },
	{ ROUTE("POST", "/v1/keys/{id}/revoke", keys_revoke),
	    .roles = OPERATOR_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/tenants", tenants_list), .roles = OPERATOR_KEYS,
	    .is_fresh = true },
	{ ROUTE("POST", "/v1/tenants", tenants_post), .type = JSON,
	    .roles = OPERATOR_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/tenants/{id}", tenants_get), .roles = OPERATOR_KEYS,
	    .is_fresh = true },
};

enum { NROUTES = sizeof(routes) / sizeof(routes[0]) };

static_assert((int)NROUTES < (int)METRICS_ROUTES, "each route is counted");

size_t
routes_index(const struct route *route)
{
	return route == NULL ? NROUTES : (size_t)(route - routes);
}

const char *
routes_method(size_t index)
{
	if (index < NROUTES)
		return routes[index].method;
	return index == NROUTES ? "" : NULL;
}

const char *
routes_path(size_t index)
{
	if (index < NROUTES)
		return routes[index].path;
	return index == NROUTES ? "" : NULL;
}

/* Take one segment, undoing %XX, which some clients make of ":".  An id of ours
 * has no character that an id may not have.  Returns where it ends; NULL if it
 * is none. */
static const char *
take_id(char out[CALL_ID_MAX + 1], const char *text)
{
	size_t len = 0;

	for (; *text != '\0' && *text != '/'; text++, len++) {
		char c = *text;

		if (len == CALL_ID_MAX)
			return NULL;
		if (c == '%') {
			int octet = call_escaped(text);

			if (octet <= 0)
				return NULL;
			c = (char)octet;
			text += 2;
		}
		out[len] = c;
	}
	out[len] = '\0';
	return len > 0 ? text : NULL;
}

/* True if it is the route's path; then the ids in it are in `call`. */
static bool
fits(const struct route *route, const char *path, struct call *call)
{
	const char *want = route->path;
	char *id = call->id;

	while (*want != '\0') {
		if (*want != '{') {
			if (*want++ != *path++)
				return false;
			continue;
		}
		path = take_id(id, path);
		if (path == NULL)
			return false;
		want += strlen("{id}");
		id = call->inner_id;
	}
	return *path == '\0';
}

static bool
takes_method(const struct route *route, const char *method)
{
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	return strcmp(route->method, method) == 0;
}

/* No route takes this path with this method: does one with another? */
static void
refuse_route(struct call *call, const char *path)
{
	struct buf allow = { 0 };

	for (size_t i = 0; i < NROUTES; i++) {
		if (!fits(&routes[i], path, call))
			continue;
		buf_puts(&allow, allow.len == 0 ? "" : ", ");
		buf_puts(&allow, routes[i].method);
		if (strcmp(routes[i].method, "GET") == 0)
			buf_puts(&allow, ", HEAD");
	}
	if (allow.len == 0) {
		problem_reply(call, 404, "there is nothing at this address");
	} else {
		request_add_header(call->request, "Allow", buf_text(&allow));
		problem_reply(call, 405, "use %s", buf_text(&allow));
	}
	buf_fini(&allow);
}

/* The media type alone; its parameters say nothing about JSON. */
static bool
has_type(const struct request *request, const char *type)
{
	const char *value = request_header(request, "Content-Type");
	size_t len = strlen(type);

	return value != NULL && strncasecmp(value, type, len) == 0 &&
	       strchr("; \t", value[len]) != NULL;
}

static void
find_route(struct call *call)
{
	const char *method = request_method(call->request);
	const char *path = request_path(call->request);

	for (size_t i = 0; i < NROUTES && call->route == NULL; i++)
		if (takes_method(&routes[i], method) &&
		    fits(&routes[i], path, call))
			call->route = &routes[i];
}

/* A call with its route; NULL if memory is short. */
static struct call *
open_call(struct ingest *ingest, struct request *request)
{
	struct call *call = call_new(ingest, request);

	if (call != NULL)
		find_route(call);
	return call;
}

/* Why a request cannot be served, as far as its head tells. */
enum fault { NO_FAULT, NO_ROUTE, NO_KEY, WRONG_TYPE, IS_CODED };

static enum fault
find_fault(const struct call *call)
{
	const struct route *route = call->route;
	const char *coding;

	if (route == NULL)
		return NO_ROUTE;
	if (route->roles != 0 && !auth_is_offered(call->request))
		return NO_KEY;
	if (route->type == NULL)
		return NO_FAULT;
	if (!has_type(call->request, route->type))
		return WRONG_TYPE;
	coding = request_header(call->request, "Content-Encoding");
	return coding == NULL || strcasecmp(coding, "identity") == 0 ? NO_FAULT
	                                                             : IS_CODED;
}

static void
refuse(struct call *call, enum fault fault)
{
	switch (fault) {
	case NO_FAULT:
	case NO_ROUTE:
		refuse_route(call, request_path(call->request));
		break;
	case NO_KEY:
		problem_reply(
		    call, 401, "send the header `Authorization: Bearer KEY`");
		break;
	case WRONG_TYPE:
		problem_reply(call, 415, "send it as %s", call->route->type);
		break;
	case IS_CODED:
		problem_reply(call, 415, "send it without content coding");
		break;
	}
}

size_t
routes_gate(void *arg, struct request *request)
{
	/* Most pass: it is cheap to see that. */
	struct call seen = { .ingest = arg, .request = request }, *call;
	enum fault fault;

	find_route(&seen);
	fault = find_fault(&seen);
	if (fault == NO_FAULT)
		return seen.route->is_large
		           ? (size_t)seen.ingest->conf->max_batch_bytes
		           : (size_t)BODY_MAX;
	call = open_call(arg, request);
	if (call == NULL)
		request_reply(request, 503, NULL, NULL, 0);
	else
		refuse(call, fault);
	return 0;
}

static void
pass(struct call *call)
{
	call->route->handle(call);
}

void
routes_handle(void *arg, struct request *request)
{
	struct call *call = open_call(arg, request);

	if (call == NULL)
		request_reply(request, 503, NULL, NULL, 0);
	else if (call->route->roles == 0)
		pass(call);
	else
		auth_check(
		    call, call->route->roles, call->route->is_fresh, pass);
}

void
routes_refuse(
    void *arg, struct request *request, int status, const char *detail)
{
	struct call *call = open_call(arg, request);

	if (call == NULL)
		request_reply(request, status, NULL, NULL, 0);
	else
		problem_reply(call, status, "%s", detail);
}
