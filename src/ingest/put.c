#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "core/json.h"
#include "core/rfc3339.h"
#include "put.h"

void
put_name(struct buf *out, const char *name)
{
	bool is_first = out->len > 0 && out->data[out->len - 1] == '{';

	buf_puts(out, is_first ? "\"" : ",\"");
	buf_puts(out, name);
	buf_puts(out, "\":");
}

void
put_json(struct buf *out, const char *name, const char *json)
{
	put_name(out, name);
	buf_puts(out, json);
}

void
put_text(struct buf *out, const char *name, const char *text)
{
	put_name(out, name);
	if (text == NULL)
		buf_puts(out, "null");
	else
		json_quote(out, text, strlen(text));
}

void
put_bool(struct buf *out, const char *name, bool value)
{
	put_json(out, name, value ? "true" : "false");
}

void
put_number(struct buf *out, const char *name, int64_t value)
{
	put_name(out, name);
	buf_printf(out, "%" PRId64, value);
}

void
put_time(struct buf *out, const char *name, usec_t time)
{
	char text[RFC3339_SIZE];

	put_name(out, name);
	if (time < 0) {
		buf_puts(out, "null");
		return;
	}
	buf_puts(out, "\"");
	buf_add(out, text, rfc3339_print(text, time, 6));
	buf_puts(out, "\"");
}

void
put_id(struct buf *out, const char *name, int64_t id)
{
	put_name(out, name);
	if (id == 0)
		buf_puts(out, "null");
	else
		buf_printf(out, "\"%" PRId64 "\"", id);
}
