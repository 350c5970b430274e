/*
 * host: the host part of a URL, in its one accepted spelling.
 *
 * ASCII only: an international name comes as punycode.  Whatever ends like a
 * number must be four plain decimal parts, and IPv6 stands in brackets without
 * a zone or a dotted tail, so that no two parsers can disagree on it.
 */

#ifndef CORE_HOST_H
#define CORE_HOST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "core/target.h"

struct err;

struct host {
	char text[TARGET_HOST_MAX + 3]; /* canonical; IPv6 in brackets */
	bool is_literal;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address; /* of a literal, without a port */
};

/* Parse `text` by syntax alone.  ERR_REFUSED says what is wrong with it. */
int host_parse(struct host *out, const char *text, size_t len, struct err *err);

/*
 * The reason why a name is not one of the public Internet: it has one label
 * only, or ends in one set aside for inner networks.  NULL if it may be.
 */
const char *host_internal_name(const char *name);

#endif
