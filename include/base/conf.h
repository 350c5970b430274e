/*
 * conf: a program's settings, from one table.
 *
 * A setting `max_in_flight` is read from, in this order: the command line
 * (`--max-in-flight=N`), the environment (`POSTRIDER_MAX_IN_FLIGHT`), the file
 * given with `--config FILE` (lines `max_in_flight = N`, `#` comments), the
 * table's initial value.  Unknown names, in the file or on the command line,
 * are refused, and so is a name that a file has twice.  An unknown POSTRIDER_
 * variable is not: several programs share one environment, and each takes its
 * own.  A setting marked secret is refused on the command line, where every
 * user of the host could read it.
 */

#ifndef BASE_CONF_H
#define BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;

enum conf_kind {
	CONF_TEXT, /* char *, owned by the configuration, never NULL */
	CONF_INT, /* int64_t */
	CONF_TIME, /* usec_t; written 250ms, 10s, 5m, 2h, 7d */
	CONF_BOOL, /* bool; written true or false */
};

struct conf_item {
	const char *name;
	enum conf_kind kind;
	bool is_secret;
	size_t offset; /* of the field in the program's own struct */
	const char *initial;
	int64_t min, max; /* inclusive, for CONF_INT and CONF_TIME */
	const char *help; /* one line */
};

/* What the command line asks for besides settings. */
struct conf_args {
	bool check; /* -n: check the settings and stop */
	bool help; /* --help */
	bool version; /* --version */
};

/*
 * Fill the struct at `into`, which is zeroed, from `items`, ended by a NULL
 * name.  ERR_REFUSED says which setting is wrong, where it stands and what it
 * takes.  Call conf_fini() in either case.
 */
int conf_load(void *into, const struct conf_item *items, int argc,
    char *const argv[], struct conf_args *args, struct err *err);

/* Free the texts, wiping them. */
void conf_fini(void *into, const struct conf_item *items);

/* The settings with their help and initial values, for --help. */
void conf_help(FILE *out, const struct conf_item *items);

/* `text` as a duration in microseconds; -1 if it is none. */
int64_t conf_parse_time(const char *text);

#endif
