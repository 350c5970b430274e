#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "core/json.h"
#include "out.h"

enum { GAP = 2 }; /* blanks between columns */

void
out_init(struct out *out, enum out_shape shape, bool is_json)
{
	*out = (struct out){ .shape = shape, .is_json = is_json };
}

static void
add_cell(struct out *out, const char *name, const char *value)
{
	if (out->nrecords == 0) {
		buf_add(&out->names, name, strlen(name) + 1);
		out->nfields++;
	}
	buf_add(&out->cells, value, strlen(value) + 1);
}

/* A stranger's control characters do nothing to the operator's terminal. */
static void
add_printable(struct out *out, const char *name, const char *value)
{
	size_t at = out->cells.len;

	add_cell(out, name, value[0] == '\0' ? "-" : value);
	if (out->cells.failed)
		return;
	for (; at + 1 < out->cells.len; at++)
		if ((unsigned char)out->cells.data[at] < ' ' ||
		    out->cells.data[at] == 0x7f)
			out->cells.data[at] = '?';
}

void
out_text(struct out *out, const char *name, const char *value)
{
	struct buf quoted = { 0 };

	if (!out->is_json) {
		add_printable(out, name, value == NULL ? "" : value);
		return;
	}
	if (value != NULL)
		json_quote(&quoted, value, strlen(value));
	add_cell(out, name, value == NULL ? "null" : buf_text(&quoted));
	out->cells.failed = out->cells.failed || quoted.failed;
	buf_wipe(&quoted);
}

void
out_raw(struct out *out, const char *name, const char *json)
{
	if (out->is_json)
		add_cell(out, name, json);
	else
		add_printable(out, name, json);
}

void
out_number(struct out *out, const char *name, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	add_cell(out, name, text);
}

void
out_bool(struct out *out, const char *name, bool value)
{
	if (out->is_json)
		add_cell(out, name, value ? "true" : "false");
	else
		add_cell(out, name, value ? "yes" : "no");
}

void
out_id(struct out *out, const char *name, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	out_text(out, name, text);
}

void
out_time(struct out *out, const char *name, usec_t value)
{
	time_t seconds = (time_t)(value / USEC_PER_SEC);
	char text[32];
	struct tm tm;

	if (value < 0) {
		out_text(out, name, NULL);
		return;
	}
	(void)gmtime_r(&seconds, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	out_text(out, name, text);
}

void
out_end(struct out *out)
{
	out->nrecords++;
}

static void
put_json(struct buf *text, const struct out *out)
{
	const char *cell = out->cells.data;

	buf_puts(text, out->shape == OUT_LIST ? "[" : "");
	for (int i = 0; i < out->nrecords; i++) {
		const char *name = out->names.data;

		buf_puts(text, i == 0 ? "{" : ",\n {");
		for (int j = 0; j < out->nfields; j++) {
			buf_printf(text, "%s\"%s\":", j == 0 ? "" : ",", name);
			buf_puts(text, cell);
			name += strlen(name) + 1;
			cell += strlen(cell) + 1;
		}
		buf_puts(text, "}");
	}
	buf_puts(text, out->shape == OUT_LIST ? "]" : "");
}

void
out_list(struct out *out, const char *name, struct out *list)
{
	struct buf text = { 0 };

	if (!list->cells.failed && !list->names.failed)
		put_json(&text, list);
	add_cell(out, name, buf_text(&text));
	out->cells.failed |=
	    text.failed || list->cells.failed || list->names.failed;
	buf_wipe(&text);
	buf_wipe(&list->cells);
	buf_fini(&list->names);
}

static int
print_json(const struct out *out)
{
	struct buf text = { 0 };
	int status;

	put_json(&text, out);
	status = text.failed ? -1 : 0;
	if (status == 0)
		(void)printf("%s\n", buf_text(&text));
	buf_wipe(&text);
	return status;
}

static void
print_lines(const struct out *out)
{
	const char *name = out->names.data, *cell = out->cells.data;
	int width = 0;

	for (int i = 0; i < out->nfields; i++) {
		int len = (int)strlen(name);

		width = len > width ? len : width;
		name += len + 1;
	}
	name = out->names.data;
	for (int i = 0; i < out->nfields; i++) {
		(void)printf("%-*s%s\n", width + GAP, name, cell);
		name += strlen(name) + 1;
		cell += strlen(cell) + 1;
	}
}

/* Characters, not bytes, where the text is UTF-8. */
static int
count_chars(const char *text)
{
	int n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Widen `widths` for a row at `cell`; returns where the next row begins. */
static const char *
measure_row(const char *cell, int *widths, int n)
{
	for (int i = 0; i < n; i++) {
		int chars = count_chars(cell);

		widths[i] = chars > widths[i] ? chars : widths[i];
		cell += strlen(cell) + 1;
	}
	return cell;
}

static const char *
print_row(const char *cell, const int *widths, int n)
{
	for (int i = 0; i < n; i++) {
		int pad = widths[i] - count_chars(cell) + GAP;

		(void)printf("%s%*s", cell, i + 1 < n ? pad : 0, "");
		cell += strlen(cell) + 1;
	}
	(void)putchar('\n');
	return cell;
}

static int
print_table(const struct out *out)
{
	const char *cell = out->cells.data;
	int *widths;

	if (out->nrecords == 0)
		return 0;
	widths = calloc((size_t)out->nfields, sizeof(*widths));
	if (widths == NULL)
		return -1;
	(void)measure_row(out->names.data, widths, out->nfields);
	for (int i = 0; i < out->nrecords; i++)
		cell = measure_row(cell, widths, out->nfields);

	(void)print_row(out->names.data, widths, out->nfields);
	cell = out->cells.data;
	for (int i = 0; i < out->nrecords; i++)
		cell = print_row(cell, widths, out->nfields);
	free(widths);
	return 0;
}

int
out_print(struct out *out, struct err *err)
{
	int status = out->cells.failed || out->names.failed ? -1 : 0;

	if (status == 0 && out->is_json)
		status = print_json(out);
	else if (status == 0 && out->shape == OUT_RECORD)
		print_lines(out);
	else if (status == 0)
		status = print_table(out);
	buf_wipe(&out->cells);
	buf_fini(&out->names);
	return status == 0 ? 0 : err_set(err, ERR_NOMEM, "output");
}
