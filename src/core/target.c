#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "core/address.h"
#include "host.h"
#include "core/target.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443, PORT_DIGITS = 5 };

/* The parts of a URL: they lend from its text. */
struct parts {
	bool is_https;
	const char *host;
	size_t host_len;
	const char *port; /* NULL if none is written */
	size_t port_len;
	const char *path; /* path and query, as they are sent */
	size_t path_len;
};

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
	       (c >= 'A' && c <= 'F');
}

/* RFC 3986 leaves these out; parsers differ on what they make of them. */
static int
check_characters(const char *url, size_t len, struct err *err)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)url[i];

		if (c == '#')
			return err_set(err, ERR_REFUSED,
			    "the URL has a fragment (#): leave it out");
		if (c <= 0x20 || c >= 0x7f || strchr("\"<>\\^`{|}", c) != NULL)
			return err_set(err, ERR_REFUSED,
			    "octet 0x%02x at position %zu may not stand in a "
			    "URL: percent-encode it",
			    c, i);
	}
	return 0;
}

static int
split_scheme(
    struct parts *parts, const char **at, const char *end, struct err *err)
{
	size_t len = (size_t)(end - *at);

	if (len >= 8 && strncasecmp(*at, "https://", 8) == 0) {
		parts->is_https = true;
		*at += 8;
		return 0;
	}
	if (len >= 7 && strncasecmp(*at, "http://", 7) == 0) {
		*at += 7;
		return 0;
	}
	return err_set(err, ERR_REFUSED, "the URL must begin with https://");
}

/* Split "host", "host:port", "[v6]" or "[v6]:port". */
static int
split_authority(
    struct parts *parts, const char *at, size_t len, struct err *err)
{
	const char *end = at + len, *from = at, *colon;

	if (memchr(at, '@', len) != NULL)
		return err_set(err, ERR_REFUSED,
		    "the URL has credentials or an @ before its host: leave "
		    "them out");
	if (len > 0 && *at == '[') {
		from = memchr(at, ']', len);
		if (from == NULL)
			return err_set(err, ERR_REFUSED,
			    "the host has no closing bracket");
		from++;
		if (from < end && *from != ':')
			return err_set(err, ERR_REFUSED,
			    "something stands between ] and the port");
	}
	colon = memchr(from, ':', (size_t)(end - from));
	parts->host = at;
	parts->host_len = (size_t)((colon != NULL ? colon : end) - at);
	if (colon != NULL) {
		parts->port = colon + 1;
		parts->port_len = (size_t)(end - parts->port);
	}
	return 0;
}

/* Characters are known to be good ones; see that they stand where they may. */
static int
check_path(const struct parts *parts, struct err *err)
{
	const char *path = parts->path;
	bool in_query = false;

	for (size_t i = 0; i < parts->path_len; i++) {
		if (path[i] == '?')
			in_query = true;
		if (path[i] == '%' &&
		    (i + 2 >= parts->path_len || !is_hex(path[i + 1]) ||
			!is_hex(path[i + 2])))
			return err_set(err, ERR_REFUSED,
			    "a %% in the URL is not followed by two "
			    "hexadecimal digits: write %%25");
		/* Not in RFC 3986 either, but usual in queries. */
		if ((path[i] == '[' || path[i] == ']') && !in_query)
			return err_set(err, ERR_REFUSED,
			    "a bracket in the path: write %%5B or %%5D");
	}
	return 0;
}

static int
split(struct parts *parts, const char *url, size_t len, struct err *err)
{
	const char *at = url, *end = url + len;
	size_t n;

	*parts = (struct parts){ .is_https = false };
	if (len > TARGET_URL_MAX)
		return err_set(err, ERR_REFUSED,
		    "the URL is longer than %d octets", TARGET_URL_MAX);
	if (check_characters(url, len, err) != 0 ||
	    split_scheme(parts, &at, end, err) != 0)
		return -1;
	for (n = 0; at + n < end && at[n] != '/' && at[n] != '?'; n++)
		;
	if (split_authority(parts, at, n, err) != 0)
		return -1;
	parts->path = at + n;
	parts->path_len = (size_t)(end - parts->path);
	return check_path(parts, err);
}

