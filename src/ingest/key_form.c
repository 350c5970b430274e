#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/json.h"
#include "core/rfc3339.h"
#include "key_form.h"
#include "store/tenant.h"

enum field { ROLE, TENANT, NAME, EXPIRES_AT, NFIELDS };

static const char *const names[NFIELDS] = {
	[ROLE] = "role",
	[TENANT] = "tenant",
	[NAME] = "name",
	[EXPIRES_AT] = "expires_at",
};

/* The field that a fault is about. */
static const enum field fields_at_fault[] = {
	[KEY_BAD_ROLE] = ROLE,
	[KEY_BAD_TENANT] = TENANT,
	[KEY_BAD_NAME] = NAME,
	[KEY_BAD_EXPIRY] = EXPIRES_AT,
};

static void
point_at(char *pointer, enum field field)
{
	(void)snprintf(pointer, KEY_POINTER_SIZE, "/%s", names[field]);
}

static int
take_text(struct buf *out, const struct json_slice *value, struct err *err)
{
	if (value->kind != JSON_STRING)
		return err_set(err, ERR_REFUSED, "must be a string");
	json_unescape(out, value);
	if (strlen(buf_text(out)) == out->len && !out->failed)
		return 0;
	return err_set(err, out->failed ? ERR_NOMEM : ERR_REFUSED,
	    "must not have a NUL in it");
}

static int
take_time(usec_t *out, const struct json_slice *value, struct err *err)
{
	struct buf text = { 0 };

	if (value->kind == JSON_NULL)
		return 0;
	if (value->kind == JSON_STRING)
		json_unescape(&text, value);
	*out = rfc3339_parse(buf_text(&text), text.len);
	buf_fini(&text);
	if (*out >= 0)
		return 0;
	return err_set(err, ERR_REFUSED,
	    "must be a time such as \"2026-01-31T12:00:00Z\", or null");
}

static int
take_field(struct key_form *form, enum field field,
    const struct json_slice *value, struct err *err)
{
	switch (field) {
	case ROLE:
		return take_text(&form->role, value, err);
	case TENANT:
		return value->kind == JSON_NULL
		           ? 0
		           : take_text(&form->tenant, value, err);
	case NAME:
		return take_text(&form->name, value, err);
	case EXPIRES_AT:
		return take_time(&form->order.expires_at, value, err);
	case NFIELDS:
		break;
	}
	return -1;
}

/* The members of a form, which may be the first `n` bits of `allowed`. */
struct members {
	const char *what; /* "a key" */
	unsigned allowed, seen; /* 1 << field */
	char *pointer;
};

static int
take_member(struct key_form *form, struct members *members,
    const struct json_slice *key, const struct json_slice *value,
    struct err *err)
{
	enum field field = ROLE;

	while (field < NFIELDS && ((members->allowed & 1u << field) == 0 ||
				      !json_is(key, names[field])))
		field++;
	if (field == NFIELDS)
		return err_set(
		    err, ERR_REFUSED, "%s has no such member", members->what);
	point_at(members->pointer, field);
	if ((members->seen & 1u << field) != 0) {
		(void)err_set(err, ERR_REFUSED, "must not be repeated");
		return err_wrap(err, "%s", names[field]);
	}
	members->seen |= 1u << field;
	if (take_field(form, field, value, err) != 0)
		return err_wrap(err, "%s", names[field]);
	members->pointer[0] = '\0';
	return 0;
}

static int
read_members(struct key_form *form, struct members *members, const char *text,
    size_t len, struct err *err)
{
	struct json_slice whole, key, value;
	size_t pos = 0;

	members->pointer[0] = '\0';
	if (json_check(&whole, text, len, err) != 0)
		return -1;
	if (whole.kind != JSON_OBJECT)
		return err_set(err, ERR_REFUSED, "%s must be a JSON object",
		    members->what);
	while (json_next_member(&whole, &pos, &key, &value))
		if (take_member(form, members, &key, &value, err) != 0)
			return -1;
	return 0;
}

static int
require(struct members *members, enum field field, struct err *err)
{
	if ((members->seen & 1u << field) != 0)
		return 0;
	point_at(members->pointer, field);
	return err_set(err, ERR_REFUSED, "%s: is required", names[field]);
}

int
key_form_read(struct key_form *out, const char *text, size_t len,
    char pointer[KEY_POINTER_SIZE], struct err *err)
{
	struct members members = {
		.what = "a key",
		.allowed =
		    1u << ROLE | 1u << TENANT | 1u << NAME | 1u << EXPIRES_AT,
		.pointer = pointer,
	};
	enum key_fault fault;

	*out = (struct key_form){ .order.expires_at = -1 };
	if (read_members(out, &members, text, len, err) != 0 ||
	    require(&members, ROLE, err) != 0)
		return -1;
	out->order.role = buf_text(&out->role);
	out->order.name = (members.seen & 1u << NAME) != 0
	                      ? buf_text(&out->name)
	                      : out->order.role;
	if (out->tenant.data != NULL || out->tenant.len > 0)
		out->order.tenant = buf_text(&out->tenant);
	fault = key_check(&out->order, err);
	if (fault == KEY_NO_FAULT)
		return 0;
	point_at(pointer, fields_at_fault[fault]);
	return -1;
}

void
key_form_fini(struct key_form *form)
{
	buf_fini(&form->role);
	buf_fini(&form->tenant);
	buf_fini(&form->name);
}

int
key_form_read_tenant(struct buf *name, const char *text, size_t len,
    char pointer[KEY_POINTER_SIZE], struct err *err)
{
	struct members members = {
		.what = "a tenant",
		.allowed = 1u << NAME,
		.pointer = pointer,
	};
	struct key_form form = { .order.expires_at = -1 };
	int result = -1;

	if (read_members(&form, &members, text, len, err) == 0 &&
	    require(&members, NAME, err) == 0) {
		result = tenant_check_name(buf_text(&form.name), err);
		if (result != 0)
			point_at(pointer, NAME);
	}
	*name = form.name;
	return result;
}
