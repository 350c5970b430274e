#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

/* Standard error, caught in a pipe between catch_start() and catch_end(). */
struct caught {
	int saved, reader;
	char text[4096];
};

static void
catch_start(struct caught *caught)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	caught->saved = dup(STDERR_FILENO);
	assert_true(caught->saved >= 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(close(ends[1]), 0);
	caught->reader = ends[0];
}

static const char *
catch_end(struct caught *caught)
{
	ssize_t n =
	    read(caught->reader, caught->text, sizeof(caught->text) - 1);

	caught->text[n > 0 ? n : 0] = '\0';
	(void)dup2(caught->saved, STDERR_FILENO);
	(void)close(caught->saved);
	(void)close(caught->reader);
	return caught->text;
}

/* `line` without its time, which is checked for its shape. */
static const char *
after_time(const char *line)
{
	static const char shape[] = "ts=0000-00-00T00:00:00.000Z ";

	for (size_t i = 0; i < strlen(shape); i++) {
		if (shape[i] == '0')
			assert_in_range(line[i], '0', '9');
		else
			assert_int_equal(line[i], shape[i]);
	}
	return line + strlen(shape);
}

static void
test_a_line_has_time_level_program_message_and_pairs(void **state)
{
	struct caught caught;

	(void)state;
	log_open("ingest", LOG_LEVEL_INFO);
	catch_start(&caught);
	log_info("ready", "port", "8080", "absent", NULL, "host", "a b", NULL);
	assert_string_equal(after_time(catch_end(&caught)),
	    "level=info prog=ingest msg=\"ready\" port=\"8080\" "
	    "host=\"a b\"\n");
}

static void
test_a_stranger_cannot_forge_a_line(void **state)
{
	struct caught caught;

	(void)state;
	log_open("ingest", LOG_LEVEL_INFO);
	catch_start(&caught);
	log_warn("refused", "path", "/a\nts=1 level=\"\\\x7f\t\xc3\xa9", NULL);
	assert_string_equal(after_time(catch_end(&caught)),
	    "level=warn prog=ingest msg=\"refused\" "
	    "path=\"/a\\x0ats=1 level=\\\"\\\\\\x7f\\x09\xc3\xa9\"\n");
}

/* How many lines are written when each level logs once. */
static int
lines_shown(enum log_level level)
{
	struct caught caught;
	int lines = 0;

	log_open("p", level);
	catch_start(&caught);
	log_error("m", NULL);
	log_warn("m", NULL);
	log_info("m", NULL);
	log_debug("m", NULL);
	for (const char *p = catch_end(&caught); *p != '\0'; p++)
		lines += *p == '\n';
	return lines;
}

static void
test_the_level_decides_what_is_shown(void **state)
{
	(void)state;
	assert_int_equal(lines_shown(LOG_LEVEL_ERROR), 1);
	assert_int_equal(lines_shown(LOG_LEVEL_WARN), 2);
	assert_int_equal(lines_shown(LOG_LEVEL_INFO), 3);
	assert_int_equal(lines_shown(LOG_LEVEL_DEBUG), 4);
}

static void
test_levels_have_names(void **state)
{
	(void)state;
	assert_int_equal(log_level_parse("error"), LOG_LEVEL_ERROR);
	assert_int_equal(log_level_parse("warn"), LOG_LEVEL_WARN);
	assert_int_equal(log_level_parse("info"), LOG_LEVEL_INFO);
	assert_int_equal(log_level_parse("debug"), LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_parse("INFO"), -1);
	assert_int_equal(log_level_parse(""), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_a_line_has_time_level_program_message_and_pairs),
		cmocka_unit_test(test_a_stranger_cannot_forge_a_line),
		cmocka_unit_test(test_the_level_decides_what_is_shown),
		cmocka_unit_test(test_levels_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
