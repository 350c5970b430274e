/*
 * suite: tables that several projects share, read from the folder that
 * POSTRIDER_TEST_DATA names.  A test that finds none says so and is skipped.
 */

#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

static char *
read_suite(const char *name)
{
	const char *folder = getenv("POSTRIDER_TEST_DATA");
	struct buf text = { 0 };
	char path[1024], part[4096];
	FILE *file;
	size_t n;

	if (folder == NULL)
		return NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	if (file == NULL)
		return NULL;
	while ((n = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&text, part, n);
	(void)fclose(file);
	(void)buf_text(&text);
	return text.data;
}

static char *
need_suite(const char *name)
{
	char *text = read_suite(name);

	if (text == NULL) {
		print_message("POSTRIDER_TEST_DATA has no %s\n", name);
		skip();
		abort(); /* skip() does not return */
	}
	return text;
}

/* The next field of CSV in place; `*at` goes behind it. */
static inline char *
next_field(char **at)
{
	char *from = *at, *to = *at, *field = *at;
	int is_quoted = *from == '"';

	if (is_quoted)
		from++;
	for (; *from != '\0'; from++) {
		if (is_quoted && *from == '"' && from[1] != '"') {
			from++;
			break;
		}
		if (is_quoted && *from == '"')
			from++;
		if (!is_quoted && (*from == ',' || *from == '\n'))
			break;
		*to++ = *from;
	}
	*at = *from != '\0' ? from + 1 : from;
	*to = '\0';
	return field;
}

#endif
