#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/json.h"
#include "rotation_form.h"

enum field { SECRET, OVERLAP, NFIELDS };

static const char *
name_of(const struct rotation_form *form, enum field field)
{
	if (field == OVERLAP)
		return "overlap_seconds";
	return form->is_key ? "signing_key" : "secret";
}

/* Say in which field what `err` holds is. */
static int
fail_at(const struct rotation_form *form, enum field field, char *pointer,
    struct err *err)
{
	const char *name = name_of(form, field);

	(void)snprintf(pointer, ROTATION_POINTER_SIZE, "/%s", name);
	return err_wrap(err, "%s", name);
}

static int
take_secret(
    struct rotation_form *form, const struct json_slice *value, struct err *err)
{
	struct buf text = { 0 };
	int result;

	if (value->kind != JSON_STRING)
		return err_set(err, ERR_REFUSED, "must be a string");
	json_unescape(&text, value);
	if (text.failed)
		result = err_set(err, ERR_NOMEM, "out of memory");
	else if (form->is_key)
		result = sign_key_parse(&form->key, text.data, text.len, err);
	else
		result =
		    sign_secret_parse(&form->secret, text.data, text.len, err);
	buf_wipe(&text);
	return result;
}

static int
take_overlap(int *out, const struct json_slice *value, struct err *err)
{
	char digits[8] = "";
	int number = -1;

	/* At most 7 digits: 1.0 and 1e3 are no whole numbers. */
	if (value->kind == JSON_NUMBER && value->len < sizeof(digits))
		memcpy(digits, value->at, value->len);
	if (digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0')
		number = (int)strtol(digits, NULL, 10);
	if (number < 0 || number > ROTATION_OVERLAP_MAX)
		return err_set(err, ERR_REFUSED,
		    "must be a whole number from 0 to %d",
		    ROTATION_OVERLAP_MAX);
	*out = number;
	return 0;
}

static int
take_field(struct rotation_form *form, enum field field,
    const struct json_slice *value, struct err *err)
{
	switch (field) {
	case SECRET:
		return take_secret(form, value, err);
	case OVERLAP:
		return take_overlap(&form->overlap_seconds, value, err);
	case NFIELDS:
		break;
	}
	return err_set(err, ERR_REFUSED,
	    "unknown member: a rotation has %s and overlap_seconds",
	    name_of(form, SECRET));
}

int
rotation_form_read(struct rotation_form *out, bool is_key, const char *text,
    size_t len, char pointer[ROTATION_POINTER_SIZE], struct err *err)
{
	struct json_slice whole, key, value;
	bool seen[NFIELDS] = { false };
	size_t pos = 0;

	*out = (struct rotation_form){
		.is_key = is_key,
		.overlap_seconds = ROTATION_OVERLAP,
	};
	pointer[0] = '\0';
	if (json_check(&whole, text, len, err) != 0)
		return -1;
	if (whole.kind != JSON_OBJECT)
		return err_set(
		    err, ERR_REFUSED, "a rotation must be a JSON object");
	while (json_next_member(&whole, &pos, &key, &value)) {
		enum field field = SECRET;

		while (field < NFIELDS && !json_is(&key, name_of(out, field)))
			field++;
		if (take_field(out, field, &value, err) != 0)
			return field == NFIELDS
			           ? -1
			           : fail_at(out, field, pointer, err);
		if (seen[field]) {
			(void)err_set(err, ERR_REFUSED, "must not be repeated");
			return fail_at(out, field, pointer, err);
		}
		seen[field] = true;
	}
	if (seen[SECRET])
		return 0;
	return is_key ? sign_key_new(&out->key, err)
	              : sign_secret_new(&out->secret, err);
}

void
rotation_form_fini(struct rotation_form *form)
{
	sign_secret_fini(&form->secret);
	sign_key_fini(&form->key);
}
