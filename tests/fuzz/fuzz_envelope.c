#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted makes a body whose data is the very bytes. */
static void
check_body(const struct envelope *event)
{
	struct json_slice whole, key, value;
	struct buf body = { 0 };
	struct err err;
	size_t pos = 0;

	envelope_body(&body, event, 0);
	assert(json_check(&whole, body.data, body.len, &err) == 0);
	while (json_next_member(&whole, &pos, &key, &value))
		continue;
	assert(json_is(&key, "data"));
	assert(value.len == event->data.len);
	assert(memcmp(value.at, event->data.at, value.len) == 0);
	buf_fini(&body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char pointer[ENVELOPE_POINTER_SIZE];
	struct envelope event;
	struct err err;

	if (envelope_parse(&event, (const char *)data, size, pointer, &err) !=
	    0) {
		assert(err.code == ERR_REFUSED);
		assert(strchr(err.text, '\n') == NULL);
		assert(strlen(pointer) < sizeof(pointer));
		return 0;
	}
	assert(event.type[0] != '\0');
	assert(event.nsubscriptions <= ENVELOPE_SUBSCRIPTIONS_MAX);
	for (size_t i = 0; i < event.nsubscriptions; i++)
		assert(event.subscriptions[i] >
		       (i > 0 ? event.subscriptions[i - 1] : 0));
	check_body(&event);
	return 0;
}
