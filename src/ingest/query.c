#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/rfc3339.h"
#include "core/utf8.h"
#include "pg/pg.h"
#include "query.h"

static struct query_item *
find(struct query_item *items, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(items[i].name) == len &&
		    memcmp(items[i].name, name, len) == 0)
			return &items[i];
	return NULL;
}

static int
refuse_name(const struct query_item *items, size_t n, struct err *err)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < n; i++) {
		buf_puts(&names, i == 0 ? "" : i + 1 < n ? ", " : " and ");
		buf_puts(&names, items[i].name);
	}
	(void)err_set(err, ERR_REFUSED,
	    "the query may have %s, each once, and nothing else",
	    buf_text(&names));
	buf_fini(&names);
	return -1;
}

static bool
may_hold(const struct query_item *item, int c)
{
	if (c == 0x7f)
		return false;
	return item->is_text ? c >= ' ' : c > ' ' && c <= '~';
}

/* A "+" is itself: it stands in times. */
static int
take_value(
    struct query_item *item, const char *text, size_t len, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n <= QUERY_VALUE_MAX; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			c = call_escaped(&text[i]);
			i += 2;
		}
		if (!may_hold(item, c))
			return err_set(err, ERR_REFUSED,
			    "%s: there can be no such value", item->name);
		item->value[n++] = (char)c;
	}
	if (n > QUERY_VALUE_MAX)
		return err_set(err, ERR_REFUSED, "%s: too long", item->name);
	if (!utf8_is_valid(item->value, n))
		return err_set(err, ERR_REFUSED, "%s: want UTF-8", item->name);
	item->value[n] = '\0';
	item->is_given = true;
	return 0;
}

static int
take_pair(struct query_item *items, size_t n, const char *pair, size_t len,
    struct err *err)
{
	const char *equals = memchr(pair, '=', len);
	size_t name = equals == NULL ? len : (size_t)(equals - pair);
	struct query_item *item = find(items, n, pair, name);

	if (item == NULL || item->is_given)
		return refuse_name(items, n, err);
	if (equals == NULL)
		return err_set(
		    err, ERR_REFUSED, "%s: a value is missing", item->name);
	return take_value(item, equals + 1, len - name - 1, err);
}

int
query_read(
    struct query_item *items, size_t n, const char *query, struct err *err)
{
	while (*query != '\0') {
		size_t len = strcspn(query, "&");

		if (take_pair(items, n, query, len, err) != 0)
			return -1;
		query += len + (query[len] == '&');
	}
	return 0;
}

int
query_number(const struct query_item *item, int64_t min, int64_t max,
    int64_t *out, struct err *err)
{
	int64_t number;

	if (!item->is_given)
		return 0;
	number = call_number(item->value, strlen(item->value));
	if (number < min || number > max)
		return err_set(err, ERR_REFUSED,
		    "%s: want a number from %" PRId64 " to %" PRId64,
		    item->name, min, max);
	*out = number;
	return 0;
}

int
query_time(const struct query_item *item, usec_t *out, struct err *err)
{
	usec_t time;

	if (!item->is_given)
		return 0;
	time = rfc3339_parse(item->value, strlen(item->value));
	if (time < 0)
		return err_set(err, ERR_REFUSED,
		    "%s: want a time such as 2026-01-31T12:00:00Z", item->name);
	*out = time;
	return 0;
}

const char *
query_text(const struct query_item *item)
{
	return item->is_given ? item->value : NULL;
}

void
query_put_id(struct pg_batch *batch, int64_t id)
{
	if (id < 0)
		pg_null(batch);
	else
		pg_bigint(batch, id);
}
