/* Scripts, against the database at POSTRIDER_TEST_PG. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "pg/script.h"

static int
open_script(void **state)
{
	const char *conninfo = getenv("POSTRIDER_TEST_PG");
	struct script *script;
	struct err err;

	*state = NULL;
	if (conninfo == NULL)
		return 0;
	if (script_open(&script, conninfo, "test_pg_script", &err) != 0)
		fail_msg("%s", err.text);
	*state = script;
	return 0;
}

static int
close_script(void **state)
{
	script_close(*state);
	return 0;
}

static struct script *
opened(void **state)
{
	if (*state == NULL) {
		print_message("POSTRIDER_TEST_PG is not set\n");
		skip();
	}
	return *state;
}

/* Append "a|b;" for a row of two. */
static void
add_row(void *arg, const char *const *columns)
{
	char *text = arg;
	size_t used = strlen(text);

	(void)snprintf(text + used, 128 - used, "%s|%s;",
	    columns[0] != NULL ? columns[0] : "null",
	    columns[1] != NULL ? columns[1] : "null");
}

static void
test_rows_come_as_text_with_nulls(void **state)
{
	struct script *script = opened(state);
	const char *const params[] = { "2", NULL };
	char text[128] = "";
	struct err err;

	assert_int_equal(
	    0, script_query(script,
		   "SELECT n, $2::text FROM generate_series(1, $1::int) AS n",
		   2, params, add_row, text, &err));
	assert_string_equal(text, "1|null;2|null;");
	assert_int_equal(
	    0, script_query(script, "SELECT 1", 0, NULL, NULL, NULL, &err));
}

static void
test_an_error_names_its_line_and_keeps_nothing(void **state)
{
	struct script *script = opened(state);
	char text[128] = "";
	struct err err;

	/* Characters of several bytes stand before the error. */
	assert_int_equal(-1, script_run(script,
				 "-- \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n"
				 "CREATE TABLE kept (id int);\n"
				 "SELECT\n"
				 "nowhere;\n"
				 "SELECT 1;\n",
				 &err));
	assert_int_equal(err.code, ERR_BROKEN);
	assert_string_equal(err.sqlstate, "42703");
	assert_string_equal(err.text,
	    "line 4: column \"nowhere\" does not exist (SQLSTATE 42703)");
	assert_int_equal(
	    0, script_query(script, "SELECT to_regclass('kept'), 'x'", 0, NULL,
		   add_row, text, &err));
	assert_string_equal(text, "null|x;");
}

static void
test_a_failure_ends_the_transaction_it_was_in(void **state)
{
	struct script *script = opened(state);
	struct err err;

	assert_int_equal(
	    0, script_run(script, "BEGIN; CREATE TABLE kept ()", &err));
	assert_int_equal(-1, script_run(script, "SELECT 1/0", &err));
	assert_int_equal(err.code, ERR_REFUSED);
	assert_non_null(strstr(err.text, "script: division by zero"));
	/* It would fail here if the old one were still open. */
	assert_int_equal(0,
	    script_run(script, "CREATE TABLE kept (); DROP TABLE kept", &err));
}

static void
test_a_wrong_name_is_broken_and_an_absent_server_is_not(void **state)
{
	char conninfo[400];
	struct script *script;
	struct err err;

	(void)opened(state);
	(void)snprintf(conninfo, sizeof(conninfo), "%.300s dbname=nonesuch",
	    getenv("POSTRIDER_TEST_PG"));
	assert_int_equal(-1, script_open(&script, conninfo, "test", &err));
	assert_int_equal(err.code, ERR_BROKEN);
	assert_string_equal(err.sqlstate, "3D000");
	assert_int_equal(
	    -1, script_open(&script, "host=/nowhere", "test", &err));
	assert_int_equal(err.code, ERR_RETRY);
	assert_int_equal(
	    -1, script_open(&script, "host=x password='hunter2", "t", &err));
	assert_int_equal(err.code, ERR_BROKEN);
	assert_null(strstr(err.text, "hunter2"));
}

#define SCRIPT_TEST(name)                                                      \
	cmocka_unit_test_setup_teardown(name, open_script, close_script)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SCRIPT_TEST(test_rows_come_as_text_with_nulls),
		SCRIPT_TEST(test_an_error_names_its_line_and_keeps_nothing),
		SCRIPT_TEST(test_a_failure_ends_the_transaction_it_was_in),
		SCRIPT_TEST(
		    test_a_wrong_name_is_broken_and_an_absent_server_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
