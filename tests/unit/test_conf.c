#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/err.h"

struct settings {
	char *database;
	bool development;
	char *key;
	usec_t lease;
	int64_t max_in_flight;
};

#define FIELD(name) offsetof(struct settings, name)
#define HOUR (3600 * USEC_PER_SEC)

static const struct conf_item items[] = {
	{ "database", CONF_TEXT, false, FIELD(database), "dbname=x", 0, 0,
	    "how to reach PostgreSQL" },
	{ "development", CONF_BOOL, false, FIELD(development), "false", 0, 0,
	    "allow loopback" },
	{ "key", CONF_TEXT, true, FIELD(key), "", 0, 0, "a secret" },
	{ "lease", CONF_TIME, false, FIELD(lease), "30s", USEC_PER_SEC, HOUR,
	    "how long a lane is ours" },
	{ "max_in_flight", CONF_INT, false, FIELD(max_in_flight), "100", 1,
	    1000, "most requests at once" },
	{ 0 },
};

/* Everything that one test needs and its teardown frees. */
struct world {
	struct settings settings;
	struct conf_args args;
	struct err err;
	char path[64];
};

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -1;
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	conf_fini(&w->settings, items);
	if (w->path[0] != '\0')
		(void)unlink(w->path);
	free(w);
	(void)unsetenv("POSTRIDER_DATABASE");
	(void)unsetenv("POSTRIDER_KEY");
	(void)unsetenv("POSTRIDER_LEASE");
	(void)unsetenv("POSTRIDER_MAX_IN_FLIGHT");
	return 0;
}

/* conf_load() with these arguments, ended by NULL, behind the program's name. */
__attribute__((sentinel)) static int
load(struct world *w, ...)
{
	char words[4][80] = { "program" };
	char *argv[] = { words[0], words[1], words[2], words[3] };
	const char *word;
	int argc = 1;
	va_list args;

	va_start(args, w);
	while ((word = va_arg(args, const char *)) != NULL) {
		assert_true(argc < 4);
		(void)snprintf(words[argc++], sizeof(words[0]), "%s", word);
	}
	va_end(args);
	conf_fini(&w->settings, items);
	return conf_load(&w->settings, items, argc, argv, &w->args, &w->err);
}

