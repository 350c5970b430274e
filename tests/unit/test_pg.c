/* Batches: what comes back, and what is kept of one that fails. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pg_world.h"

static void
test_values_come_back_as_they_went(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;
	size_t len;

	pg_call(batch, ECHO);
	pg_bool(batch, true);
	pg_int(batch, INT32_MIN);
	pg_bigint(batch, INT64_MIN + 1);
	pg_text(batch, "p\xc3\xbcmp");
	pg_bytes(batch, "a\0b", 3);
	pg_bytes(batch, "0123456789abcdef", 16);
	pg_call(batch, ECHO);
	for (int i = 0; i < 6; i++)
		pg_null(batch);
	if (pg_run(w->pg, batch, &rows, &err) != 0)
		fail_msg("%s", err.text);

	assert_true(pg_get_bool(rows[0], 0, pg_column(rows[0], "flag")));
	assert_true(pg_get_int(rows[0], 0, 1) == INT32_MIN);
	assert_true(pg_get_bigint(rows[0], 0, 2) == INT64_MIN + 1);
	assert_string_equal(pg_get_text(rows[0], 0, 3), "p\xc3\xbcmp");
	assert_memory_equal(pg_get_bytes(rows[0], 0, 4, &len), "a\0b", 3);
	assert_int_equal(len, 3);
	assert_memory_equal(
	    pg_get_bytes(rows[0], 0, 5, &len), "0123456789abcdef", 16);
	assert_int_equal(len, 16);

	for (int i = 0; i < 6; i++)
		assert_true(pg_is_null(rows[1], 0, i));
	assert_false(pg_get_bool(rows[1], 0, 0));
	assert_int_equal(pg_get_int(rows[1], 0, 1), 0);
	assert_string_equal(pg_get_text(rows[1], 0, 3), "");
	assert_null(pg_get_bytes(rows[1], 0, 4, &len));
	assert_int_equal(len, 0);
	assert_null(rows[2]);
	pg_rows_free(rows);
}

static void
test_the_server_reads_our_arrays(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;

	pg_call(batch, SPLIT);
	pg_array(batch, PG_BIGINT);
	pg_bigint(batch, 40);
	pg_null(batch);
	pg_bigint(batch, 2);
	pg_array_end(batch);
	pg_call(batch, SPLIT);
	pg_array(batch, PG_BIGINT);
	pg_array_end(batch);
	if (pg_run(w->pg, batch, &rows, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(pg_get_bigint(rows[0], 0, 0), 42);
	assert_int_equal(pg_get_bigint(rows[0], 0, 1), 3);
	assert_int_equal(pg_get_bigint(rows[1], 0, 1), 0);
	pg_rows_free(rows);
}

static void
test_writes_are_counted_and_kept(void **state)
{
	struct world *w = connected(state);
	struct pg_rows **rows;
	struct err err;

	assert_int_equal(0, pg_run(w->pg, add(0, 1), &rows, &err));
	assert_int_equal(pg_affected(rows[0]), 1);
	assert_int_equal(pg_count(rows[0]), 0);
	pg_rows_free(rows);
	assert_int_equal(things(w), 1);
}

static void
test_both_sides_may_have_much_to_say(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;
	enum { SIZE = 64 << 10, CALLS = 100 };
	char *bytes = calloc(1, SIZE);
	size_t len;

	for (int i = 0; i < CALLS; i++) {
		pg_call(batch, BYTES);
		memcpy(bytes, &i, sizeof(i));
		pg_bytes(batch, bytes, SIZE);
	}
	if (pg_run(w->pg, batch, &rows, &err) != 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < CALLS; i++) {
		memcpy(bytes, &i, sizeof(i));
		assert_memory_equal(
		    pg_get_bytes(rows[i], 0, 0, &len), bytes, SIZE);
	}
	pg_rows_free(rows);
	free(bytes);
}

/* Nothing comes back before all has been sent. */
static void
test_one_side_may_have_much_to_say(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;
	enum { SIZE = 8 << 20 };
	char *bytes = calloc(1, SIZE);

	pg_call(batch, MEASURE);
	pg_bytes(batch, bytes, SIZE);
	free(bytes);
	if (pg_run(w->pg, batch, &rows, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(pg_get_int(rows[0], 0, 0), SIZE);
	pg_rows_free(rows);
}

static void
test_a_failing_statement_keeps_nothing_of_its_batch(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();

	call(batch, ADD, 4711);
	call(batch, ADD, 4711);
	call(batch, ADD, 5);
	settle(w, batch);
	assert_true(w->failed);
	assert_int_equal(w->err.code, ERR_REFUSED);
	assert_string_equal(w->err.sqlstate, "23505");
	assert_non_null(strstr(w->err.text, "add: "));
	assert_null(strstr(w->err.text, "4711"));
	assert_true(pg_is_ready(w->pg));
	assert_int_equal(things(w), 0);

	settle(w, add(0, 1));
	assert_false(w->failed);
	assert_int_equal(w->downs, 0);
}

static void
test_what_a_commit_checks_fails_the_batch(void **state)
{
	struct world *w = connected(state);

	for (int commits = 0; commits <= 1; commits++) {
		struct pg_batch *batch = pg_batch_new();

		call(batch, ADD_LATER, 1);
		call(batch, ADD_LATER, 1);
		if (commits) {
			pg_commit(batch);
			pg_call(batch, LIST);
		}
		settle(w, batch);
		assert_true(w->failed);
		assert_int_equal(w->err.code, ERR_REFUSED);
		assert_non_null(strstr(w->err.text, "commit: "));
		assert_true(pg_is_ready(w->pg));
		settle(w, add(0, commits));
		assert_false(w->failed);
	}
	assert_int_equal(w->downs, 0);
}

static void
test_a_call_after_the_commit_sees_it_and_holds_nothing(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;

	call(batch, ADD, 1);
	pg_commit(batch);
	pg_call(batch, COUNT);
	assert_int_equal(0, pg_run(w->pg, batch, &rows, &err));
	assert_int_equal(pg_get_bigint(rows[1], 0, 0), 1);
	pg_rows_free(rows);

	batch = pg_batch_new();
	call(batch, ADD, 2);
	pg_commit(batch);
	call(batch, NAP, 1000);
	submit(w, batch);
	while (things(w) < 2)
		(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	assert_int_equal(w->dones, 0);
	until_more(w, &w->dones, 0, "the batch ends");
	assert_false(w->failed);
}

static void
test_nothing_is_kept_of_what_fails_before_the_commit(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();

	call(batch, ADD, 1);
	call(batch, ADD, 1);
	pg_commit(batch);
	pg_call(batch, LIST);
	settle(w, batch);
	assert_true(w->failed);
	assert_int_equal(w->err.code, ERR_REFUSED);
	assert_string_equal(w->err.sqlstate, "23505");
	assert_int_equal(things(w), 0);
}

static void
test_a_failure_after_the_commit_leaves_what_was_committed(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();

	call(batch, ADD, 1);
	pg_commit(batch);
	pg_call(batch, PARSE);
	pg_text(batch, "one");
	settle(w, batch);
	assert_true(w->failed);
	assert_int_equal(w->err.code, ERR_UNKNOWN);
	assert_string_equal(w->err.sqlstate, "22P02");
	assert_true(pg_is_ready(w->pg));
	assert_int_equal(things(w), 1);
}

static void
test_an_error_does_not_repeat_the_data(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();

	pg_call(batch, PARSE);
	pg_text(batch, "hunter2");
	settle(w, batch);
	assert_string_equal(w->err.sqlstate, "22P02");
	assert_int_equal(w->err.code, ERR_REFUSED);
	assert_non_null(strstr(w->err.text, "parse: invalid input"));
	assert_null(strstr(w->err.text, "hunter2"));
}

static void
test_parameters_that_do_not_fit_are_a_broken_installation(void **state)
{
	static const struct {
		enum statement statement;
		bool is_wide;
		const char *sqlstate;
	} rows[] = {
		{ ADD, true, "22P03" }, /* too long */
		{ SPLIT, true, "08P01" }, /* no array */
		{ COUNT, false, "08P01" }, /* too many */
		{ ECHO, false, "08P01" }, /* too few */
	};
	struct world *w = connected(state);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pg_batch *batch = pg_batch_new();

		pg_call(batch, (int)rows[i].statement);
		if (rows[i].is_wide)
			pg_bigint(batch, INT64_C(0x0100000001));
		else
			pg_int(batch, 1);
		settle(w, batch);
		if (w->err.code != ERR_BROKEN ||
		    strcmp(w->err.sqlstate, rows[i].sqlstate) != 0)
			fail_msg(
			    "row %zu: %d %s", i, (int)w->err.code, w->err.text);
		assert_true(pg_is_ready(w->pg));
	}
	assert_int_equal(w->downs, 0);
}

static void
test_one_batch_at_a_time(void **state)
{
	struct world *w = connected(state);
	struct err err;

	submit(w, add(0, 1));
	assert_false(pg_is_ready(w->pg));
	assert_int_equal(-1, pg_submit(w->pg, add(0, 2), on_done, w, &err));
	assert_int_equal(err.code, ERR_RETRY);
	until_more(w, &w->dones, 0, "the first ends");
	assert_false(w->failed);
	assert_int_equal(things(w), 1);
}

static void
test_want_of_memory_comes_out_of_submit(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	pg_call(batch, BYTES);
	pg_bytes(batch, "", ((size_t)1 << 30) + 1);
	assert_int_equal(-1, pg_submit(w->pg, batch, on_done, w, &err));
	assert_int_equal(err.code, ERR_NOMEM);
	assert_true(pg_is_ready(w->pg));
}

static void
test_a_slow_statement_is_an_answer_not_a_lost_connection(void **state)
{
	struct world *w = world(state);

	w->conf.statement_timeout = 300 * USEC_PER_MS;
	connect_world(w);
	settle(w, add(2000, 1));
	assert_int_equal(w->err.code, ERR_RETRY);
	assert_string_equal(w->err.sqlstate, "57014");
	assert_int_equal(w->downs, 0);
	assert_int_equal(things(w), 0);
}

/* Add things until a commit waits for standbys: not the server we ask but its
 * checkpointer turns that on.  Returns how many. */
static int
commit_without_standbys(struct world *w, int pid)
{
	int n = 0;

	while (!waits_for(w, pid, "SyncRep")) {
		if (pg_is_ready(w->pg))
			submit(w, add(0, ++n));
		(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	}
	return n;
}

static void
test_a_commit_the_standbys_have_not_seen_is_unknown(void **state)
{
	struct world *w = connected(state);
	int n, pid = backend(w);
	char sql[128];

	admin_ask(w, "SELECT rolsuper FROM pg_roles WHERE rolname = user", sql);
	if (strcmp(sql, "t") != 0)
		skip();
	admin_run(w, "SET synchronous_commit = local");
	admin_run(w, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	admin_run(w, "SELECT pg_reload_conf()");
	n = commit_without_standbys(w, pid);
	(void)snprintf(sql, sizeof(sql), "SELECT pg_cancel_backend(%d)", pid);
	admin_run(w, sql);
	until_more(w, &w->dones, n - 1, "the last batch ends");
	admin_run(w, "ALTER SYSTEM RESET synchronous_standby_names");
	admin_run(w, "SELECT pg_reload_conf()");

	assert_true(w->failed);
	assert_int_equal(w->err.code, ERR_UNKNOWN);
	assert_int_equal(things(w), n);
	assert_int_equal(w->downs, 0);
}

static void
test_settings_are_ours(void **state)
{
	static const char *const expected[][2] = {
		{ "client_encoding", "UTF8" },
		{ "TimeZone", "UTC" },
		{ "statement_timeout", "4500ms" },
		{ "enable_seqscan", "off" },
		{ "plan_cache_mode", "force_generic_plan" },
		{ "application_name", "test_pg" },
		{ "role", "pg_monitor" },
	};
	struct world *w = world(state);
	char conninfo[400];

	(void)snprintf(conninfo, sizeof(conninfo), "%s client_encoding=LATIN1",
	    w->conninfo);
	w->conf.conninfo = conninfo;
	w->conf.role = "pg_monitor";
	w->conf.statements = statements + SHOW;
	connect_world(w);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct pg_batch *batch = pg_batch_new();
		struct pg_rows **rows;
		struct err err;

		pg_call(batch, 0);
		pg_text(batch, expected[i][0]);
		assert_int_equal(0, pg_run(w->pg, batch, &rows, &err));
		assert_string_equal(pg_get_text(rows[0], 0, 0), expected[i][1]);
		pg_rows_free(rows);
	}
	pg_close(w->pg);
	w->pg = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_values_come_back_as_they_went),
		WORLD_TEST(test_the_server_reads_our_arrays),
		WORLD_TEST(test_writes_are_counted_and_kept),
		WORLD_TEST(test_both_sides_may_have_much_to_say),
		WORLD_TEST(test_one_side_may_have_much_to_say),
		WORLD_TEST(test_a_failing_statement_keeps_nothing_of_its_batch),
		WORLD_TEST(test_what_a_commit_checks_fails_the_batch),
		WORLD_TEST(
		    test_a_call_after_the_commit_sees_it_and_holds_nothing),
		WORLD_TEST(
		    test_nothing_is_kept_of_what_fails_before_the_commit),
		WORLD_TEST(
		    test_a_failure_after_the_commit_leaves_what_was_committed),
		WORLD_TEST(test_an_error_does_not_repeat_the_data),
		WORLD_TEST(
		    test_parameters_that_do_not_fit_are_a_broken_installation),
		WORLD_TEST(test_one_batch_at_a_time),
		WORLD_TEST(test_want_of_memory_comes_out_of_submit),
		WORLD_TEST(
		    test_a_slow_statement_is_an_answer_not_a_lost_connection),
		WORLD_TEST(test_a_commit_the_standbys_have_not_seen_is_unknown),
		WORLD_TEST(test_settings_are_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
