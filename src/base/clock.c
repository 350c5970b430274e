#include <sys/time.h>
#include <time.h>

#include "base/clock.h"

static usec_t
read_clock(clockid_t id)
{
	struct timespec ts;

	/* Both clocks exist on every kernel that the programs run on. */
	(void)clock_gettime(id, &ts);
	return (usec_t)ts.tv_sec * USEC_PER_SEC + ts.tv_nsec / 1000;
}

usec_t
clock_now(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

usec_t
clock_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

struct timeval
clock_timeval(usec_t duration)
{
	if (duration < 0)
		duration = 0;
	return (struct timeval){
		.tv_sec = (time_t)(duration / USEC_PER_SEC),
		.tv_usec = (suseconds_t)(duration % USEC_PER_SEC),
	};
}
