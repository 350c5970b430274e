#include <stdbool.h>
#include <time.h>

#include "core/rfc3339.h"

/* What is left to read. */
struct reader {
	const char *at, *end;
};

static bool
take(struct reader *r, const char *either)
{
	if (r->at == r->end || (*r->at != either[0] && *r->at != either[1]))
		return false;
	r->at++;
	return true;
}

static bool
take_digit(struct reader *r, int *out)
{
	if (r->at == r->end || *r->at < '0' || *r->at > '9')
		return false;
	*out = *r->at++ - '0';
	return true;
}

/* Exactly `n` digits, and no more than `most`. */
static bool
take_number(struct reader *r, int n, int most, int *out)
{
	int digit;

	for (*out = 0; n > 0; n--) {
		if (!take_digit(r, &digit))
			return false;
		*out = *out * 10 + digit;
	}
	return *out <= most;
}

static bool
take_date(struct reader *r, struct tm *tm)
{
	if (!take_number(r, 4, 9999, &tm->tm_year) || !take(r, "--") ||
	    !take_number(r, 2, 12, &tm->tm_mon) || !take(r, "--") ||
	    !take_number(r, 2, 31, &tm->tm_mday))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	return true;
}

static bool
take_clock(struct reader *r, struct tm *tm)
{
	return take_number(r, 2, 23, &tm->tm_hour) && take(r, "::") &&
	       take_number(r, 2, 59, &tm->tm_min) && take(r, "::") &&
	       take_number(r, 2, 59, &tm->tm_sec);
}

/* What follows the seconds, if anything; digits beyond microseconds are cut. */
static bool
take_fraction(struct reader *r, usec_t *out)
{
	usec_t unit = USEC_PER_SEC / 10;
	int digit;

	*out = 0;
	if (!take(r, ".."))
		return true;
	if (!take_digit(r, &digit))
		return false;
	do {
		*out += digit * unit;
		unit /= 10;
	} while (take_digit(r, &digit));
	return true;
}

static bool
take_offset(struct reader *r, usec_t *out)
{
	int sign = 1, hours, minutes;

	*out = 0;
	if (take(r, "Zz"))
		return true;
	if (take(r, "--"))
		sign = -1;
	else if (!take(r, "++"))
		return false;
	if (!take_number(r, 2, 23, &hours) || !take(r, "::") ||
	    !take_number(r, 2, 59, &minutes))
		return false;
	*out = sign * (hours * 60 + minutes) * 60 * USEC_PER_SEC;
	return true;
}

usec_t
rfc3339_parse(const char *text, size_t len)
{
	struct reader r = { text, text + len };
	usec_t fraction, offset, time;
	struct tm tm = { 0 };
	int month, day;

	if (!take_date(&r, &tm) || !take(&r, "Tt") || !take_clock(&r, &tm) ||
	    !take_fraction(&r, &fraction) || !take_offset(&r, &offset) ||
	    r.at != r.end)
		return -1;
	month = tm.tm_mon;
	day = tm.tm_mday;
	time = (usec_t)timegm(&tm) * USEC_PER_SEC + fraction - offset;
	/* The 30th of February would now be in March. */
	if (tm.tm_mon != month || tm.tm_mday != day)
		return -1;
	return time < 0 ? -1 : time;
}
