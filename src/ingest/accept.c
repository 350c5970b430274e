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

/* What the range says that fits best, of those so far. */
struct choice {
	enum fit fit;
	bool takes;
};

static void
choose(struct choice *best, const char *text, const char *type)
{
	while (*text != '\0') {
		const char *range = text + strspn(text, " \t,");
		const char *end = range + strcspn(range, ",");
		size_t len = strcspn(range, "; \t,");
		enum fit fit = compare(range, len, type);

		if (fit > best->fit)
			*best =
			    (struct choice){ fit, is_wanted(range + len, end) };
		text = end;
	}
}

bool
accept_takes(const struct request *request, const char *type)
{
	const char *text = request_header(request, "Accept");
	struct choice best = { FITS_NOT, false };
	bool is_empty = true;

	/* RFC 9110 5.3: several lines are one list. */
	while (text != NULL) {
		is_empty = is_empty && *text == '\0';
		choose(&best, text, type);
		text = request_next_header(request, "Accept", text);
	}
	return is_empty || best.takes;
}
