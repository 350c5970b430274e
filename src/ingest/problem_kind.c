#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "call.h"
#include "http/server.h"
#include "problem.h"
#include "problem_kind.h"

static const struct problem_kind kinds[] = {
	{ 400, "malformed", "The request cannot be read",
	    "It is not framed as HTTP/1.1, its body is not the JSON that is "
	    "asked for, it has a member or a query that is not known, or a "
	    "header that says nothing that can be. Nothing was done. `detail` "
	    "says what is wrong: mend it, and send it again." },
	{ 401, "unauthorized", "A valid key is needed",
	    "No key came with it, or one that is unknown, revoked or expired. "
	    "Nothing was done. Send the header `Authorization: Bearer KEY`." },
	{ 403, "forbidden", "This key may not do this",
	    "The key is valid, and its role is not one that may do this. "
	    "Nothing was done. Use a key of a role that may." },
	{ 404, "not-found", "There is no such thing",
	    "There is nothing at this address, or what it names does not "
	    "exist, "
	    "was deleted, or is another tenant's: these look alike. Look up "
	    "the "
	    "id in a list." },
	{ 405, "method-not-allowed", "This method does not fit here",
	    "There is something at this address, for other methods. Use one of "
	    "the header `Allow`." },
	{ 406, "not-acceptable", "The client does not take what it would get",
	    "The header `Accept` excludes the one media type that this address "
	    "answers with. Nothing was done. Accept what `detail` names, or "
	    "leave the header out." },
	{ 408, "too-slow", "The request took too long",
	    "It was not whole in time. Nothing was done. Send it again." },
	{ 409, "conflict", "It conflicts with what there is",
	    "What is there already does not go with it: another event under "
	    "this id, another tenant of this name, a state in which this "
	    "cannot "
	    "be done. Nothing was done. `detail` says what to do first." },
	{ 411, "length-required", "The body's length is not given",
	    "A body came without Content-Length and without chunks. Nothing "
	    "was "
	    "done. Send Content-Length." },
	{ 412, "stale", "It is not what it was when it was read",
	    "If-Match names a version that is not the present one: somebody "
	    "else was quicker. Nothing was done. Read it again, see whether "
	    "your change still makes sense, and send it with the new ETag." },
	{ 413, "too-large", "The body is too large",
	    "A body has 65536 bytes at most; a batch of events has a limit of "
	    "its own, and 1000 events. Nothing was done. Send less at once." },
	{ 414, "uri-too-long", "The address is too long",
	    "The request line does not fit. No address here is that long." },
	{ 415, "media-type", "This media type is not taken",
	    "Content-Type is not the one that this address takes, or the body "
	    "has a Content-Encoding. Nothing was done. Send it as `detail` "
	    "says." },
	{ 417, "expectation", "This expectation cannot be met",
	    "Expect may say 100-continue, and nothing else." },
	{ 422, "invalid", "The content is not acceptable",
	    "It is JSON, and a member of it is missing or has a value that it "
	    "cannot have. Nothing was done. `pointer` is the JSON pointer of "
	    "the member, `detail` says what it must be." },
	{ 429, "too-many", "That is too many at once",
	    "This key asks more often than it may in a second, or what is "
	    "asked "
	    "for is under way already or was just now. Nothing was done. Wait "
	    "as "
	    "the header `Retry-After` says, and send it again." },
	{ 431, "header-too-large", "The headers are too large",
	    "There are too many headers, or they are too long. Send fewer." },
	{ 500, "internal", "It went wrong here",
	    "This is not the client's fault, and sending it again will hardly "
	    "help. Nothing was done. The operator's log says what it was." },
	{ 501, "not-implemented", "This is not implemented",
	    "The method, or the transfer coding, is none that is served "
	    "anywhere here." },
	{ 503, "unavailable", "Not now",
	    "The database is away, too much waits for it, memory is short, or "
	    "the server is stopping. Nothing was done. Send it again after the "
	    "seconds that `Retry-After` says, with growing waits." },
	{ 504, "outcome-unknown", "It is not known whether it was done",
	    "The database's answer was lost. Look whether it was done. An "
	    "event "
	    "can be posted again with the same id, which is safe: 202 or 200 "
	    "says that it is accepted." },
	{ 505, "http-version", "This version of HTTP is not spoken",
	    "Use HTTP/1.1." },
};

enum { NKINDS = sizeof(kinds) / sizeof(kinds[0]) };

const struct problem_kind *
problem_kind_of(int status)
{
	size_t i = 0;

	while (i < NKINDS && kinds[i].status != status)
		i++;
	return i < NKINDS ? &kinds[i] : problem_kind_of(500);
}

static const struct problem_kind *
find_named(const char *name)
{
	for (size_t i = 0; i < NKINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

void
problem_kind_get(struct call *call)
{
	const struct problem_kind *kind = find_named(call->id);
	struct buf body = { 0 };

	if (kind == NULL) {
		problem_reply(call, 404, "there is no such kind of problem");
		return;
	}
	buf_printf(&body, "%d %s: %s\n\n%s\n", kind->status, kind->name,
	    kind->title, kind->advice);
	request_add_header(
	    call->request, "Cache-Control", "public, max-age=3600");
	call_answer(call, 200, "text/plain; charset=utf-8", &body);
}
