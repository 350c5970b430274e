/*
 * Any octets as a URL: what is accepted has one stable form, of characters
 * that no parser stumbles over, and no literal that is not global.  libcurl
 * reads from it what we did.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "base/err.h"
#include "core/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct target_policy policies[] = {
	{ .allow_hosts = "" },
	{ .development = true, .allow_hosts = "" },
	{ .any_port = true, .allow_hosts = "db, 10.0.0.1,[fd00::1]" },
};

static void
check_part(CURLU *parser, CURLUPart part, const char *want)
{
	char *text = NULL;

	assert(
	    curl_url_get(parser, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK);
	assert(strcmp(text, want) == 0);
	curl_free(text);
}

static void
check_client(const struct target *target)
{
	CURLU *parser = curl_url();
	char port[8];

	assert(
	    curl_url_set(parser, CURLUPART_URL, target->url, 0) == CURLUE_OK);
	(void)snprintf(port, sizeof(port), "%u", (unsigned)target->site.port);
	check_part(
	    parser, CURLUPART_SCHEME, target->site.is_https ? "https" : "http");
	check_part(parser, CURLUPART_HOST, target->site.host);
	check_part(parser, CURLUPART_PORT, port);
	curl_url_cleanup(parser);
}

static void
check(const struct target *target, const struct target_policy *policy)
{
	struct target again;
	struct err err;

	assert(target->site.port != 0);
	assert(target->site.is_https || policy->development);
	assert(strspn(target->site.host,
		   "abcdefghijklmnopqrstuvwxyz0123456789-.[]:") ==
	       strlen(target->site.host));
	for (const char *p = target->url; *p != '\0'; p++)
		assert(*p > 0x20 && *p < 0x7f && *p != '\\' && *p != '#');
	assert(target_parse(&again, target->url, strlen(target->url), policy,
		   &err) == 0);
	assert(strcmp(again.url, target->url) == 0);
	assert(strcmp(again.site.host, target->site.host) == 0);
	assert(again.site.port == target->site.port);
	check_client(target);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = sizeof(policies) / sizeof(policies[0]);
	struct target target;
	struct err err;

	for (size_t i = 0; i < n; i++) {
		if (target_parse(&target, (const char *)data, size,
			&policies[i], &err) == 0)
			check(&target, &policies[i]);
		else
			assert(err.code == ERR_REFUSED && strlen(err.text) > 0);
	}
	return 0;
}
