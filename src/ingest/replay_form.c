#include <string.h>

#include "base/err.h"
#include "replay_form.h"

static int
take_since(void *into, const struct json_slice *value, struct err *err)
{
	struct replay_order *order = into;

	return form_time(&order->since, value, err);
}

static int
take_until(void *into, const struct json_slice *value, struct err *err)
{
	struct replay_order *order = into;

	return form_time(&order->until, value, err);
}

static int
take_rate(void *into, const struct json_slice *value, struct err *err)
{
	struct replay_order *order = into;

	return form_number(
	    &order->rate_per_second, 1, REPLAY_RATE_MAX, value, err);
}

static const struct form form = {
	.what = "a replay",
	.members = {
		{ "since", take_since, false },
		{ "until", take_until, false },
		{ "rate_per_second", take_rate, false },
	},
};

int
replay_form_read(struct replay_order *order, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err)
{
	order->since = order->until = -1;
	order->rate_per_second = 0;
	if (form_read(order, &form, text, len, pointer, err) != 0)
		return -1;
	if (strcmp(order->what, "events") == 0 && order->since < 0) {
		(void)err_set(err, ERR_REFUSED, "is required");
		return form_fail(pointer, "since", err);
	}
	if (order->until >= 0 && order->until <= order->since) {
		(void)err_set(err, ERR_REFUSED, "must be after since");
		return form_fail(pointer, "until", err);
	}
	return 0;
}
