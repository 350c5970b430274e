#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "accept.h"
#include "http/server.h"

/* How well a range fits a type. */
enum fit { FITS_NOT, FITS_ALL, FITS_KIND, FITS_EXACTLY };

static enum fit
compare(const char *range, size_t len, const char *type)
{
	size_t kind = strcspn(type, "/") + 1;

	if (len == 3 && memcmp(range, "*/*", 3) == 0)
		return FITS_ALL;
	if (len == kind + 1 && range[kind] == '*' &&
	    strncasecmp(range, type, kind) == 0)
		return FITS_KIND;
	if (len == strlen(type) && strncasecmp(range, type, len) == 0)
		return FITS_EXACTLY;
	return FITS_NOT;
}

/* Whether "0", "0." or "0.000" is all of a weight, which ends at `end`. */
static bool
is_zero(const char *weight, const char *end)
{
	size_t len = strspn(weight, "0.");

	return len > 0 && weight + len >= end;
}

/* Whether the parameters from `text` to `end` have no q, or one above 0. */
static bool
is_wanted(const char *text, const char *end)
{
	while (text < end) {
		size_t len;

		text += strspn(text, "; \t");
		len = strcspn(text, "; \t,");
		if (strncasecmp(text, "q=", 2) == 0 &&
		    is_zero(text + 2, text + len))
			return false;
		text += len;
	}
	return true;
}

bool
accept_takes(const struct request *request, const char *type)
{
	const char *text = request_header(request, "Accept");
	enum fit best = FITS_NOT;
	bool takes = text == NULL || *text == '\0';

	while (text != NULL && *text != '\0') {
		const char *range = text + strspn(text, " \t,");
		const char *end = range + strcspn(range, ",");
		size_t len = strcspn(range, "; \t,");
		enum fit fit = compare(range, len, type);

		if (fit > best) {
			best = fit;
			takes = is_wanted(range + len, end);
		}
		text = end;
	}
	return takes;
}
