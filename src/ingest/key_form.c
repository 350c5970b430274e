#include <stddef.h>

#include "base/err.h"
#include "core/json.h"
#include "key_form.h"
#include "store/tenant.h"

/* The member that a fault is about. */
static const char *const members_at_fault[] = {
	[KEY_BAD_ROLE] = "role",
	[KEY_BAD_TENANT] = "tenant",
	[KEY_BAD_NAME] = "name",
	[KEY_BAD_EXPIRY] = "expires_at",
};

static int
take_role(void *into, const struct json_slice *value, struct err *err)
{
	struct key_form *form = into;

	return form_string(&form->role, value, err);
}

static int
take_tenant(void *into, const struct json_slice *value, struct err *err)
{
	struct key_form *form = into;

	if (value->kind == JSON_NULL)
		return 0;
	if (form_string(&form->tenant, value, err) != 0)
		return -1;
	form->order.tenant = buf_text(&form->tenant);
	return 0;
}

static int
take_name(void *into, const struct json_slice *value, struct err *err)
{
	struct key_form *form = into;

	if (form_string(&form->name, value, err) != 0)
		return -1;
	form->order.name = buf_text(&form->name);
	return 0;
}

static int
take_expiry(void *into, const struct json_slice *value, struct err *err)
{
	struct key_form *form = into;

	if (value->kind == JSON_NULL)
		return 0;
	return form_time(&form->order.expires_at, value, err);
}

static const struct form key_members = {
	.what = "a key",
	.members = {
		{ "role", take_role, true },
		{ "tenant", take_tenant, false },
		{ "name", take_name, false },
		{ "expires_at", take_expiry, false },
	},
};

int
key_form_read(struct key_form *out, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err)
{
	enum key_fault fault;

	*out = (struct key_form){ .order.expires_at = -1 };
	if (form_read(out, &key_members, text, len, pointer, err) != 0)
		return -1;
	out->order.role = buf_text(&out->role);
	if (out->order.name == NULL)
		out->order.name = out->order.role;
	fault = key_check(&out->order, err);
	if (fault == KEY_NO_FAULT)
		return 0;
	form_point(pointer, members_at_fault[fault]);
	return -1;
}

void
key_form_fini(struct key_form *form)
{
	buf_fini(&form->role);
	buf_fini(&form->tenant);
	buf_fini(&form->name);
}

static int
take_tenant_name(void *into, const struct json_slice *value, struct err *err)
{
	return form_string(into, value, err);
}

static const struct form tenant_members = {
	.what = "a tenant",
	.members = { { "name", take_tenant_name, true } },
};

int
key_form_read_tenant(struct buf *name, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err)
{
	*name = (struct buf){ 0 };
	if (form_read(name, &tenant_members, text, len, pointer, err) != 0)
		return -1;
	if (tenant_check_name(buf_text(name), err) == 0)
		return 0;
	form_point(pointer, "name");
	return -1;
}
