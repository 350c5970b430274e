#include <inttypes.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/limits.h"

/* The database, the resolver, listeners, logs, and what libraries open. */
enum { OUR_OWN = 64 };

void
limits_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int
limits_check_descriptors(const char *setting, int64_t n, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_max == RLIM_INFINITY ||
	    (int64_t)limit.rlim_max >= n + OUR_OWN)
		return 0;
	return err_set(err, ERR_REFUSED,
	    "%s: %" PRId64 " connections need %" PRId64
	    " descriptors, and this process may have %" PRId64
	    ": raise its hard limit (LimitNOFILE=, ulimit -Hn), or lower the "
	    "setting",
	    setting, n, n + OUR_OWN, (int64_t)limit.rlim_max);
}
