/* What is remembered of where events went, and what is guessed by it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../src/store/outbox_memory.h"
#include "../../src/store/targets.h"
#include "base/err.h"
#include "store/outbox.h"

enum { TENANT = 1, OTHER = 2, MANY = 5000, MOST = 64 };

static const struct target two[] = {
	{ .subscription_id = 7, .is_ordered = true, .takes_events = true },
	{ .subscription_id = 9, .takes_events = true },
};

static int
set_up(void **state)
{
	struct err err;

	return outbox_memory_new((struct outbox_memory **)state, &err);
}

static int
tear_down(void **state)
{
	outbox_memory_free(*state);
	return 0;
}

static void
assert_known(const struct outbox_memory *memory, int64_t tenant,
    const char *type, size_t wanted)
{
	size_t n = 0;

	assert_non_null(outbox_memory_find(memory, tenant, type, &n));
	assert_int_equal(n, wanted);
}

static void
assert_unknown(
    const struct outbox_memory *memory, int64_t tenant, const char *type)
{
	size_t n;

	assert_null(outbox_memory_find(memory, tenant, type, &n));
}

static void
test_the_last_answer_is_remembered(void **state)
{
	struct outbox_memory *memory = *state;
	const struct target *found;
	size_t n;

	assert_unknown(memory, TENANT, "t");
	outbox_memory_keep(memory, TENANT, "t", two, 2);
	found = outbox_memory_find(memory, TENANT, "t", &n);
	assert_int_equal(2, n);
	assert_int_equal(found[0].subscription_id, 7);
	assert_true(found[0].is_ordered);
	assert_int_equal(found[1].subscription_id, 9);
	assert_false(found[1].is_ordered);
	assert_unknown(memory, OTHER, "t");
	assert_unknown(memory, TENANT, "t.x");
	outbox_memory_keep(memory, TENANT, "t", NULL, 0);
	assert_known(memory, TENANT, "t", 0);
}

static void
test_what_is_not_simple_is_forgotten(void **state)
{
	struct outbox_memory *memory = *state;
	struct target many[MOST + 1] = { { .subscription_id = 1 } };
	struct target filtered = { .subscription_id = 7, .filter_weight = 1 };

	outbox_memory_keep(memory, TENANT, "t", many, MOST);
	assert_known(memory, TENANT, "t", MOST);
	outbox_memory_keep(memory, TENANT, "t", many, MOST + 1);
	assert_unknown(memory, TENANT, "t");
	outbox_memory_keep(memory, TENANT, "t", two, 2);
	outbox_memory_keep(memory, TENANT, "t", &filtered, 1);
	assert_unknown(memory, TENANT, "t");
}

static void
test_types_that_share_a_place_are_not_confused(void **state)
{
	struct outbox_memory *memory = *state;
	struct target one = { 0 };
	size_t n, known = 0;
	char type[16];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(type, sizeof(type), "t%d", i);
		one.subscription_id = i;
		outbox_memory_keep(memory, TENANT, type, &one, 1);
		assert_known(memory, TENANT, type, 1);
	}
	for (int i = 0; i < MANY; i++) {
		const struct target *found;

		(void)snprintf(type, sizeof(type), "t%d", i);
		found = outbox_memory_find(memory, TENANT, type, &n);
		if (found == NULL)
			continue;
		assert_int_equal(found->subscription_id, i);
		known++;
	}
	assert_in_range(known, 1, MANY - 1);
}

/* Guess about events of these types; a type with a + names a subscription. */
static bool
guess(struct outbox_memory *memory, const char *const *types, size_t n,
    struct outbox_event *list)
{
	static const int64_t named[] = { 7 };
	struct outbox_event *events[4];
	struct outbox *outbox;
	struct err err;
	bool is_known;

	for (size_t i = 0; i < n; i++) {
		list[i] = (struct outbox_event){ .key_id = 5,
			.tenant_id = TENANT,
			.id = types[i],
			.type = types[i],
			.named = named,
			.nnamed = types[i][0] == '+',
			.fingerprint = (const unsigned char *)"",
			.body = "{}",
			.len = 2 };
		events[i] = &list[i];
	}
	assert_int_equal(0, outbox_open(&outbox, events, n, &err));
	is_known = outbox_guess(outbox, memory, SIZE_MAX);
	if (is_known)
		assert_int_equal(n, outbox_count(outbox));
	outbox_close(outbox);
	return is_known;
}

static void
test_all_has_to_be_known(void **state)
{
	static const char *const known[] = { "b", "a", "c" };
	static const char *const strange[] = { "b", "x", "a" };
	static const char *const naming[] = { "b", "+a", "a" };
	struct outbox_memory *memory = *state;
	struct outbox_event list[3];

	outbox_memory_keep(memory, TENANT, "a", two, 1);
	outbox_memory_keep(memory, TENANT, "b", two, 2);
	outbox_memory_keep(memory, TENANT, "c", NULL, 0);
	assert_true(guess(memory, known, 3, list));
	assert_int_equal(list[0].fan_out, 2);
	assert_int_equal(list[1].fan_out, 1);
	assert_int_equal(list[2].fan_out, 0);
	assert_false(guess(memory, strange, 3, list));
	assert_false(guess(memory, naming, 3, list));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_last_answer_is_remembered),
		TEST(test_what_is_not_simple_is_forgotten),
		TEST(test_types_that_share_a_place_are_not_confused),
		TEST(test_all_has_to_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
