#include <string.h>

#include "base/buf.h"
#include "base/embed.h"
#include "call.h"
#include "console.h"
#include "file.h"
#include "http/server.h"
#include "problem.h"

extern const struct embedded console_table[];

/* What goes with each file.  Scripts and styles are files of ours and nothing
 * else; text can become neither, which a browser that knows Trusted Types
 * enforces. */
static const struct {
	const char *name, *value;
} headers[] = {
	{ "Content-Security-Policy",
	    "default-src 'none'; script-src 'self'; style-src 'self'; "
	    "img-src 'self'; connect-src 'self'; base-uri 'none'; "
	    "form-action 'none'; frame-ancestors 'none'; "
	    "require-trusted-types-for 'script'; trusted-types 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Permissions-Policy",
	    "camera=(), geolocation=(), microphone=(), payment=(), usb=()" },
};

static const struct {
	const char *ending, *type;
} types[] = {
	{ ".html", "text/html; charset=utf-8" },
	{ ".css", "text/css; charset=utf-8" },
	{ ".js", "text/javascript; charset=utf-8" },
	{ ".svg", "image/svg+xml" },
};

static const char *
find_type(const char *name)
{
	const char *ending = strrchr(name, '.');

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (ending != NULL && strcmp(ending, types[i].ending) == 0)
			return types[i].type;
	return "application/octet-stream";
}

static const struct embedded *
find_file(const char *name)
{
	for (const struct embedded *e = console_table; e->name != NULL; e++)
		if (strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

static void
reply(struct call *call, const char *name)
{
	const struct embedded *file = find_file(name);

	if (file == NULL) {
		problem_reply(call, 404, "the console has no such file");
		return;
	}
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		request_add_header(
		    call->request, headers[i].name, headers[i].value);
	file_answer(call, file, find_type(name), "no-cache");
}

void
console_file(struct call *call)
{
	reply(call, call->id);
}

void
console_page(struct call *call)
{
	reply(call, "index.html");
}

/* Relative, so that it holds behind a proxy that puts a folder before it. */
void
console_redirect(struct call *call)
{
	struct buf nothing = { 0 };

	request_add_header(call->request, "Location", "console/");
	call_answer(call, 308, NULL, &nothing);
}
