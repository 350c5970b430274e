#include <string.h>

#include "base/err.h"
#include "subscription_form_fields.h"

static int
take_name(struct form_reading *r, struct form_headers *headers,
    const struct json_slice *key)
{
	char *name = headers->text.data + headers->text.len;
	const char *fault;
	size_t len;

	json_unescape(&headers->text, key);
	len = (size_t)(headers->text.data + headers->text.len - name);
	buf_add(&headers->text, "", 1);
	fault = header_name_fault(name, len);
	if (fault != NULL)
		return err_set(r->err, ERR_REFUSED, "\"%.*s\" %s",
		    HEADER_NAME_MAX, name, fault);
	for (size_t i = 0; i < len; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] = (char)(name[i] - 'A' + 'a');
	for (size_t i = 0; i < headers->n; i++)
		if (strcmp(headers->list[i].name, name) == 0)
			return err_set(r->err, ERR_REFUSED,
			    "\"%s\" must not be repeated", name);
	headers->list[headers->n].name = name;
	headers->octets += len;
	return 0;
}

static int
take_value(struct form_reading *r, struct form_headers *headers,
    const struct json_slice *value)
{
	struct form_header *header = &headers->list[headers->n];
	char *text = headers->text.data + headers->text.len;
	const char *fault = "must be a string";
	size_t len;

	if (value->kind == JSON_STRING) {
		json_unescape(&headers->text, value);
		len = (size_t)(headers->text.data + headers->text.len - text);
		buf_add(&headers->text, "", 1);
		headers->octets += len;
		fault = header_value_fault(text, len);
	}
	if (fault != NULL)
		return err_set(r->err, ERR_REFUSED, "the value of \"%s\" %s",
		    header->name, fault);
	header->value = text;
	return 0;
}

static int
judge_size(struct form_reading *r, size_t n, size_t octets)
{
	if (n > HEADER_COUNT_MAX)
		return err_set(r->err, ERR_REFUSED,
		    "must not be more than %d, secret ones included",
		    HEADER_COUNT_MAX);
	if (octets > HEADER_TOTAL_MAX)
		return err_set(r->err, ERR_REFUSED,
		    "must not be longer than %d octets, names and values of "
		    "all together",
		    HEADER_TOTAL_MAX);
	return 0;
}

/* Null is no header. */
static int
take_headers(struct form_reading *r, struct form_headers *headers,
    const struct json_slice *value)
{
	struct json_slice key, item;
	size_t pos = 0;

	headers->is_given = true;
	if (value->kind == JSON_NULL)
		return 0;
	if (value->kind != JSON_OBJECT)
		return form_refuse(
		    r, "must be an object of names and values, or null");
	/* What it holds is shorter, so the texts stay where they are. */
	if (buf_grow(&headers->text, value->len) == NULL)
		return err_set(r->err, ERR_NOMEM, "out of memory");
	buf_clear(&headers->text);
	while (json_next_member(value, &pos, &key, &item)) {
		if (judge_size(r, headers->n + 1, headers->octets) != 0 ||
		    take_name(r, headers, &key) != 0 ||
		    take_value(r, headers, &item) != 0)
			return -1;
		headers->n++;
	}
	return judge_size(r, headers->n, headers->octets);
}

int
form_take_headers(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	struct subscription_form *form = r->out;
	const struct form_headers *headers = &form->headers;
	struct buf *json = &form->headers_json;

	(void)field;
	if (take_headers(r, &form->headers, value) != 0)
		return -1;
	buf_puts(json, "{");
	for (size_t i = 0; i < headers->n; i++) {
		const struct form_header *header = &headers->list[i];

		buf_puts(json, i == 0 ? "" : ",");
		json_quote(json, header->name, strlen(header->name));
		buf_puts(json, ":");
		json_quote(json, header->value, strlen(header->value));
	}
	buf_puts(json, "}");
	form->fields.headers = buf_text(json);
	return json->failed ? err_set(r->err, ERR_NOMEM, "out of memory") : 0;
}

int
form_take_secret_headers(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	(void)field;
	return take_headers(r, &r->out->secret_headers, value);
}

/* A change of one kind alone meets those of the other kind in the database. */
int
form_judge_headers(struct form_reading *r)
{
	const struct form_headers *plain = &r->out->headers;
	const struct form_headers *secret = &r->out->secret_headers;
	int result;

	result =
	    judge_size(r, plain->n + secret->n, plain->octets + secret->octets);
	for (size_t i = 0; i < plain->n; i++)
		for (size_t j = 0; j < secret->n; j++)
			if (strcmp(plain->list[i].name, secret->list[j].name) ==
			    0)
				result = err_set(r->err, ERR_REFUSED,
				    "\"%s\" is among headers, too",
				    plain->list[i].name);
	return result == 0 ? 0 : form_fail_at(r, "secret_headers");
}
