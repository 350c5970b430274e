/*
 * resolver_files: what this machine's files say of names.
 *
 * The hosts file is kept in memory; both files are looked at once a second at
 * most, and read again when they have changed.
 */

#ifndef HTTP_RESOLVER_FILES_H
#define HTTP_RESOLVER_FILES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "http/resolver.h"

struct resolver_files {
	const char *hosts, *resolv_conf; /* their paths, which outlive this */
	usec_t looked_at;
	struct stat hosts_seen, resolv_conf_seen;
	struct buf text; /* of the hosts file */
};

/* Look for the first time. */
void resolver_files_init(
    struct resolver_files *files, const char *hosts, const char *resolv_conf);
void resolver_files_fini(struct resolver_files *files);

/* Look again if it is time.  Whether resolv.conf has changed. */
bool resolver_files_look(struct resolver_files *files);

/* The addresses that the hosts file has for `name`, `max` at most, and how
 * many they are. */
size_t resolver_files_find(const struct resolver_files *files, const char *name,
    union resolver_address *out, size_t max);

#endif
