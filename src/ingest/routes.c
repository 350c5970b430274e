#include <assert.h>
#include <string.h>

#include "assets.h"
#include "audit.h"
#include "base/buf.h"
#include "call.h"
#include "console.h"
#include "dead_letters.h"
#include "deliveries.h"
#include "events.h"
#include "http/server.h"
#include "keys.h"
#include "metrics.h"
#include "openapi.h"
#include "problem_kind.h"
#include "replays.h"
#include "route.h"
#include "routes.h"
#include "state.h"
#include "subscription_changes.h"
#include "subscription_tests.h"
#include "subscriptions.h"
#include "tenants.h"

#define JSON "application/json"
#define NDJSON "application/x-ndjson"
#define TEXT "text/plain"

#define POST_KEYS (1u << KEY_PUBLISHER | 1u << KEY_ADMIN)
#define READ_KEYS (1u << KEY_VIEWER | 1u << KEY_ADMIN)
#define STATE_KEYS (READ_KEYS | 1u << KEY_OPERATOR)
#define ADMIN_KEYS (1u << KEY_ADMIN)
#define OPERATOR_KEYS (1u << KEY_OPERATOR)
#define ALL_KEYS (POST_KEYS | READ_KEYS | OPERATOR_KEYS)

#define ROUTE(m, p, h) .method = (m), .path = (p), .handle = (h)

static const struct route routes[] = {
	{ ROUTE("GET", "/console", console_redirect), .gives = ROUTE_ANY_TYPE },
	{ ROUTE("GET", "/console/", console_page), .gives = "text/html" },
	{ ROUTE("GET", "/console/{id}", console_file),
	    .gives = ROUTE_ANY_TYPE },
	{ ROUTE("GET", "/healthz", metrics_healthz) },
	{ ROUTE("GET", "/metrics", metrics_get), .gives = TEXT },
	{ ROUTE("GET", "/openapi.json", openapi_get) },
	{ ROUTE("GET", "/problems/{id}", problem_kind_get), .gives = TEXT },
	{ ROUTE("GET", "/readyz", metrics_readyz) },
	{ ROUTE("POST", "/v1/events", events_post), .type = JSON,
	    .roles = POST_KEYS },
	{ ROUTE("POST", "/v1/events/batch", events_post_batch), .type = NDJSON,
	    .roles = POST_KEYS, .is_large = true },
	{ ROUTE("GET", "/v1/events/{id}", events_get),
	    .roles = POST_KEYS | 1u << KEY_VIEWER, .is_fresh = true },
	{ ROUTE("GET", "/v1/events/{id}/payload", events_get_payload),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions", subscriptions_list),
	    .roles = READ_KEYS, .is_fresh = true, .has_query = true },
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
	{ ROUTE("POST", "/v1/subscriptions/{id}/test", subscription_tests_post),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions/{id}/deliveries", deliveries_list),
	    .roles = READ_KEYS, .is_fresh = true, .has_query = true },
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
	{ ROUTE("GET", "/v1/assets/{asset}", assets_get), .roles = READ_KEYS,
	    .is_fresh = true, .has_query = true },
	{ ROUTE("GET", "/v1/dead-letters", dead_letters_get),
	    .roles = READ_KEYS, .is_fresh = true, .has_query = true },
	{ ROUTE("GET", "/v1/state", state_get), .roles = STATE_KEYS,
	    .is_fresh = true, .has_query = true },
	{ ROUTE("GET", "/v1/state/history", state_get_history),
	    .roles = STATE_KEYS, .is_fresh = true, .has_query = true },
	{ ROUTE("GET", "/v1/audit", audit_get), .roles = OPERATOR_KEYS,
	    .is_fresh = true, .has_query = true },
	{ ROUTE("GET", "/v1/key", keys_get_own), .roles = ALL_KEYS,
	    .is_fresh = true },
	{ ROUTE("GET", "/v1/keys", keys_list), .roles = OPERATOR_KEYS,
	    .is_fresh = true, .has_query = true },
	{ ROUTE("POST", "/v1/keys", keys_post), .type = JSON,
	    .roles = OPERATOR_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/keys/{id}", keys_get), .roles = OPERATOR_KEYS,
	    .is_fresh = true },
	{ ROUTE("POST", "/v1/keys/{id}/revoke", keys_revoke),
	    .roles = OPERATOR_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/tenants", tenants_list), .roles = OPERATOR_KEYS,
	    .is_fresh = true, .has_query = true },
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

/* Take one segment of up to `max` octets, undoing %XX: clients make it of ":",
 * and of all that an asset may have, "/" among it.  No NUL: nothing has one.
 * Returns where it ends; NULL if it is none. */
static const char *
take_segment(char *out, size_t max, const char *text)
{
	size_t len = 0;

	for (; *text != '\0' && *text != '/'; text++, len++) {
		char c = *text;

		if (len == max)
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
	char *out = call->id;

	while (*want != '\0') {
		if (*want != '{') {
			if (*want++ != *path++)
				return false;
			continue;
		}
		path = take_segment(
		    out, want[1] == 'i' ? CALL_ID_MAX : CALL_NAME_MAX, path);
		if (path == NULL)
			return false;
		want = strchr(want, '}') + 1;
		out = call->inner_id;
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

bool
routes_allow(struct buf *out, const char *path)
{
	struct call unwanted;

	for (size_t i = 0; i < NROUTES; i++) {
		if (!fits(&routes[i], path, &unwanted))
			continue;
		buf_puts(out, out->len == 0 ? "" : ", ");
		buf_puts(out, routes[i].method);
		if (strcmp(routes[i].method, "GET") == 0)
			buf_puts(out, ", HEAD");
	}
	return out->len > 0;
}

void
routes_find(struct call *call)
{
	const char *method = request_method(call->request);
	const char *path = request_path(call->request);

	for (size_t i = 0; i < NROUTES && call->route == NULL; i++)
		if (takes_method(&routes[i], method) &&
		    fits(&routes[i], path, call))
			call->route = &routes[i];
}