static void
write_file(struct world *w, const char *text, size_t len)
{
	int fd;

	if (w->path[0] != '\0')
		(void)unlink(w->path);
	(void)snprintf(w->path, sizeof(w->path), "/tmp/test_conf.XXXXXX");
	fd = mkstemp(w->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(close(fd), 0);
}

static int
load_file(struct world *w, const char *text)
{
	write_file(w, text, strlen(text));
	return load(w, "--config", w->path, NULL);
}

static void
assert_says(const struct world *w, const char *part)
{
	if (strstr(w->err.text, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", w->err.text, part);
	assert_int_equal(w->err.code, ERR_REFUSED);
}

static void
test_what_nobody_sets_has_its_initial_value(void **state)
{
	struct world *w = *state;

	assert_int_equal(load(w, NULL), 0);
	assert_string_equal(w->settings.database, "dbname=x");
	assert_false(w->settings.development);
	assert_string_equal(w->settings.key, "");
	assert_int_equal(w->settings.lease, 30 * USEC_PER_SEC);
	assert_int_equal(w->settings.max_in_flight, 100);
}

static void
test_the_file_is_read_with_comments_and_blanks(void **state)
{
	struct world *w = *state;

	assert_int_equal(
	    load_file(w, "# a comment\n\n  \t\n"
			 "database =  host=/run dbname=a # not a comment \n"
			 "development=true\r\n"
			 "\tlease = 2m\n"
			 "key = k"),
	    0);
	assert_string_equal(
	    w->settings.database, "host=/run dbname=a # not a comment");
	assert_true(w->settings.development);
	assert_int_equal(w->settings.lease, 120 * USEC_PER_SEC);
	assert_string_equal(w->settings.key, "k");
}

static void
test_the_environment_wins_over_the_file(void **state)
{
	struct world *w = *state;

	setenv("POSTRIDER_MAX_IN_FLIGHT", "3", 1);
	assert_int_equal(load_file(w, "max_in_flight = 2\nlease = 9s\n"), 0);
	assert_int_equal(w->settings.max_in_flight, 3);
	assert_int_equal(w->settings.lease, 9 * USEC_PER_SEC);
}

static void
test_the_command_line_wins_over_all(void **state)
{
	struct world *w = *state;

	setenv("POSTRIDER_MAX_IN_FLIGHT", "3", 1);
	write_file(w, "max_in_flight = 2\n", 18);
	assert_int_equal(
	    load(w, "--max-in-flight=4", "--config", w->path, NULL), 0);
	assert_int_equal(w->settings.max_in_flight, 4);
}

static void
test_a_secret_is_refused_on_the_command_line_and_not_repeated(void **state)
{
	struct world *w = *state;

	assert_int_equal(load(w, "--key=hunter2", NULL), -1);
	assert_says(w, "--key");
	assert_null(strstr(w->err.text, "hunter2"));
	setenv("POSTRIDER_KEY", "hunter2", 1);
	assert_int_equal(load(w, NULL), 0);
	assert_string_equal(w->settings.key, "hunter2");
}

static void
test_flags_are_told_from_settings(void **state)
{
	struct world *w = *state;

	assert_int_equal(load(w, "-n", "--lease=5s", NULL), 0);
	assert_true(w->args.check);
	assert_false(w->args.help);
	assert_int_equal(w->settings.lease, 5 * USEC_PER_SEC);

	assert_int_equal(load(w, "--version", NULL), 0);
	assert_true(w->args.version);
	assert_false(w->args.check);
}

static void
test_help_is_had_even_with_settings_that_are_wrong(void **state)
{
	struct world *w = *state;

	setenv("POSTRIDER_LEASE", "soon", 1);
	assert_int_equal(load(w, "--help", "--no-such-thing", NULL), 0);
	assert_true(w->args.help);
	assert_string_equal(w->settings.database, "dbname=x");
}

static void
test_a_missing_file_is_refused_by_name(void **state)
{
	struct world *w = *state;

	assert_int_equal(load(w, "--config", "/nowhere/at.all", NULL), -1);
	assert_says(w, "/nowhere/at.all");
	assert_int_equal(load(w, "--config=/", NULL), -1);
	assert_says(w, "/: ");
	assert_int_equal(load(w, "--config", NULL), -1);
	assert_says(w, "--config");
}

static void
test_a_wrong_line_of_the_file_is_named_by_its_number(void **state)
{
	static const struct {
		const char *label, *text, *says;
	} rows[] = {
		{ "unknown", "lease = 1s\nleese = 1s\n", ":2: no setting" },
		{ "no value", "\nlease\n", ":2: a line is NAME = VALUE" },
		{ "no name", "= 5\n", ":1: no setting" },
		{ "dashes", "max-in-flight = 5\n", ":1: no setting" },
		{ "bad value", "#\n#\nlease = 5\n", ":3: lease takes a time" },
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].label);
		assert_int_equal(load_file(w, rows[i].text), -1);
		assert_says(w, w->path);
		assert_says(w, rows[i].says);
	}
}

static void
test_a_setting_that_a_file_has_twice_is_refused_with_both_lines(void **state)
{
	struct world *w = *state;
	char where[96];

	assert_int_equal(
	    load_file(w, "lease = 1s\n# \nkey = a\nkey = hunter2\n"), -1);
	(void)snprintf(where, sizeof(where),
	    "%s:4: key is set in line 3 already", w->path);
	assert_says(w, where);
	assert_null(strstr(w->err.text, "hunter2"));

	/* The same value, too; but a source that comes before may have it. */
	assert_int_equal(load_file(w, "lease = 1s\nlease=1s"), -1);
	assert_says(w, ":2: lease is set in line 1 already");
	setenv("POSTRIDER_LEASE", "3s", 1);
	assert_int_equal(load_file(w, "lease = 1s\n"), 0);
}

static void
test_what_the_environment_has_for_other_programs_is_ignored(void **state)
{
	struct world *w = *state;
	int result;

	setenv("POSTRIDER_LEESE", "1s", 1);
	result = load(w, NULL);
	(void)unsetenv("POSTRIDER_LEESE");
	assert_int_equal(result, 0);
}

static void
test_a_line_that_is_no_text_is_refused(void **state)
{
	struct world *w = *state;
	char line[5000];

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	write_file(w, line, sizeof(line));
	assert_int_equal(load(w, "--config", w->path, NULL), -1);
	assert_says(w, ":1: longer than");

	write_file(w, "lease = 1s\nkey = a\0b\n", 21);
	assert_int_equal(load(w, "--config", w->path, NULL), -1);
	assert_says(w, ":2: longer than");
}

static void
test_a_wrong_word_of_the_command_line_is_named(void **state)
{
	static const struct {
		const char *arg;
		const char *says;
	} rows[] = {
		{ "--leese=1s", "--leese: no such option" },
		{ "--lease", "--lease=VALUE" },
		{ "--max_in_flight=5", "no such option" },
		{ "--max-in-flight=5x",
		    "--max-in-flight: max_in_flight takes" },
		{ "--=5", "no such option" },
		{ "--", "no such option" },
		{ "-", "no such option" },
		{ "", "no such option" },
		{ "-nn", "no such option" },
		{ "word", "word: no such option" },
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].arg);
		assert_int_equal(load(w, rows[i].arg, NULL), -1);
		assert_says(w, rows[i].says);
	}
}

