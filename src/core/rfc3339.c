#include <assert.h>
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

/* The last `n` digits. */
static char *
put_number(char *at, int64_t value, int n)
{
	for (int i = n - 1; i >= 0; i--, value /= 10)
		at[i] = (char)('0' + value % 10);
	return at + n;
}

/* Of the Gregorian calendar, counted in years that begin with March, so that
 * the day that may be missing is the last: eras of 400 years repeat. */
static char *
put_date(char *at, int64_t days)
{
	int64_t since = days + 719468; /* 1 March of the year 0 */
	int64_t era = since / 146097, day = since % 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t month;

	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	month = month < 10 ? month + 3 : month - 9;
	at = put_number(at, era * 400 + year + (month <= 2), 4);
	*at++ = '-';
	at = put_number(at, month, 2);
	*at++ = '-';
	return put_number(at, day + 1, 2);
}

size_t
rfc3339_print(char out[RFC3339_SIZE], usec_t time, int digits)
{
	int64_t seconds = time / USEC_PER_SEC;
	usec_t fraction = time % USEC_PER_SEC;
	char *at = put_date(out, seconds / 86400);

	assert(time >= 0 && digits >= 1 && digits <= 6);
	*at++ = 'T';
	at = put_number(at, seconds / 3600 % 24, 2);
	*at++ = ':';
	at = put_number(at, seconds / 60 % 60, 2);
	*at++ = ':';
	at = put_number(at, seconds % 60, 2);
	*at++ = '.';
	(void)put_number(at, fraction, 6);
	at += digits;
	*at++ = 'Z';
	*at = '\0';
	return (size_t)(at - out);
}
