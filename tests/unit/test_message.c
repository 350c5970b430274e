#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/sign.h"
#include "dispatch/message.h"
#include "store/endpoint.h"
#include "store/lane.h"

/* The published vector of Standard Webhooks. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define AT 1614265330
#define BODY "{\"test\": 2432232314}"
#define SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

/* The same, signed with a key pair. */
#define KEY                                                                    \
	"whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0d" \
	"RqSKJp4AJ6p9lMicMFs6Kvg=="
#define KEY_SIGNATURE                                                          \
	"v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZ" \
	"dpXwVLPo3mNl8EM+m7TBAg=="

static const struct lane_lease lease = {
	.delivery_id = 17001,
	.attempt = 3,
	.event_id = ID,
	.body = BODY,
	.len = sizeof(BODY) - 1,
};

static void
add_secret(struct endpoint *endpoint, const char *text, usec_t valid_until)
{
	struct endpoint_secret *out = &endpoint->secrets[endpoint->nsecrets++];
	struct err err;

	assert_int_equal(
	    0, sign_secret_parse(&out->secret, text, strlen(text), &err));
	out->valid_until = valid_until;
}

static void
add_key(struct endpoint *endpoint, const char *text, usec_t valid_until)
{
	struct endpoint_key *out = &endpoint->keys[endpoint->nkeys++];
	struct err err;

	assert_int_equal(
	    0, sign_key_parse(&out->key, text, strlen(text), &err));
	out->valid_until = valid_until;
}

static void
add_header(struct endpoint *endpoint, const char *line)
{
	buf_add(&endpoint->headers, line, strlen(line) + 1);
	endpoint->nheaders++;
}

static void
forget_secrets(struct endpoint *endpoint)
{
	for (size_t i = 0; i < endpoint->nsecrets; i++)
		sign_secret_fini(&endpoint->secrets[i].secret);
}

/* The value of the header called `name`, or NULL. */
static const char *
header(const struct message *message, const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; message->headers[i] != NULL; i++)
		if (strncmp(message->headers[i], name, len) == 0 &&
		    strncmp(message->headers[i] + len, ": ", 2) == 0)
			return message->headers[i] + len + 2;
	return NULL;
}

static void
write_message(struct message *out, struct endpoint *endpoint)
{
	assert_int_equal(
	    0, message_write(out, endpoint, &lease, AT * USEC_PER_SEC, 1000));
}

static void
test_a_request_is_signed_as_the_standard_has_it(void **state)
{
	struct endpoint endpoint = { 0 };
	struct message message;

	(void)state;
	add_secret(&endpoint, SECRET, INT64_MAX);
	write_message(&message, &endpoint);
	assert_string_equal(header(&message, "webhook-id"), ID);
	assert_string_equal(
	    header(&message, "webhook-timestamp"), "1614265330");
	assert_string_equal(header(&message, "webhook-signature"), SIGNATURE);
	assert_string_equal(header(&message, "postrider-position"), "17001");
	assert_string_equal(header(&message, "postrider-attempt"), "3");
	assert_string_equal(
	    header(&message, "Content-Type"), "application/json");
	assert_memory_equal(header(&message, "User-Agent"), "postrider/", 10);
	assert_null(header(&message, "X-Event-ID"));
	message_fini(&message);
	forget_secrets(&endpoint);
}

