#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "core/retry_after.h"

static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
	"Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
static const char *const days[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat",
	"Sun" };
static const char *const long_days[] = { "Monday", "Tuesday", "Wednesday",
	"Thursday", "Friday", "Saturday", "Sunday" };

enum { NMONTHS = 12, NDAYS = 7 };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *
skip_space(const char *at)
{
	return at + strspn(at, " \t");
}

static bool
is_end(const char *at)
{
	return *skip_space(at) == '\0';
}

static bool
take(const char **at, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(*at, text, n) != 0)
		return false;
	*at += n;
	return true;
}

/* Which of `words` comes next; -1 if none does. */
static int
take_word(const char **at, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (take(at, words[i]))
			return i;
	return -1;
}

static bool
take_month(const char **at, struct tm *tm)
{
	tm->tm_mon = take_word(at, months, NMONTHS);
	return tm->tm_mon >= 0;
}

/* Exactly `n` digits. */
static bool
take_number(const char **at, int n, int *out)
{
	*out = 0;
	for (; n > 0; n--, (*at)++) {
		if (!is_digit(**at))
			return false;
		*out = *out * 10 + **at - '0';
	}
	return true;
}

/* Two digits, or a space and one. */
static bool
take_padded_day(const char **at, struct tm *tm)
{
	int n = take(at, " ") ? 1 : 2;

	return take_number(at, n, &tm->tm_mday);
}

static bool
take_clock(const char **at, struct tm *tm)
{
	return take_number(at, 2, &tm->tm_hour) && tm->tm_hour <= 23 &&
	       take(at, ":") && take_number(at, 2, &tm->tm_min) &&
	       tm->tm_min <= 59 && take(at, ":") &&
	       take_number(at, 2, &tm->tm_sec) && tm->tm_sec <= 60;
}

static bool
take_year(const char **at, struct tm *tm)
{
	bool found = take_number(at, 4, &tm->tm_year);

	tm->tm_year -= 1900;
	return found;
}

/* Two digits: the year that is at most 50 years ahead, by RFC 9110 5.6.7. */
static bool
take_short_year(const char **at, struct tm *tm, usec_t now)
{
	time_t seconds = (time_t)(now / USEC_PER_SEC);
	struct tm today;

	if (!take_number(at, 2, &tm->tm_year) ||
	    gmtime_r(&seconds, &today) == NULL)
		return false;
	while (tm->tm_year <= today.tm_year - 50)
		tm->tm_year += 100;
	return true;
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool
take_imf_date(const char *at, struct tm *tm)
{
	return take_word(&at, days, NDAYS) >= 0 && take(&at, ", ") &&
	       take_number(&at, 2, &tm->tm_mday) && take(&at, " ") &&
	       take_month(&at, tm) && take(&at, " ") && take_year(&at, tm) &&
	       take(&at, " ") && take_clock(&at, tm) && take(&at, " GMT") &&
	       is_end(at);
}

/* Sunday, 06-Nov-94 08:49:37 GMT */
static bool
take_rfc850_date(const char *at, struct tm *tm, usec_t now)
{
	return take_word(&at, long_days, NDAYS) >= 0 && take(&at, ", ") &&
	       take_number(&at, 2, &tm->tm_mday) && take(&at, "-") &&
	       take_month(&at, tm) && take(&at, "-") &&
	       take_short_year(&at, tm, now) && take(&at, " ") &&
	       take_clock(&at, tm) && take(&at, " GMT") && is_end(at);
}

/* Sun Nov  6 08:49:37 1994 */
static bool
take_asctime_date(const char *at, struct tm *tm)
{
	return take_word(&at, days, NDAYS) >= 0 && take(&at, " ") &&
	       take_month(&at, tm) && take(&at, " ") &&
	       take_padded_day(&at, tm) && take(&at, " ") &&
	       take_clock(&at, tm) && take(&at, " ") && take_year(&at, tm) &&
	       is_end(at);
}

/* False for the 30th of February and its like. */
static bool
is_in_calendar(struct tm tm)
{
	int day = tm.tm_mday;

	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	(void)timegm(&tm);
	return tm.tm_mday == day;
}

static usec_t
until(struct tm *tm, usec_t now)
{
	usec_t wait = (usec_t)timegm(tm) * USEC_PER_SEC - now;

	if (wait < 0)
		return 0;
	return wait < RETRY_AFTER_MAX ? wait : RETRY_AFTER_MAX;
}

/* From a digit on; what is beyond the most is not even counted. */
static usec_t
parse_seconds(const char *at)
{
	usec_t wait = 0;
	bool has_fraction = false;

	for (; is_digit(*at); at++)
		if (wait < RETRY_AFTER_MAX)
			wait = wait * 10 + (*at - '0') * USEC_PER_SEC;
	if (*at == '.') {
		if (!is_digit(*++at))
			return -1;
		for (; is_digit(*at); at++)
			has_fraction |= *at != '0';
	}
	if (!is_end(at))
		return -1;
	if (has_fraction)
		wait += USEC_PER_SEC;
	return wait < RETRY_AFTER_MAX ? wait : RETRY_AFTER_MAX;
}

usec_t
retry_after_parse(const char *value, usec_t now)
{
	const char *at = skip_space(value);
	struct tm tm = { 0 };

	if (is_digit(*at))
		return parse_seconds(at);
	if (!take_imf_date(at, &tm) && !take_rfc850_date(at, &tm, now) &&
	    !take_asctime_date(at, &tm))
		return -1;
	return is_in_calendar(tm) ? until(&tm, now) : -1;
}
