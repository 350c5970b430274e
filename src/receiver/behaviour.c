#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "behaviour.h"
#include "query.h"

enum { MAX_FAILURES = 1000000, MAX_DELAY_MS = 3600 * 1000 };

struct visit {
	const char *rest; /* of the path, from the slash after its first word */
	const char *query;
	int nth;
};

static bool
answer(struct behaviour *out, int status)
{
	out->status = status;
	return true;
}

static bool
normal(struct behaviour *out, const struct visit *visit)
{
	(void)visit;
	return answer(out, 200);
}

static bool
response_loss(struct behaviour *out, const struct visit *visit)
{
	if (visit->nth > 1)
		return answer(out, 200);
	out->kind = BEHAVIOUR_HANG_UP;
	return true;
}

static bool
rejected(struct behaviour *out, const struct visit *visit)
{
	(void)visit;
	return answer(out, 422);
}

static bool
flaky(struct behaviour *out, const struct visit *visit)
{
	int64_t fail = 2;

	if (query_number(&fail, MAX_FAILURES, visit->query, "fail") < 0)
		return false;
	return answer(out, visit->nth <= fail ? 503 : 200);
}

static bool
slow(struct behaviour *out, const struct visit *visit)
{
	int64_t ms = 1000;

	if (query_number(&ms, MAX_DELAY_MS, visit->query, "ms") < 0)
		return false;
	out->delay = ms * USEC_PER_MS;
	return answer(out, 200);
}

static bool
never(struct behaviour *out, const struct visit *visit)
{
	(void)visit;
	out->kind = BEHAVIOUR_HOLD;
	return true;
}

static bool
endless(struct behaviour *out, const struct visit *visit)
{
	(void)visit;
	out->kind = BEHAVIOUR_STREAM;
	return answer(out, 200);
}

static bool
redirect(struct behaviour *out, const struct visit *visit)
{
	(void)visit;
	out->header = "Location";
	out->value = "/normal";
	return answer(out, 302);
}

static bool
throttle(struct behaviour *out, const struct visit *visit)
{
	if (visit->nth > 1)
		return answer(out, 200);
	out->header = "Retry-After";
	out->value = "1";
	return answer(out, 429);
}

static bool
gone(struct behaviour *out, const struct visit *visit)
{
	(void)visit;
	return answer(out, 410);
}

static bool
any_status(struct behaviour *out, const struct visit *visit)
{
	const char *number = visit->rest + (visit->rest[0] == '/');

	/* 1xx is no answer, and would be waited on for ever. */
	if (strspn(number, "0123456789") != 3 || number[0] < '2' ||
	    (number[3] != '\0' && number[3] != '/'))
		return false;
	return answer(out, (int)strtol(number, NULL, 10));
}

static const struct {
	const char *word;
	bool (*decide)(struct behaviour *out, const struct visit *visit);
} table[] = {
	{ "endless", endless },
	{ "flaky", flaky },
	{ "gone", gone },
	{ "never", never },
	{ "normal", normal },
	{ "redirect", redirect },
	{ "rejected", rejected },
	{ "response-loss", response_loss },
	{ "slow", slow },
	{ "status", any_status },
	{ "throttle", throttle },
};

static bool
decide(struct behaviour *out, const char *path, struct visit *visit)
{
	const char *word = path + (path[0] == '/');
	size_t len = strcspn(word, "/");

	visit->rest = word + len;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].word) == len &&
		    memcmp(table[i].word, word, len) == 0)
			return table[i].decide(out, visit);
	return false;
}

bool
behaviour_is_known(const char *path, const char *query)
{
	struct behaviour unused = { 0 };
	struct visit visit = { .query = query, .nth = 1 };

	return decide(&unused, path, &visit);
}

struct behaviour
behaviour_decide(const char *path, const char *query, int nth)
{
	struct behaviour out = { .kind = BEHAVIOUR_ANSWER };
	struct visit visit = { .query = query, .nth = nth };
	bool is_known = decide(&out, path, &visit);

	assert(is_known);
	out.takes_effect = out.kind == BEHAVIOUR_HANG_UP ||
	                   (out.status >= 200 && out.status <= 299);
	return out;
}
