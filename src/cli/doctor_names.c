#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "core/target.h"
#include "doctor.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/stmt.h"

enum {
	URLS = 100, /* the newest; those of one host are many */
	NAMES = 5, /* looked up: one may take as long as the resolver waits */
};

/* What came of looking names up. */
struct names {
	char hosts[NAMES][TARGET_HOST_MAX + 3];
	int n, nfailed;
	int first_failed;
	const char *why; /* of the first */
};

static bool
is_known(const struct names *names, const char *host)
{
	for (int i = 0; i < names->n; i++)
		if (strcmp(names->hosts[i], host) == 0)
			return true;
	return false;
}

static void
look_up(struct names *names, const char *url)
{
	const struct target_policy policy = {
		.development = true, .any_port = true, .allow_hosts = ""
	};
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	struct target target;
	struct err ignored;
	int failure;

	if (target_parse(&target, url, strlen(url), &policy, &ignored) != 0 ||
	    target.site.is_literal || is_known(names, target.site.host))
		return;
	memcpy(
	    names->hosts[names->n], target.site.host, sizeof(target.site.host));
	failure = getaddrinfo(target.site.host, NULL, &hints, &found);
	if (failure == 0) {
		freeaddrinfo(found);
	} else if (names->nfailed++ == 0) {
		names->first_failed = names->n;
		names->why = gai_strerror(failure);
	}
	names->n++;
}

static void
report(struct doctor *doctor, const struct names *names)
{
	if (names->n == 0)
		doctor_report(doctor, "names", FINE,
		    "no subscription has a name to look up");
	else if (names->nfailed == 0)
		doctor_report(doctor, "names", FINE, "%d looked up", names->n);
	else
		doctor_report(doctor, "names",
		    names->n > 1 && names->nfailed == names->n ? BAD : WARNED,
		    "%d of %d cannot be looked up from here, the first is %s "
		    "(%s): see /etc/resolv.conf of this host and of the "
		    "dispatchers'",
		    names->nfailed, names->n, names->hosts[names->first_failed],
		    names->why);
}

void
doctor_check_names(struct doctor *doctor, struct pg *pg)
{
	struct pg_batch *batch = pg_batch_new();
	struct names names = { .n = 0 };
	struct pg_rows **rows;
	struct err err;

	if (batch == NULL) {
		doctor_report(doctor, "names", BAD, "out of memory");
		return;
	}
	pg_call(batch, STMT_SUBSCRIPTION_URLS);
	pg_int(batch, URLS);
	if (pg_run(pg, batch, &rows, &err) != 0) {
		doctor_report(doctor, "names", BAD, "%s", err.text);
		return;
	}
	for (int i = 0; i < pg_count(rows[0]) && names.n < NAMES; i++)
		look_up(&names, pg_read_text(rows[0], i, "url"));
	pg_rows_free(rows);
	report(doctor, &names);
}
