#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/json.h"
#include "core/rfc3339.h"
#include "replay_form.h"

enum field { SINCE, UNTIL, RATE, NFIELDS };

static const char *const names[NFIELDS] = {
	[SINCE] = "since",
	[UNTIL] = "until",
	[RATE] = "rate_per_second",
};

/* Say in which field what `err` holds is. */
static int
fail_at(char *pointer, enum field field, struct err *err)
{
	(void)snprintf(pointer, REPLAY_POINTER_SIZE, "/%s", names[field]);
	return err_wrap(err, "%s", names[field]);
}

static int
take_time(usec_t *out, const struct json_slice *value, struct err *err)
{
	struct buf text = { 0 };

	*out = -1;
	if (value->kind == JSON_STRING) {
		json_unescape(&text, value);
		if (!text.failed && text.len > 0)
			*out = rfc3339_parse(text.data, text.len);
	}
	buf_fini(&text);
	if (*out >= 0)
		return 0;
	return err_set(err, ERR_REFUSED,
	    "must be a time such as \"2026-01-31T12:00:00Z\"");
}

static int
take_rate(int *out, const struct json_slice *value, struct err *err)
{
	char digits[6] = "";

	*out = 0;
	/* At most 5 digits: 1.0 and 1e3 are no whole numbers. */
	if (value->kind == JSON_NUMBER && value->len < sizeof(digits))
		memcpy(digits, value->at, value->len);
	if (digits[strspn(digits, "0123456789")] == '\0')
		*out = (int)strtol(digits, NULL, 10);
	if (*out >= 1 && *out <= REPLAY_RATE_MAX)
		return 0;
	return err_set(err, ERR_REFUSED, "must be a whole number from 1 to %d",
	    REPLAY_RATE_MAX);
}

static int
take_field(struct replay_order *order, enum field field,
    const struct json_slice *value, struct err *err)
{
	switch (field) {
	case SINCE:
		return take_time(&order->since, value, err);
	case UNTIL:
		return take_time(&order->until, value, err);
	case RATE:
		return take_rate(&order->rate_per_second, value, err);
	case NFIELDS:
		break;
	}
	return err_set(err, ERR_REFUSED,
	    "unknown member: a replay has since, until and rate_per_second");
}

static int
judge(const struct replay_order *order, char *pointer, struct err *err)
{
	if (strcmp(order->what, "events") == 0 && order->since < 0) {
		(void)err_set(err, ERR_REFUSED, "is required");
		return fail_at(pointer, SINCE, err);
	}
	if (order->until >= 0 && order->until <= order->since) {
		(void)err_set(err, ERR_REFUSED, "must be after since");
		return fail_at(pointer, UNTIL, err);
	}
	return 0;
}

int
replay_form_read(struct replay_order *order, const char *text, size_t len,
    char pointer[REPLAY_POINTER_SIZE], struct err *err)
{
	struct json_slice whole, key, value;
	bool seen[NFIELDS + 1] = { false };
	size_t pos = 0;

	order->since = order->until = -1;
	order->rate_per_second = 0;
	pointer[0] = '\0';
	if (json_check(&whole, text, len, err) != 0)
		return -1;
	if (whole.kind != JSON_OBJECT)
		return err_set(
		    err, ERR_REFUSED, "a replay must be a JSON object");
	while (json_next_member(&whole, &pos, &key, &value)) {
		enum field field = SINCE;

		while (field < NFIELDS && !json_is(&key, names[field]))
			field++;
		if (take_field(order, field, &value, err) != 0)
			return field == NFIELDS ? -1
			                        : fail_at(pointer, field, err);
		if (seen[field]) {
			(void)err_set(err, ERR_REFUSED, "must not be repeated");
			return fail_at(pointer, field, err);
		}
		seen[field] = true;
	}
	return judge(order, pointer, err);
}