static void
test_values_are_taken_whole_and_in_range_or_refused(void **state)
{
	static const struct {
		const char *arg;
		int status;
	} rows[] = {
		{ "--max-in-flight=1", 0 },
		{ "--max-in-flight=1000", 0 },
		{ "--max-in-flight=0", -1 },
		{ "--max-in-flight=1001", -1 },
		{ "--max-in-flight=-5", -1 },
		{ "--max-in-flight=", -1 },
		{ "--max-in-flight=+5", -1 },
		{ "--max-in-flight= 5", -1 },
		{ "--max-in-flight=5 ", -1 },
		{ "--max-in-flight=0x5", -1 },
		{ "--max-in-flight=5.0", -1 },
		{ "--max-in-flight=99999999999999999999", -1 },
		{ "--lease=1s", 0 },
		{ "--lease=1h", 0 },
		{ "--lease=999ms", -1 },
		{ "--lease=61m", -1 },
		{ "--lease=", -1 },
		{ "--development=true", 0 },
		{ "--development=false", 0 },
		{ "--development=yes", -1 },
		{ "--development=TRUE", -1 },
		{ "--development=", -1 },
		{ "--database=", 0 },
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].arg);
		assert_int_equal(load(w, rows[i].arg, NULL), rows[i].status);
	}
}

static void
test_a_refusal_says_what_the_setting_takes(void **state)
{
	struct world *w = *state;

	setenv("POSTRIDER_LEASE", "2h", 1);
	assert_int_equal(load(w, NULL), -1);
	assert_says(w, "POSTRIDER_LEASE: lease takes a time");
	assert_says(w, "from 1s to 1h");
	assert_int_equal(load(w, "--lease=1s", NULL), -1);
	(void)unsetenv("POSTRIDER_LEASE");
	assert_int_equal(load(w, "--max-in-flight=x", NULL), -1);
	assert_says(w, "a whole number from 1 to 1000");
	assert_int_equal(load(w, "--development=1", NULL), -1);
	assert_says(w, "true or false");
}

static void
test_times_have_a_unit(void **state)
{
	static const struct {
		const char *text;
		int64_t time;
	} rows[] = {
		{ "250ms", 250 * USEC_PER_MS },
		{ "0s", 0 },
		{ "10s", 10 * USEC_PER_SEC },
		{ "5m", 300 * USEC_PER_SEC },
		{ "2h", 2 * HOUR },
		{ "7d", HOUR * 24 * 7 },
		{ "106751991d", INT64_C(106751991) * 24 * HOUR },
		{ "106751992d", -1 },
		{ "9223372036854775807s", -1 },
		{ "9223372036854775808ms", -1 },
		{ "99999999999999999999999999999s", -1 },
		{ "", -1 },
		{ "s", -1 },
		{ "10", -1 },
		{ "10 s", -1 },
		{ " 10s", -1 },
		{ "10s ", -1 },
		{ "-1s", -1 },
		{ "+1s", -1 },
		{ "1.5s", -1 },
		{ "1S", -1 },
		{ "1m30s", -1 },
		{ "1us", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  \"%s\"\n", rows[i].text);
		assert_int_equal(conf_parse_time(rows[i].text), rows[i].time);
	}
}

static void
test_help_names_each_setting_and_its_initial_value(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	conf_help(out, items);
	assert_int_equal(fclose(out), 0);
	for (const struct conf_item *i = items; i->name != NULL; i++) {
		assert_non_null(strstr(text, i->name));
		assert_non_null(strstr(text, i->help));
	}
	assert_non_null(strstr(text, "from 1s to 1h; initially 30s"));
	assert_non_null(strstr(text, "not on the command line"));
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_nobody_sets_has_its_initial_value),
		TEST(test_the_file_is_read_with_comments_and_blanks),
		TEST(test_the_environment_wins_over_the_file),
		TEST(test_the_command_line_wins_over_all),
		TEST(
		    test_a_secret_is_refused_on_the_command_line_and_not_repeated),
		TEST(test_flags_are_told_from_settings),
		TEST(test_help_is_had_even_with_settings_that_are_wrong),
		TEST(test_a_missing_file_is_refused_by_name),
		TEST(test_a_wrong_line_of_the_file_is_named_by_its_number),
		TEST(
		    test_a_setting_that_a_file_has_twice_is_refused_with_both_lines),
		TEST(
		    test_what_the_environment_has_for_other_programs_is_ignored),
		TEST(test_a_line_that_is_no_text_is_refused),
		TEST(test_a_wrong_word_of_the_command_line_is_named),
		TEST(test_values_are_taken_whole_and_in_range_or_refused),
		TEST(test_a_refusal_says_what_the_setting_takes),
		TEST(test_times_have_a_unit),
		TEST(test_help_names_each_setting_and_its_initial_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
