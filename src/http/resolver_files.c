#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "resolver_files.h"

#define FRESH USEC_PER_SEC

enum { HOSTS_MAX = 1 << 20 }; /* octets; no more of a file is read */

static const char blank[] = " \t\r";

/* A file that is not there is one that says nothing. */
static void
read_hosts(struct resolver_files *files)
{
	char part[4096];
	size_t n;
	FILE *file = fopen(files->hosts, "re");

	buf_clear(&files->text);
	if (file == NULL)
		return;
	while (files->text.len < HOSTS_MAX &&
	       (n = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&files->text, part, n);
	(void)fclose(file);
}

/* Whether the file at `path` is another than `seen`, which it then is. */
static bool
has_changed(const char *path, struct stat *seen)
{
	struct stat now = { 0 };
	bool is_same;

	if (stat(path, &now) != 0)
		now = (struct stat){ 0 };
	is_same = now.st_ino == seen->st_ino && now.st_dev == seen->st_dev &&
	          now.st_size == seen->st_size &&
	          now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
	          now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec;
	*seen = now;
	return !is_same;
}

static bool
look(struct resolver_files *files)
{
	files->looked_at = clock_now();
	if (has_changed(files->hosts, &files->hosts_seen))
		read_hosts(files);
	return has_changed(files->resolv_conf, &files->resolv_conf_seen);
}

void
resolver_files_init(
    struct resolver_files *files, const char *hosts, const char *resolv_conf)
{
	*files = (struct resolver_files){
		.hosts = hosts,
		.resolv_conf = resolv_conf,
	};
	(void)look(files);
}

void
resolver_files_fini(struct resolver_files *files)
{
	buf_fini(&files->text);
}

bool
resolver_files_look(struct resolver_files *files)
{
	return clock_now() - files->looked_at >= FRESH && look(files);
}

static bool
read_address(union resolver_address *out, const char *word, size_t len)
{
	char text[INET6_ADDRSTRLEN];

	if (len >= sizeof(text))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		return true;
	}
	out->v6.sin6_family = AF_INET6;
	return inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1;
}

/* The length of the word at `at`, which is moved to its first character. */
static size_t
next_word(const char **at, const char *end)
{
	const char *from = *at, *to;

	while (from < end && strchr(blank, *from) != NULL)
		from++;
	for (to = from; to < end && strchr(blank, *to) == NULL; to++)
		;
	*at = from;
	return (size_t)(to - from);
}

/* "address name...", up to `end`; whether `name` is among them. */
static bool
read_line(union resolver_address *out, const char *at, const char *end,
    const char *name)
{
	size_t len = next_word(&at, end);
	const char *address = at;
	size_t address_len = len, name_len = strlen(name);

	while (len > 0) {
		at += len;
		len = next_word(&at, end);
		if (len == name_len && strncasecmp(at, name, len) == 0)
			return read_address(out, address, address_len);
	}
	return false;
}

size_t
resolver_files_find(const struct resolver_files *files, const char *name,
    union resolver_address *out, size_t max)
{
	const char *at = files->text.data, *end;
	size_t n = 0;

	if (files->text.len == 0)
		return 0;
	end = at + files->text.len;
	while (at < end && n < max) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		const char *comment;

		if (line_end == NULL)
			line_end = end;
		comment = memchr(at, '#', (size_t)(line_end - at));
		if (read_line(&out[n], at, comment != NULL ? comment : line_end,
			name))
			n++;
		at = line_end < end ? line_end + 1 : end;
	}
	return n;
}
