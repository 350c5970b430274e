#include <string.h>

#include "base/buf.h"
#include "call.h"
#include "core/json.h"
#include "etag.h"
#include "store/subscription.h"
#include "subscription_json.h"

static void
put_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\"%s\":", name);
	json_quote(out, text, strlen(text));
}

static void
put_numbers(struct buf *out, const struct subscription *s)
{
	buf_printf(out,
	    ",\"older_signature\":%s,\"max_attempts\":%d,"
	    "\"max_in_flight\":%d,\"retry_base_ms\":%d,\"retry_cap_ms\":%d,"
	    "\"timeout_ms\":%d,\"rate_per_second\":%s,\"circuit_after\":%d",
	    s->older_signature ? "true" : "false", s->max_attempts,
	    s->max_in_flight, s->retry_base_ms, s->retry_cap_ms, s->timeout_ms,
	    s->rate_per_second[0] == '\0' ? "null" : s->rate_per_second,
	    s->circuit_after);
}

void
subscription_json_put(struct buf *out, const struct subscription *s)
{
	buf_puts(out, "\"id\":");
	call_put_id(out, s->id);
	put_text(out, "url", s->url);
	buf_puts(out, ",\"event_types\":");
	buf_puts(out, s->event_types);
	put_text(out, "state", s->state);
	if (s->state_reason[0] == '\0')
		buf_puts(out, ",\"state_reason\":null");
	else
		put_text(out, "state_reason", s->state_reason);
	put_text(out, "ordering", s->ordering);
	put_text(out, "on_dead", s->on_dead);
	put_numbers(out, s);
	buf_puts(out, ",\"created_at\":");
	call_put_time(out, s->created_at);
	buf_puts(out, ",\"updated_at\":");
	call_put_time(out, s->updated_at);
}

void
subscription_json_reply(struct call *call, const struct subscription *s)
{
	struct buf body = { 0 };

	buf_puts(&body, "{");
	subscription_json_put(&body, s);
	buf_puts(&body, "}");
	etag_add(call->request, s->version);
	call_json(call, 200, &body);
}
