#include "base/buf.h"
#include "base/err.h"
#include "rotation_form.h"

/* The text of a secret, to be wiped; -1 if it is none. */
static int
take_text(struct buf *out, const struct json_slice *value, struct err *err)
{
	if (form_string(out, value, err) == 0)
		return 0;
	buf_wipe(out);
	return -1;
}

static int
take_secret(void *into, const struct json_slice *value, struct err *err)
{
	struct rotation_form *form = into;
	struct buf text = { 0 };
	int result;

	if (take_text(&text, value, err) != 0)
		return -1;
	result = sign_secret_parse(&form->secret, text.data, text.len, err);
	form->is_given = true;
	buf_wipe(&text);
	return result;
}

static int
take_key(void *into, const struct json_slice *value, struct err *err)
{
	struct rotation_form *form = into;
	struct buf text = { 0 };
	int result;

	if (take_text(&text, value, err) != 0)
		return -1;
	result = sign_key_parse(&form->key, text.data, text.len, err);
	form->is_given = true;
	buf_wipe(&text);
	return result;
}

static int
take_overlap(void *into, const struct json_slice *value, struct err *err)
{
	struct rotation_form *form = into;

	return form_number(
	    &form->overlap_seconds, 0, ROTATION_OVERLAP_MAX, value, err);
}

static const struct form of_secret = {
	.what = "a rotation",
	.members = {
		{ "secret", take_secret, false },
		{ "overlap_seconds", take_overlap, false },
	},
};

static const struct form of_key = {
	.what = "a rotation",
	.members = {
		{ "signing_key", take_key, false },
		{ "overlap_seconds", take_overlap, false },
	},
};

int
rotation_form_read(struct rotation_form *out, bool is_key, const char *text,
    size_t len, char pointer[FORM_POINTER_SIZE], struct err *err)
{
	*out = (struct rotation_form){
		.is_key = is_key,
		.overlap_seconds = ROTATION_OVERLAP,
	};
	if (form_read(out, is_key ? &of_key : &of_secret, text, len, pointer,
		err) != 0)
		return -1;
	if (out->is_given)
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
