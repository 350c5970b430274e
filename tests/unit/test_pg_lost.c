/* Connections: lost, late, refused, opened again. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "pg_world.h"

static void
test_a_silent_server_is_given_up_at_the_deadline(void **state)
{
	struct world *w = world(state);
	usec_t start;

	w->conf.statement_timeout = 300 * USEC_PER_MS;
	connect_world(w);
	w->proxy.is_frozen = true;
	start = clock_now();
	settle(w, add(0, 1));
	assert_int_equal(w->err.code, ERR_UNKNOWN);
	assert_in_range(
	    clock_now() - start, 250 * USEC_PER_MS, 5 * USEC_PER_SEC);
	until_more(w, &w->downs, 0, "it is down");
	assert_int_equal(w->down.code, ERR_RETRY);

	/* Silence while connecting, too. */
	until_more(w, &w->downs, 1, "it is down again");
	w->proxy.is_frozen = false;
	until_more(w, &w->readies, 1, "it is back");
	settle(w, add(0, 2));
	assert_false(w->failed);
}

static void
test_a_killed_backend_leaves_a_commit_unknown(void **state)
{
	struct world *w = connected(state);
	int pid = backend(w);

	submit(w, add(3000, 1));
	terminate(w, pid);
	until_more(w, &w->dones, 0, "the batch ends");
	assert_int_equal(w->err.code, ERR_UNKNOWN);
	assert_int_equal(things(w), 0);
}

static void
test_a_lost_answer_to_commit_is_unknown(void **state)
{
	struct world *w = connected(state);

	w->proxy.cut_answer = "INSERT";
	settle(w, add(0, 1));
	assert_int_equal(w->err.code, ERR_UNKNOWN);
	assert_int_equal(things(w), 1);
}