static void
test_an_old_secret_signs_beside_the_new_one_until_it_expires(void **state)
{
	struct endpoint endpoint = { 0 };
	struct message message;
	const char *signatures;

	(void)state;
	add_secret(
	    &endpoint, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", INT64_MAX);
	add_secret(&endpoint, SECRET, 1001);
	write_message(&message, &endpoint);
	signatures = header(&message, "webhook-signature");
	assert_int_equal(strlen(signatures), 2 * strlen(SIGNATURE) + 1);
	assert_string_equal(signatures + strlen(SIGNATURE) + 1, SIGNATURE);
	message_fini(&message);

	endpoint.secrets[1].valid_until = 1000;
	write_message(&message, &endpoint);
	signatures = header(&message, "webhook-signature");
	assert_int_equal(strlen(signatures), strlen(SIGNATURE));
	assert_string_not_equal(signatures, SIGNATURE);
	message_fini(&message);
	forget_secrets(&endpoint);
}

static void
test_the_older_scheme_is_added_where_it_is_asked_for(void **state)
{
	struct endpoint endpoint = { .older_signature = true };
	struct message message;

	(void)state;
	add_secret(&endpoint, SECRET, INT64_MAX);
	write_message(&message, &endpoint);
	assert_string_equal(header(&message, "X-Event-ID"), ID);
	assert_string_equal(
	    header(&message, "X-Webhook-Timestamp"), "1614265330");
	assert_int_equal(
	    strlen(header(&message, "X-Webhook-Signature")), 3 + 64);
	assert_string_equal(header(&message, "webhook-signature"), SIGNATURE);
	message_fini(&message);
	forget_secrets(&endpoint);
}

static void
test_key_pairs_sign_behind_secrets(void **state)
{
	struct endpoint endpoint = { 0 };
	struct message message;

	(void)state;
	add_secret(&endpoint, SECRET, INT64_MAX);
	add_key(&endpoint, KEY, INT64_MAX);
	write_message(&message, &endpoint);
	assert_string_equal(
	    header(&message, "webhook-signature"), SIGNATURE " " KEY_SIGNATURE);
	message_fini(&message);
	forget_secrets(&endpoint);
}

static void
test_a_rotation_has_all_signatures_in_one_header_newest_first(void **state)
{
	struct endpoint endpoint = { 0 };
	struct message message;
	struct sign_key *new;
	const char *signatures;
	struct err err;

	(void)state;
	add_secret(
	    &endpoint, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", INT64_MAX);
	add_secret(&endpoint, SECRET, 1001);
	add_key(&endpoint, KEY, INT64_MAX);
	add_key(&endpoint, KEY, 1001);
	new = &endpoint.keys[0].key;
	assert_int_equal(0, sign_key_new(new, &err));
	write_message(&message, &endpoint);
	signatures = header(&message, "webhook-signature");
	assert_memory_equal(signatures, "v1,", 3);
	signatures = strchr(signatures, ' ') + 1;
	assert_memory_equal(
	    signatures, SIGNATURE " v1a,", sizeof(SIGNATURE " v1a,") - 1);
	signatures = strchr(signatures, ' ') + 1;
	assert_memory_not_equal(
	    signatures, KEY_SIGNATURE, sizeof(KEY_SIGNATURE) - 1);
	assert_string_equal(strchr(signatures, ' ') + 1, KEY_SIGNATURE);
	message_fini(&message);

	endpoint.secrets[1].valid_until = 1000;
	endpoint.keys[1].valid_until = 1000;
	write_message(&message, &endpoint);
	assert_int_equal(strlen(header(&message, "webhook-signature")),
	    sizeof(SIGNATURE " " KEY_SIGNATURE) - 1);
	message_fini(&message);
	forget_secrets(&endpoint);
}

static void
test_a_key_pair_alone_is_not_enough(void **state)
{
	struct endpoint endpoint = { 0 };
	struct message message;

	(void)state;
	add_key(&endpoint, KEY, INT64_MAX);
	assert_int_equal(-1, message_write(&message, &endpoint, &lease,
				 AT * USEC_PER_SEC, 1000));
	message_fini(&message);
}

static void
test_headers_of_its_own_come_last(void **state)
{
	struct endpoint endpoint = { .older_signature = true };
	struct message message;
	int n = 0;

	(void)state;
	add_secret(&endpoint, SECRET, INT64_MAX);
	for (int i = 1; i < HEADER_COUNT_MAX; i++)
		add_header(&endpoint, "x-tenant: 7");
	add_header(&endpoint, "authorization: Bearer abc");
	write_message(&message, &endpoint);
	while (message.headers[n] != NULL)
		n++;
	assert_string_equal(
	    message.headers[n - 1], "authorization: Bearer abc");
	assert_string_equal(message.headers[n - 2], "x-tenant: 7");
	assert_string_equal(
	    message.headers[n - HEADER_COUNT_MAX], "x-tenant: 7");
	assert_memory_equal(message.headers[n - HEADER_COUNT_MAX - 1],
	    "X-Webhook-Signature: v1=", 24);
	message_fini(&message);
	buf_fini(&endpoint.headers);
	forget_secrets(&endpoint);
}

static void
test_nothing_is_sent_without_a_signature(void **state)
{
	struct endpoint none = { 0 }, expired = { 0 };
	struct message message;

	(void)state;
	assert_int_equal(-1,
	    message_write(&message, &none, &lease, AT * USEC_PER_SEC, 1000));
	message_fini(&message);

	add_secret(&expired, SECRET, 1000);
	assert_int_equal(-1,
	    message_write(&message, &expired, &lease, AT * USEC_PER_SEC, 1000));
	message_fini(&message);
	forget_secrets(&expired);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_a_request_is_signed_as_the_standard_has_it),
		cmocka_unit_test(
		    test_an_old_secret_signs_beside_the_new_one_until_it_expires),
		cmocka_unit_test(
		    test_the_older_scheme_is_added_where_it_is_asked_for),
		cmocka_unit_test(test_key_pairs_sign_behind_secrets),
		cmocka_unit_test(
		    test_a_rotation_has_all_signatures_in_one_header_newest_first),
		cmocka_unit_test(test_a_key_pair_alone_is_not_enough),
		cmocka_unit_test(test_headers_of_its_own_come_last),
		cmocka_unit_test(test_nothing_is_sent_without_a_signature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
