/*
 * form: the members of a JSON object that a client sends.
 *
 * A form says which members there are.  Whatever else is sent is refused, since
 * it would be a wish that nobody heeds; so is a member that comes twice.
 */

#ifndef INGEST_FORM_H
#define INGEST_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct buf;
struct err;
struct json_slice;

enum {
	FORM_POINTER_SIZE = 64,
	FORM_MEMBERS_MAX = 8,
};

struct form_member {
	const char *name;
	/* Keep the value.  ERR_REFUSED says what it must be, without the
	 * name. */
	int (*take)(
	    void *into, const struct json_slice *value, struct err *err);
	bool is_required;
};

struct form {
	const char *what; /* "a key" */
	struct form_member members[FORM_MEMBERS_MAX]; /* ended by no name */
};

/*
 * Take each member of the object in `text` into `into`.  ERR_REFUSED says what
 * is wrong, and `pointer` receives the JSON pointer of the member at fault, ""
 * for the whole.
 */
int form_read(void *into, const struct form *form, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err);

/* Point at the member `name`; and put it in front of what `err` says. */
void form_point(char pointer[FORM_POINTER_SIZE], const char *name);
int form_fail(
    char pointer[FORM_POINTER_SIZE], const char *name, struct err *err);

/* The value of a member: a string without a NUL, appended to `out`; a time;
 * a whole number from `min`, at least 0, to `max`. */
int form_string(
    struct buf *out, const struct json_slice *value, struct err *err);
int form_time(usec_t *out, const struct json_slice *value, struct err *err);
int form_number(int *out, int min, int max, const struct json_slice *value,
    struct err *err);

#endif