static void
test_a_loss_after_the_error_does_not_hide_it(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();
	int pid = backend(w);

	call(batch, ADD, 1);
	call(batch, ADD, 1);
	pg_commit(batch);
	call(batch, NAP, 3000);
	submit(w, batch);
	while (!waits_for(w, pid, "PgSleep"))
		(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	terminate(w, pid);
	until_more(w, &w->dones, 0, "the batch ends");
	assert_int_equal(w->err.code, ERR_REFUSED);
	assert_string_equal(w->err.sqlstate, "23505");
	until_more(w, &w->readies, 1, "it is back");
}

static void
test_an_idle_connection_that_is_lost_is_opened_again(void **state)
{
	struct world *w = connected(state);

	terminate(w, backend(w));
	until_more(w, &w->downs, 0, "it is down");
	assert_false(pg_is_ready(w->pg));
	until_more(w, &w->readies, 1, "it is back");
	assert_int_equal(w->dones, 0);
}

static void
test_a_server_that_is_away_is_tried_until_it_is_back(void **state)
{
	struct world *w = connected(state);
	struct err err;

	proxy_stop(&w->proxy);
	until_more(w, &w->downs, 4, "several tries fail");
	assert_int_equal(w->down.code, ERR_RETRY);
	assert_int_equal(-1, pg_submit(w->pg, add(0, 1), on_done, w, &err));
	assert_int_equal(err.code, ERR_RETRY);
	assert_int_equal(0, proxy_start(&w->proxy));
	until_more(w, &w->readies, 1, "it is back");
	settle(w, add(0, 1));
	assert_false(w->failed);
}

static void
test_a_server_that_is_away_at_first_is_tried_too(void **state)
{
	struct world *w = world(state);
	struct err err;

	proxy_stop(&w->proxy);
	assert_int_equal(
	    0, pg_open(&w->pg, w->loop, &w->conf, &events, w, &err));
	assert_int_equal(w->downs, 0);
	assert_int_equal(-1, pg_wait_ready(w->pg, 50 * USEC_PER_MS, &err));
	assert_int_equal(err.code, ERR_RETRY);
	assert_int_equal(0, proxy_start(&w->proxy));
	assert_int_equal(0, pg_wait_ready(w->pg, 20 * USEC_PER_SEC, &err));
}

static void
test_the_next_host_is_tried(void **state)
{
	struct world *w = world(state);
	char conninfo[400];

	(void)snprintf(conninfo, sizeof(conninfo),
	    "%s host=/nowhere,127.0.0.1,%s port=5432,1,5432", w->conninfo,
	    w->proxy.folder);
	w->conf.conninfo = conninfo;
	connect_world(w);
	assert_int_equal(w->downs, 0);
	pg_close(w->pg);
	w->pg = NULL;
}

static void
test_notifications_arrive_idle_and_beside_a_batch(void **state)
{
	struct world *w = connected(state);

	admin_run(w, "NOTIFY \"odd \"\"channel\"\"\"");
	until_more(w, &w->notes, 0, "a notification");
	submit(w, add(100, 1));
	admin_run(w, "NOTIFY \"odd \"\"channel\"\"\"");
	until_more(w, &w->dones, 0, "the batch ends");
	until_more(w, &w->notes, 1, "a notification");
	assert_false(w->has_text);

	terminate(w, backend(w));
	until_more(w, &w->readies, 1, "it is back");
	admin_run(w, "NOTIFY \"odd \"\"channel\"\"\", 'text'");
	until_more(w, &w->notes, 2, "a notification");
	assert_true(w->has_text);
}

/* The connection cannot be made for good; `text` is in what `down` is told. */
static void
expect_broken(struct world *w, const char *text)
{
	struct err err;

	assert_int_equal(
	    0, pg_open(&w->pg, w->loop, &w->conf, &events, w, &err));
	assert_int_equal(-1, pg_wait_ready(w->pg, 20 * USEC_PER_SEC, &err));
	if (err.code != ERR_BROKEN || strstr(err.text, text) == NULL)
		fail_msg(
		    "expected: %s; got: %d %s", text, (int)err.code, err.text);
	assert_int_equal(w->downs, 1);
	pg_close(w->pg);
	w->pg = NULL;
	w->downs = 0;
}

static void
test_a_wrong_installation_is_told_and_not_tried_again(void **state)
{
	struct world *w = world(state);
	char conninfo[400];

	w->conf.role = "no such role";
	expect_broken(w, "role: role \"no such role\" does not exist");
	w->conf.role = NULL;
	w->conf.conninfo = "host=x password='secret";
	expect_broken(w, "cannot be read");
	(void)snprintf(
	    conninfo, sizeof(conninfo), "%s dbname=nonesuch", w->conninfo);
	w->conf.conninfo = conninfo;
	expect_broken(w, "3D000: database \"nonesuch\" does not exist");
}

static void
test_an_installation_that_turns_wrong_is_tried_again(void **state)
{
	struct world *w = world(state);

	admin_run(w, "CREATE ROLE turning");
	w->conf.role = "turning";
	connect_world(w);
	admin_run(w, "ALTER ROLE turning RENAME TO turned");
	proxy_hang_up(&w->proxy);
	until_more(w, &w->downs, 2, "it is tried twice");
	assert_int_equal(w->down.code, ERR_BROKEN);
	assert_int_equal(w->readies, 1);
	admin_run(w, "ALTER ROLE turned RENAME TO turning");
	until_more(w, &w->readies, 1, "it is back");
	admin_run(w, "DROP ROLE turning");
}

static void
call_all(struct world *w, const int *called, size_t n)
{
	struct pg_batch *batch = pg_batch_new();

	for (size_t i = 0; i < n; i++)
		pg_call(batch, called[i]);
	settle(w, batch);
}

static void
test_a_statement_is_prepared_once_it_is_called_and_can_be(void **state)
{
	static const struct embedded some[] = {
		STATEMENT("good", "SELECT 1"),
		STATEMENT("bad_one", "SELECT * FROM thing_to_come"),
		{ NULL, NULL, 0 },
	};
	struct world *w = world(state);

	w->conf.statements = some;
	connect_world(w);
	for (int i = 0; i < 2; i++) {
		call_all(w, (int[]){ 0, 1, 0 }, 3);
		assert_int_equal(w->err.code, ERR_BROKEN);
		assert_non_null(strstr(w->err.text,
		    "bad_one: relation \"thing_to_come\" does not exist"));
	}
	/* The connection stays, and what was prepared on it. */
	admin_run(w, "CREATE TABLE thing_to_come (id bigint)");
	for (int i = 0; i < 2; i++) {
		call_all(w, (int[]){ 1, 0, 1 }, 3);
		assert_false(w->failed);
	}
	assert_int_equal(w->readies, 1);
	admin_run(w, "DROP TABLE thing_to_come");
}

static void
test_a_statement_whose_columns_changed_gets_a_new_connection(void **state)
{
	struct world *w = connected(state);
	struct pg_batch *batch = pg_batch_new();

	pg_call(batch, LIST);
	settle(w, batch);
	assert_false(w->failed);
	admin_run(w, "ALTER TABLE thing ADD COLUMN note text");
	batch = pg_batch_new();
	call(batch, ADD, 1);
	pg_call(batch, LIST);
	settle(w, batch);
	assert_int_equal(w->err.code, ERR_RETRY);
	assert_string_equal(w->err.sqlstate, "0A000");
	assert_int_equal(things(w), 0);

	until_more(w, &w->readies, 1, "it is back");
	batch = pg_batch_new();
	pg_call(batch, LIST);
	settle(w, batch);
	assert_false(w->failed);
}

static void
test_an_owner_may_close_in_any_callback(void **state)
{
	struct world *w = world(state);
	struct err err;

	for (int i = 0; i < 5; i++) {
		w->closes = i == 0;
		assert_int_equal(
		    0, pg_open(&w->pg, w->loop, &w->conf, &events, w, &err));
		until_more(w, &w->readies, i, "it is ready");
		w->closes = true;
		if (i == 1) { /* done, at an answer */
			submit(w, add(0, 1));
		} else if (i == 2) { /* done, at a loss: then no down */
			w->proxy.cut_answer = "INSERT";
			submit(w, add(0, 2));
		} else if (i == 3) {
			proxy_hang_up(&w->proxy);
		} else if (i == 4) {
			admin_run(w, "NOTIFY \"odd \"\"channel\"\"\"");
		}
		while (w->pg != NULL)
			(void)event_base_loop(w->loop, EVLOOP_ONCE);
	}
	assert_int_equal(w->dones, 2);
	assert_int_equal(w->downs, 1);
	assert_int_equal(w->notes, 1);
}

static void
test_closing_a_busy_connection_forgets_its_batch(void **state)
{
	struct world *w = connected(state);

	submit(w, add(1000, 1));
	pg_close(w->pg);
	w->pg = NULL;
	assert_int_equal(w->dones, 0);
	pg_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_a_silent_server_is_given_up_at_the_deadline),
		WORLD_TEST(test_a_killed_backend_leaves_a_commit_unknown),
		WORLD_TEST(test_a_lost_answer_to_commit_is_unknown),
		WORLD_TEST(test_a_loss_after_the_error_does_not_hide_it),
		WORLD_TEST(
		    test_an_idle_connection_that_is_lost_is_opened_again),
		WORLD_TEST(
		    test_a_server_that_is_away_is_tried_until_it_is_back),
		WORLD_TEST(test_a_server_that_is_away_at_first_is_tried_too),
		WORLD_TEST(test_the_next_host_is_tried),
		WORLD_TEST(test_notifications_arrive_idle_and_beside_a_batch),
		WORLD_TEST(
		    test_a_wrong_installation_is_told_and_not_tried_again),
		WORLD_TEST(
		    test_an_installation_that_turns_wrong_is_tried_again),
		WORLD_TEST(
		    test_a_statement_is_prepared_once_it_is_called_and_can_be),
		WORLD_TEST(
		    test_a_statement_whose_columns_changed_gets_a_new_connection),
		WORLD_TEST(test_an_owner_may_close_in_any_callback),
		WORLD_TEST(test_closing_a_busy_connection_forgets_its_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
