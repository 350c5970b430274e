#include <errno.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "base/err.h"
#include "secrets.h"
#include "verify.h"

enum { MAX_LINE = 2048 };

struct entry {
	STAILQ_ENTRY(entry) link;
	struct verify_secret secret;
	char prefix[];
};

STAILQ_HEAD(entries, entry);

/* What tells one state of the file from another. */
struct stamp {
	bool exists;
	ino_t inode;
	off_t size;
	struct timespec changed;
};

struct secrets {
	const char *file;
	struct stamp stamp;
	struct entries entries;
};

static void
forget(struct entries *entries)
{
	struct entry *entry;

	while ((entry = STAILQ_FIRST(entries)) != NULL) {
		STAILQ_REMOVE_HEAD(entries, link);
		OPENSSL_cleanse(&entry->secret, sizeof(entry->secret));
		free(entry);
	}
}

int
secrets_open(struct secrets **out, const char *file, struct err *err)
{
	struct secrets *secrets = calloc(1, sizeof(*secrets));

	if (secrets == NULL)
		return err_set(err, ERR_NOMEM, "secrets");
	secrets->file = file;
	STAILQ_INIT(&secrets->entries);
	*out = secrets;
	return 0;
}

void
secrets_close(struct secrets *secrets)
{
	if (secrets == NULL)
		return;
	forget(&secrets->entries);
	free(secrets);
}

static int
add_entry(struct entries *entries, const char *prefix, const char *secret,
    struct err *err)
{
	struct entry *entry;

	entry = calloc(1, sizeof(*entry) + strlen(prefix) + 1);
	if (entry == NULL)
		return err_set(err, ERR_NOMEM, "secrets");
	memcpy(entry->prefix, prefix, strlen(prefix));
	STAILQ_INSERT_TAIL(entries, entry, link);
	return verify_secret_parse(&entry->secret, secret, err);
}

static int
parse_line(struct entries *entries, char *line, struct err *err)
{
	static const char blanks[] = " \t\r\n";
	char *save, *prefix, *secret;

	prefix = strtok_r(line, blanks, &save);
	if (prefix == NULL || prefix[0] == '#')
		return 0;
	secret = strtok_r(NULL, blanks, &save);
	if (prefix[0] != '/' || secret == NULL ||
	    strtok_r(NULL, blanks, &save) != NULL)
		return err_set(err, ERR_REFUSED, "a line is: /PATH SECRET");
	return add_entry(entries, prefix, secret, err);
}

static int
parse_file(struct entries *entries, FILE *file, struct err *err)
{
	char line[MAX_LINE];
	int number = 0, result = 0;

	while (result == 0 && fgets(line, sizeof(line), file) != NULL) {
		number++;
		result = parse_line(entries, line, err);
	}
	OPENSSL_cleanse(line, sizeof(line));
	if (result != 0)
		return err_wrap(err, "line %d", number);
	if (ferror(file))
		return err_errno(err, ERR_RETRY, "cannot read");
	return 0;
}

/* Read the file as it is now; what there was stays if that fails. */
static int
load(struct secrets *secrets, struct err *err)
{
	struct entries fresh = STAILQ_HEAD_INITIALIZER(fresh);
	FILE *file = fopen(secrets->file, "re");
	int result;

	if (file == NULL)
		return err_errno(
		    err, ERR_BROKEN, "cannot open %s", secrets->file);
	result = parse_file(&fresh, file, err);
	(void)fclose(file);
	if (result != 0) {
		forget(&fresh);
		return err_wrap(err, "%s", secrets->file);
	}
	forget(&secrets->entries);
	STAILQ_CONCAT(&secrets->entries, &fresh);
	return 0;
}

static struct stamp
look(const char *file)
{
	struct stat status;

	if (file[0] == '\0' || stat(file, &status) != 0)
		return (struct stamp){ .exists = false };
	return (struct stamp){
		.exists = true,
		.inode = status.st_ino,
		.size = status.st_size,
		.changed = status.st_mtim,
	};
}

static bool
is_same(const struct stamp *a, const struct stamp *b)
{
	return a->exists == b->exists && a->inode == b->inode &&
	       a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

int
secrets_refresh(struct secrets *secrets, struct err *err)
{
	struct stamp now = look(secrets->file);

	if (is_same(&now, &secrets->stamp))
		return 0;
	secrets->stamp = now;
	if (now.exists)
		return load(secrets, err);
	forget(&secrets->entries);
	return 0;
}

/* Is `path` the prefix, or below it? */
static bool
covers(const char *prefix, size_t len, const char *path)
{
	if (strncmp(path, prefix, len) != 0)
		return false;
	return path[len] == '\0' || path[len] == '/' || prefix[len - 1] == '/';
}

const struct verify_secret *
secrets_find(const struct secrets *secrets, const char *path)
{
	const struct verify_secret *best = NULL;
	const struct entry *entry;
	size_t longest = 0, len;

	STAILQ_FOREACH(entry, &secrets->entries, link)
	{
		len = strlen(entry->prefix);
		if (len < longest || !covers(entry->prefix, len, path))
			continue;
		longest = len;
		best = &entry->secret;
	}
	return best;
}
