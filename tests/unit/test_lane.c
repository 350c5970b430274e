/* What is read of a claim: a body is its lease's own, or none. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <libpq-fe.h>

#include "../../src/pg/rows.h"
#include "store/lane.h"

enum { NUMBER, EVENT_ID, ACCEPTED, BODY, COLUMNS };

/* One body, as the database sends it. */
static int
set_up(void **state)
{
	static char number[8] = { 0, 0, 0, 0, 0, 0, 3, 1 }; /* 769 */
	static char accepted[8] = { 0, 0, 0, 0, 0, 0, 4, 2 }; /* 1026 */
	static char event_id[] = "e1", body[] = "{}";
	static char names[COLUMNS][16] = { "event_no", "event_id",
		"accepted_us", "body" };
	struct pg_rows *rows = calloc(1, sizeof(*rows));
	PGresAttDesc attributes[COLUMNS] = { 0 };

	if (rows == NULL)
		return -1;
	for (int i = 0; i < COLUMNS; i++)
		attributes[i] = (PGresAttDesc){
			.name = names[i], .format = 1, .typlen = -1
		};
	rows->result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	*state = rows;
	if (!PQsetResultAttrs(rows->result, COLUMNS, attributes) ||
	    !PQsetvalue(rows->result, 0, NUMBER, number, sizeof(number)) ||
	    !PQsetvalue(rows->result, 0, EVENT_ID, event_id, 2) ||
	    !PQsetvalue(
		rows->result, 0, ACCEPTED, accepted, sizeof(accepted)) ||
	    !PQsetvalue(rows->result, 0, BODY, body, 2))
		return -1;
	return 0;
}

static int
tear_down(void **state)
{
	struct pg_rows *rows = *state;

	PQclear(rows->result);
	free(rows);
	return 0;
}

static void
a_body_of_the_leases_event_is_lent(void **state)
{
	struct lane_lease lease = { .event_no = 769 };

	assert_true(lane_body_read(*state, 0, &lease));
	assert_string_equal("e1", lease.event_id);
	assert_int_equal(2, lease.len);
	assert_memory_equal("{}", lease.body, 2);
	assert_int_equal(1026, lease.accepted_at);
}

static void
a_body_of_another_event_is_not(void **state)
{
	struct lane_lease lease = { .event_no = 770 };

	assert_false(lane_body_read(*state, 0, &lease));
	assert_null(lease.body);
}

static void
neither_is_one_that_did_not_come(void **state)
{
	struct lane_lease lease = { .event_no = 769 };

	assert_false(lane_body_read(*state, 1, &lease));
	assert_null(lease.body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_body_of_the_leases_event_is_lent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    a_body_of_another_event_is_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    neither_is_one_that_did_not_come, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
