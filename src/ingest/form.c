#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/json.h"
#include "core/rfc3339.h"
#include "form.h"

/* A form being read. */
struct reading {
	void *into;
	const struct form *form;
	bool seen[FORM_MEMBERS_MAX];
	char *pointer;
	struct err *err;
};

void
form_point(char pointer[FORM_POINTER_SIZE], const char *name)
{
	(void)snprintf(pointer, FORM_POINTER_SIZE, "/%s", name);
}

int
form_fail(char pointer[FORM_POINTER_SIZE], const char *name, struct err *err)
{
	form_point(pointer, name);
	return err_wrap(err, "%s", name);
}

static size_t
count_members(const struct form *form)
{
	size_t n = 0;

	while (n < FORM_MEMBERS_MAX && form->members[n].name != NULL)
		n++;
	return n;
}

static int
refuse_member(const struct reading *r)
{
	size_t n = count_members(r->form);
	struct buf names = { 0 };

	for (size_t i = 0; i < n; i++) {
		buf_puts(&names, i == 0 ? "" : i + 1 < n ? ", " : " and ");
		buf_puts(&names, r->form->members[i].name);
	}
	(void)err_set(r->err, ERR_REFUSED, "unknown member: %s has %s",
	    r->form->what, buf_text(&names));
	buf_fini(&names);
	return -1;
}

static int
take_member(struct reading *r, const struct json_slice *key,
    const struct json_slice *value)
{
	const struct form_member *members = r->form->members;
	size_t i = 0, n = count_members(r->form);

	while (i < n && !json_is(key, members[i].name))
		i++;
	if (i == n)
		return refuse_member(r);
	if (r->seen[i]) {
		(void)err_set(r->err, ERR_REFUSED, "must not be repeated");
		return form_fail(r->pointer, members[i].name, r->err);
	}
	r->seen[i] = true;
	if (members[i].take(r->into, value, r->err) != 0)
		return form_fail(r->pointer, members[i].name, r->err);
	return 0;
}

static int
require_members(const struct reading *r)
{
	const struct form_member *members = r->form->members;
	size_t n = count_members(r->form);

	for (size_t i = 0; i < n; i++)
		if (members[i].is_required && !r->seen[i]) {
			(void)err_set(r->err, ERR_REFUSED, "is required");
			return form_fail(r->pointer, members[i].name, r->err);
		}
	return 0;
}

int
form_read(void *into, const struct form *form, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err)
{
	struct reading r = {
		.into = into,
		.form = form,
		.pointer = pointer,
		.err = err,
	};
	struct json_slice whole, key, value;
	size_t pos = 0;

	pointer[0] = '\0';
	if (json_check(&whole, text, len, err) != 0)
		return -1;
	if (whole.kind != JSON_OBJECT)
		return err_set(
		    err, ERR_REFUSED, "%s must be a JSON object", form->what);
	while (json_next_member(&whole, &pos, &key, &value))
		if (take_member(&r, &key, &value) != 0)
			return -1;
	return require_members(&r);
}

int
form_string(struct buf *out, const struct json_slice *value, struct err *err)
{
	if (value->kind != JSON_STRING)
		return err_set(err, ERR_REFUSED, "must be a string");
	json_unescape(out, value);
	if (out->failed)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (memchr(buf_text(out), '\0', out->len) != NULL)
		return err_set(err, ERR_REFUSED, "must not have a NUL in it");
	return 0;
}

int
form_time(usec_t *out, const struct json_slice *value, struct err *err)
{
	struct buf text = { 0 };
	bool failed;

	*out = -1;
	if (value->kind == JSON_STRING)
		json_unescape(&text, value);
	failed = text.failed;
	if (text.len > 0 && !failed)
		*out = rfc3339_parse(text.data, text.len);
	buf_fini(&text);
	if (failed)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (*out >= 0)
		return 0;
	return err_set(err, ERR_REFUSED,
	    "must be a time such as \"2026-01-31T12:00:00Z\"");
}

int
form_number(
    int *out, int min, int max, const struct json_slice *value, struct err *err)
{
	char digits[11] = "";
	long number = -1;

	/* At most 10 digits, so it fits: 1.0 and 1e3 are no whole numbers. */
	if (value->kind == JSON_NUMBER && value->len < sizeof(digits))
		memcpy(digits, value->at, value->len);
	if (digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0')
		number = strtol(digits, NULL, 10);
	if (number < min || number > max)
		return err_set(err, ERR_REFUSED,
		    "must be a whole number from %d to %d", min, max);
	*out = (int)number;
	return 0;
}