static int
parse_port(uint16_t *out, const struct parts *parts, struct err *err)
{
	unsigned port = 0;

	if (parts->port == NULL) {
		*out = parts->is_https ? HTTPS_PORT : HTTP_PORT;
		return 0;
	}
	if (parts->port_len == 0 || parts->port_len > PORT_DIGITS ||
	    parts->port[0] == '0')
		goto fail;
	for (size_t i = 0; i < parts->port_len; i++) {
		if (parts->port[i] < '0' || parts->port[i] > '9')
			goto fail;
		port = port * 10 + (unsigned)(parts->port[i] - '0');
	}
	if (port > UINT16_MAX)
		goto fail;
	*out = (uint16_t)port;
	return 0;

fail:
	return err_set(err, ERR_REFUSED,
	    "the port must be a number from 1 to 65535 without leading zeros");
}

/* Whether `host` is one of the comma-separated `list`. */
static bool
is_listed(const char *list, const char *host)
{
	size_t len = strlen(host);

	while (list != NULL && *list != '\0') {
		size_t n, end;

		list += strspn(list, ", \t");
		n = strcspn(list, ",");
		for (end = n; end > 0 && strchr(" \t", list[end - 1]); end--)
			;
		if (end == len && strncasecmp(list, host, len) == 0)
			return true;
		list += n;
	}
	return false;
}

static bool
is_loopback(const struct host *host)
{
	const char *why;

	if (!host->is_literal)
		return strcmp(host->text, "localhost") == 0;
	return address_judge(&host->address.any, &why) == ADDRESS_LOOPBACK;
}

/* The rules, in the order in which a person would want to hear of them. */
static int
judge(const struct target_site *site, const struct host *host,
    const struct target_policy *policy, struct err *err)
{
	bool is_open = policy->development && site->is_loopback;
	const char *why = NULL;

	if (!site->is_https && !is_open)
		return err_set(err, ERR_REFUSED, "http is refused: use https");
	if (host->is_literal)
		why = target_refuses(site, policy, &host->address.any);
	else if (!is_open && !site->is_allowed_host)
		why = host_internal_name(host->text);
	if (why != NULL)
		return err_set(err, ERR_REFUSED,
		    "the host is not on the public Internet: %s", why);
	if (site->port != HTTPS_PORT && !policy->any_port && !is_open)
		return err_set(err, ERR_REFUSED, "port %u is refused: use 443",
		    (unsigned)site->port);
	return 0;
}

static void
rebuild(struct target *target, const struct parts *parts)
{
	const struct target_site *site = &target->site;
	uint16_t usual = site->is_https ? HTTPS_PORT : HTTP_PORT;
	bool has_slash = parts->path_len > 0 && parts->path[0] == '/';
	char port[PORT_DIGITS + 2] = "";

	if (site->port != usual)
		(void)snprintf(port, sizeof(port), ":%u", (unsigned)site->port);
	/* It fits: shorter than what came, but for a slash and the like. */
	(void)snprintf(target->url, sizeof(target->url), "%s://%s%s%s%.*s",
	    site->is_https ? "https" : "http", site->host, port,
	    has_slash ? "" : "/", (int)parts->path_len, parts->path);
}

int
target_parse(struct target *out, const char *url, size_t len,
    const struct target_policy *policy, struct err *err)
{
	struct target_site *site = &out->site;
	struct parts parts;
	struct host host;

	out->url[0] = '\0';
	if (split(&parts, url, len, err) != 0 ||
	    host_parse(&host, parts.host, parts.host_len, err) != 0 ||
	    parse_port(&site->port, &parts, err) != 0)
		return -1;
	site->is_https = parts.is_https;
	site->is_literal = host.is_literal;
	site->is_loopback = is_loopback(&host);
	site->is_allowed_host = is_listed(policy->allow_hosts, host.text);
	memcpy(site->host, host.text, sizeof(site->host));
	if (judge(site, &host, policy, err) != 0)
		return -1;
	rebuild(out, &parts);
	return 0;
}

const char *
target_refuses(const struct target_site *site,
    const struct target_policy *policy, const struct sockaddr *address)
{
	const char *why = NULL;
	enum address_kind kind = address_judge(address, &why);

	/* What development opens stays on this machine, whatever a hosts file
	 * makes of localhost. */
	if (policy->development && site->is_loopback)
		return kind == ADDRESS_LOOPBACK ? NULL
		                                : "localhost is not loopback";
	if (site->is_allowed_host &&
	    (kind == ADDRESS_LOOPBACK || kind == ADDRESS_PRIVATE))
		return NULL;
	return why;
}
