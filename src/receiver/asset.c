#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "asset.h"
#include "base/err.h"

enum { MAX_DEPTH = 128, ASSET_MAX = 256 };

/* The body is as deep as its sender let it be, which json-c's own limit of 32
 * is too little for.  NULL if it is no JSON. */
static struct json_object *
parse(const char *body, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
	struct json_object *json = NULL;

	if (tokener == NULL)
		return NULL;
	if (len <= INT32_MAX)
		json = json_tokener_parse_ex(tokener, body, (int)len);
	json_tokener_free(tokener);
	return json;
}

/* The code point at `*p`, which is moved on; 0 if it is not well formed. */
static uint32_t
next_point(const unsigned char **p, const unsigned char *end)
{
	static const uint32_t least[] = { 1, 0x80, 0x800, 0x10000 };
	unsigned char c = *(*p)++;
	int more = (c >= 0xc2) + (c >= 0xe0) + (c >= 0xf0);
	uint32_t point;

	if (c < 0x80)
		return c;
	if (more == 0 || c > 0xf4 || end - *p < more)
		return 0;
	point = c & (0x3fu >> more);
	for (int i = 0; i < more; i++) {
		c = *(*p)++;
		if ((c & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (c & 0x3f);
	}
	if (point < least[more] || point > 0x10ffff || point >> 11 == 0x1b)
		return 0;
	return point;
}

/* PostgreSQL takes no other text, and one row that it refuses would fail its
 * neighbours. */
static bool
is_plain(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	uint32_t point;

	while (p < end) {
		point = next_point(&p, end);
		if (point < 0x20 || point == 0x7f)
			return false;
	}
	return len > 0 && len <= ASSET_MAX;
}

static int
take(char **out, struct json_object *value, struct err *err)
{
	const char *text;

	if (value == NULL)
		return 0;
	text = json_object_get_string(value);
	if (!json_object_is_type(value, json_type_string) || text == NULL ||
	    !is_plain(text, (size_t)json_object_get_string_len(value)))
		return err_set(err, ERR_REFUSED, "the asset is no plain text");
	*out = strdup(text);
	return *out == NULL ? err_set(err, ERR_NOMEM, "asset") : 0;
}

int
asset_read(char **out, const void *body, size_t len, struct err *err)
{
	struct json_object *json = parse(body, len), *value = NULL;
	int result = 0;

	*out = NULL;
	if (!json_object_is_type(json, json_type_object))
		result = err_set(err, ERR_REFUSED, "the body is no event");
	else if (json_object_object_get_ex(json, "asset", &value))
		result = take(out, value, err);
	(void)json_object_put(json);
	return result;
}
