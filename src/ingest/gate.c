#include <string.h>
#include <strings.h>

#include "accept.h"
#include "auth.h"
#include "base/buf.h"
#include "call.h"
#include "core/envelope.h"
#include "gate.h"
#include "http/server.h"
#include "ingest.h"
#include "problem.h"
#include "route.h"

enum { BODY_MAX = ENVELOPE_TEXT_MAX };

/* No route takes this path with this method: does one with another? */
static void
refuse_route(struct call *call)
{
	struct buf allow = { 0 };

	if (routes_allow(&allow, request_path(call->request))) {
		request_add_header(call->request, "Allow", buf_text(&allow));
		problem_reply(call, 405, "use %s", buf_text(&allow));
	} else {
		problem_reply(call, 404,
		    "there is nothing at this address: see /openapi.json");
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

/* A call with its route; NULL if memory is short. */
static struct call *
open_call(struct ingest *ingest, struct request *request)
{
	struct call *call = call_new(ingest, request);

	if (call != NULL)
		routes_find(call);
	return call;
}

/* Why a request cannot be served, as far as its head tells. */
enum fault {
	NO_FAULT,
	NO_ROUTE,
	NO_KEY,
	HAS_QUERY,
	WRONG_TYPE,
	IS_CODED,
	NOT_ACCEPTED,
};

static const char *
type_given(const struct route *route)
{
	return route->gives == NULL ? "application/json" : route->gives;
}

static bool
is_coded(const struct request *request)
{
	const char *coding = request_header(request, "Content-Encoding");

	return coding != NULL && strcasecmp(coding, "identity") != 0;
}

static enum fault
find_fault(const struct call *call)
{
	const struct request *request = call->request;
	const struct route *route = call->route;

	if (route == NULL)
		return NO_ROUTE;
	if (route->roles != 0 && !auth_is_offered(request))
		return NO_KEY;
	if (!route->has_query && request_query(request)[0] != '\0')
		return HAS_QUERY;
	if (route->type != NULL && !has_type(request, route->type))
		return WRONG_TYPE;
	if (route->type != NULL && is_coded(request))
		return IS_CODED;
	if (strcmp(type_given(route), ROUTE_ANY_TYPE) != 0 &&
	    !accept_takes(request, type_given(route)))
		return NOT_ACCEPTED;
	return NO_FAULT;
}

static void
refuse(struct call *call, enum fault fault)
{
	switch (fault) {
	case NO_FAULT:
	case NO_ROUTE:
		refuse_route(call);
		break;
	case NO_KEY:
		problem_reply(
		    call, 401, "send the header `Authorization: Bearer KEY`");
		break;
	case HAS_QUERY:
		problem_reply(
		    call, 400, "this address takes no query: leave it out");
		break;
	case WRONG_TYPE:
		problem_reply(call, 415, "send it as %s", call->route->type);
		break;
	case IS_CODED:
		problem_reply(call, 415, "send it without content coding");
		break;
	case NOT_ACCEPTED:
		problem_reply(call, 406, "the answer is %s: accept that",
		    type_given(call->route));
		break;
	}
}

size_t
gate_check(void *arg, struct request *request)
{
	/* Most pass: it is cheap to see that. */
	struct call seen = { .ingest = arg, .request = request }, *call;
	enum fault fault;

	routes_find(&seen);
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

/* What nobody reads would be a wish that nobody heeds.  Some clients send an
 * empty object with every POST. */
static bool
has_vain_body(const struct call *call)
{
	size_t len;
	const char *body = request_body(call->request, &len);

	return call->route->type == NULL && len > 0 &&
	       !(len == 2 && memcmp(body, "{}", 2) == 0);
}

static void
pass(struct call *call)
{
	call->route->handle(call);
}

void
gate_handle(void *arg, struct request *request)
{
	struct call *call = open_call(arg, request);

	if (call == NULL)
		request_reply(request, 503, NULL, NULL, 0);
	else if (has_vain_body(call))
		problem_reply(
		    call, 400, "this address takes no body: leave it out");
	else if (call->route->roles == 0)
		pass(call);
	else
		auth_check(
		    call, call->route->roles, call->route->is_fresh, pass);
}

void
gate_refuse(void *arg, struct request *request, int status, const char *detail)
{
	struct call *call = open_call(arg, request);

	if (call == NULL)
		request_reply(request, status, NULL, NULL, 0);
	else
		problem_reply(call, status, "%s", detail);
}
