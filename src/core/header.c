#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "core/header.h"

static const char framed[] =
    "is reserved: the HTTP client sets it, or has no use for it";
static const char ours[] = "is reserved: Postrider sets it";
static const char origin[] =
    "is reserved: it says on whose behalf a request comes, which servers "
    "behind a proxy believe";
static const char metadata[] =
    "is reserved: clouds hand out credentials for it";

/* In lower case; a "-" at the end stands for all that begin so. */
static const struct {
	const char *name, *why;
} reserved[] = {
	{ "accept-encoding", framed },
	{ "connection", framed },
	{ "content-", ours },
	{ "expect", framed },
	{ "forwarded", origin },
	{ "host", framed },
	{ "http2-settings", framed },
	{ "keep-alive", framed },
	{ "metadata", metadata },
	{ "metadata-", metadata },
	{ "postrider-", ours },
	{ "proxy-", framed },
	{ "te", framed },
	{ "trailer", framed },
	{ "transfer-encoding", framed },
	{ "upgrade", framed },
	{ "user-agent", ours },
	{ "webhook-", ours },
	{ "x-aws-ec2-metadata-", metadata },
	{ "x-event-id", ours },
	{ "x-forwarded-", origin },
	{ "x-google-metadata-request", metadata },
	{ "x-real-ip", origin },
	{ "x-webhook-signature", ours },
	{ "x-webhook-timestamp", ours },
};

/* RFC 9110, 5.6.2: tchar. */
static bool
is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool
matches(const char *rule, const char *name, size_t len)
{
	size_t n = strlen(rule);
	bool is_prefix = rule[n - 1] == '-';

	return (is_prefix ? len >= n : len == n) &&
	       strncasecmp(rule, name, n) == 0;
}

const char *
header_name_fault(const char *name, size_t len)
{
	if (len == 0)
		return "is empty";
	if (len > HEADER_NAME_MAX)
		return "is over 64 characters";
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(name[i]))
			return "has a character that is none of A-Z, a-z, "
			       "0-9 and !#$%&'*+-.^_`|~";
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (matches(reserved[i].name, name, len))
			return reserved[i].why;
	return NULL;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

const char *
header_value_fault(const char *value, size_t len)
{
	if (len == 0)
		return "is empty";
	if (len > HEADER_VALUE_MAX)
		return "is over 4096 characters";
	if (is_blank(value[0]) || is_blank(value[len - 1]))
		return "begins or ends with a blank, which would be lost";
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)value[i];

		if (c >= 0x80)
			return "has a character beyond ASCII: write it in "
			       "base64 or percent-encoded, as the receiver "
			       "expects";
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return "has a control character";
	}
	return NULL;
}
