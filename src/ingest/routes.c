#include <assert.h>
#include <string.h>
#include <strings.h>

#include "auth.h"
#include "base/buf.h"
#include "call.h"
#include "events.h"
#include "http/server.h"
#include "ingest.h"
#include "metrics.h"
#include "problem.h"
#include "routes.h"
#include "subscriptions.h"

#define JSON "application/json"
#define NDJSON "application/x-ndjson"

#define TENANT_KEYS (1u << KEY_PUBLISHER | 1u << KEY_ADMIN)
#define ADMIN_KEYS (1u << KEY_ADMIN)

enum { BODY_MAX = 65536 };

struct route {
	const char *method;
	const char *path; /* {id} stands for one segment, and comes last */
	void (*handle)(struct call *call);
	const char *type; /* of the body that it takes; NULL for none */
	unsigned roles; /* who may; 0: everybody, without a key */
	bool is_fresh; /* the key is looked up each time */
	bool is_large; /* its body may be as large as the server takes */
};

#define ROUTE(m, p, h) .method = (m), .path = (p), .handle = (h)

static const struct route routes[] = {
	{ ROUTE("GET", "/healthz", metrics_healthz) },
	{ ROUTE("GET", "/metrics", metrics_get) },
	{ ROUTE("GET", "/readyz", metrics_readyz) },
	{ ROUTE("POST", "/v1/events", events_post), .type = JSON,
	    .roles = TENANT_KEYS },
	{ ROUTE("POST", "/v1/events/batch", events_post_batch), .type = NDJSON,
	    .roles = TENANT_KEYS, .is_large = true },
	{ ROUTE("GET", "/v1/events/{id}", events_get), .roles = TENANT_KEYS,
	    .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions", subscriptions_list),
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("POST", "/v1/subscriptions", subscriptions_post), .type = JSON,
	    .roles = ADMIN_KEYS, .is_fresh = true },
	{ ROUTE("GET", "/v1/subscriptions/{id}", subscriptions_get),
	    .roles = ADMIN_KEYS, .is_fresh = true },
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

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Take one segment, undoing %XX, which some clients make of ":".  An id of ours
 * has no character that an id may not have. */
static bool
take_id(char out[CALL_ID_MAX + 1], const char *text)
{
	size_t len = 0;

	for (; *text != '\0'; text++, len++) {
		char c = *text;

		if (c == '/' || len == CALL_ID_MAX)
			return false;
		if (c == '%') {
			int high = hex_digit(text[1]);
			int low = high < 0 ? -1 : hex_digit(text[2]);

			if (low < 0 || (high | low) == 0)
				return false;
			c = (char)(high << 4 | low);
			text += 2;
		}
		out[len] = c;
	}
	out[len] = '\0';
	return len > 0;
}

static bool
fits(const struct route *route, const char *path, char id[CALL_ID_MAX + 1])
{
	const char *brace = strchr(route->path, '{');
	size_t n;

	if (brace == NULL)
		return strcmp(route->path, path) == 0;
	n = (size_t)(brace - route->path);
	return strncmp(route->path, path, n) == 0 && take_id(id, path + n);
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
		if (!fits(&routes[i], path, call->id))
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

/* False if it was answered: what comes with the request does not suit. */
static bool
body_suits(struct call *call)
{
	const struct route *route = call->route;
	const char *coding = request_header(call->request, "Content-Encoding");
	size_t len;

	(void)request_body(call->request, &len);
	if (route->type == NULL)
		return true;
	if (!has_type(call->request, route->type))
		problem_reply(call, 415, "send it as %s", route->type);
	else if (coding != NULL && strcasecmp(coding, "identity") != 0)
		problem_reply(call, 415, "send it without content coding");
	else if (len > BODY_MAX && !route->is_large)
		problem_reply(call, 413, "the body is %zu bytes, of at most %d",
		    len, BODY_MAX);
	else
		return true;
	return false;
}

static void
pass(struct call *call)
{
	call->route->handle(call);
}

void
routes_handle(void *arg, struct request *request)
{
	const char *method = request_method(request);
	const char *path = request_path(request);
	struct call *call = call_new(arg, request);
	const struct route *route = routes;

	if (call == NULL) {
		request_reply(request, 503, NULL, NULL, 0);
		return;
	}
	while (route < routes + NROUTES &&
	       !(takes_method(route, method) && fits(route, path, call->id)))
		route++;
	if (route == routes + NROUTES) {
		refuse_route(call, path);
		return;
	}
	call->route = route;
	if (!body_suits(call))
		return;
	if (route->roles == 0)
		pass(call);
	else
		auth_check(call, route->roles, route->is_fresh, pass);
}

void
routes_refuse(
    void *arg, struct request *request, int status, const char *detail)
{
	struct call *call = call_new(arg, request);

	if (call == NULL)
		request_reply(request, status, NULL, NULL, 0);
	else
		problem_reply(call, status, "%s", detail);
}
