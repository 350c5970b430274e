#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "host.h"

enum { LABEL_MAX = 63 };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static char
to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* RFC 3492 section 6.1, with the parameters of section 5. */
static uint32_t
adapt_bias(uint32_t delta, uint32_t count, bool is_first)
{
	uint32_t k = 0;

	delta /= is_first ? 700 : 2;
	delta += delta / count;
	for (; delta > 455; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/* One variable-length integer, section 3.3, added to `*i`. */
static int
read_delta(const char **at, const char *end, uint32_t bias, uint32_t *i)
{
	uint32_t weight = 1;

	for (uint32_t k = 36;; k += 36) {
		uint32_t digit, threshold;
		char c;

		if (*at == end)
			return -1;
		c = *(*at)++;
		if (is_letter(c))
			digit = (uint32_t)(c - 'a');
		else if (is_digit(c))
			digit = (uint32_t)(c - '0') + 26;
		else
			return -1;
		if (digit > (UINT32_MAX - *i) / weight)
			return -1;
		*i += digit * weight;
		threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
		if (digit < threshold)
			return 0;
		if (weight > UINT32_MAX / (36 - threshold))
			return -1;
		weight *= 36 - threshold;
	}
}

/* A character that a name can hold: no control, surrogate or non-character. */
static bool
is_name_character(uint32_t c)
{
	return c >= 0xa0 && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) &&
	       (c < 0xfdd0 || c > 0xfdef) && (c & 0xfffe) != 0xfffe &&
	       c != 0xfffd;
}

/* Decode what follows "xn--" (RFC 3492 section 6.2) to see that it stands for
 * a name; the characters themselves are of no use to us. */
static bool
is_punycode(const char *text, size_t len)
{
	const char *at = text, *end = text + len;
	uint32_t n = 128, i = 0, bias = 72, count = 0;

	for (const char *p = end; p > text; p--)
		if (p[-1] == '-') {
			count = (uint32_t)(p - 1 - text);
			at = p;
			break;
		}
	if (at == end)
		return false;
	for (bool is_first = true; at < end; is_first = false, i++) {
		uint32_t before = i;

		if (read_delta(&at, end, bias, &i) != 0)
			return false;
		count++;
		bias = adapt_bias(i - before, count, is_first);
		n += i / count;
		i %= count;
		if (!is_name_character(n))
			return false;
	}
	return true;
}

/* RFC 1123 section 2.1, RFC 5891 section 4.2.3.1. */
static const char *
label_fault(const char *label, size_t len)
{
	if (len == 0)
		return "an empty label, or a dot at its end";
	if (len > LABEL_MAX)
		return "a label of more than 63 octets";
	for (size_t i = 0; i < len; i++)
		if (!is_letter(label[i]) && !is_digit(label[i]) &&
		    label[i] != '-')
			return "a character that is no letter, digit or hyphen "
			       "(write an international name in punycode)";
	if (label[0] == '-' || label[len - 1] == '-')
		return "a label that starts or ends with a hyphen";
	if (len < 4 || label[2] != '-' || label[3] != '-')
		return NULL;
	if (memcmp(label, "xn", 2) != 0 || !is_punycode(label + 4, len - 4))
		return "a label that is no valid punycode";
	return NULL;
}

static const char *
name_fault(const char *name)
{
	for (const char *label = name;; label++) {
		size_t len = strcspn(label, ".");
		const char *fault = label_fault(label, len);

		if (fault != NULL)
			return fault;
		/* No top level does, but odd spellings of addresses do. */
		if (label[len] == '\0')
			return is_digit(label[0])
			           ? "a last label that starts with a digit"
			           : NULL;
		label += len;
	}
}

/* URL Standard, "ends in a number": such a host is an address or nothing. */
static bool
ends_in_number(const char *host)
{
	const char *dot, *last;
	size_t len = strlen(host);

	if (len > 0 && host[len - 1] == '.')
		len--;
	for (dot = host + len; dot > host && dot[-1] != '.'; dot--)
		;
	last = dot;
	len -= (size_t)(last - host);
	if (len >= 2 && last[0] == '0' && last[1] == 'x')
		return strspn(last + 2, "0123456789abcdef") >= len - 2;
	return len > 0 && strspn(last, "0123456789") >= len;
}

static int
parse_ipv4(struct host *out, struct err *err)
{
	out->is_literal = true;
	out->address.v4.sin_family = AF_INET;
	/* inet_pton() takes four decimal parts without leading zeros only. */
	if (inet_pton(AF_INET, out->text, &out->address.v4.sin_addr) != 1)
		return err_set(err, ERR_REFUSED,
		    "the host is an odd spelling of an IPv4 address: write it "
		    "as four decimal numbers");
	return 0;
}

static int
parse_ipv6(struct host *out, struct err *err)
{
	char inner[INET6_ADDRSTRLEN];
	size_t len = strlen(out->text);

	out->is_literal = true;
	out->address.v6.sin6_family = AF_INET6;
	if (len < 4 || len - 2 >= sizeof(inner) || out->text[len - 1] != ']')
		goto fail;
	memcpy(inner, out->text + 1, len - 2);
	inner[len - 2] = '\0';
	if (strspn(inner, "0123456789abcdef:") != len - 2 ||
	    inet_pton(AF_INET6, inner, &out->address.v6.sin6_addr) != 1)
		goto fail;
	(void)inet_ntop(
	    AF_INET6, &out->address.v6.sin6_addr, inner, sizeof(inner));
	(void)snprintf(out->text, sizeof(out->text), "[%s]", inner);
	return 0;

fail:
	return err_set(err, ERR_REFUSED,
	    "the host is no plain IPv6 address: write hexadecimal groups in "
	    "brackets, without a zone");
}

int
host_parse(struct host *out, const char *text, size_t len, struct err *err)
{
	const char *fault;

	*out = (struct host){ .is_literal = false };
	if (len == 0)
		return err_set(err, ERR_REFUSED, "the host is missing");
	if (len > TARGET_HOST_MAX)
		return err_set(err, ERR_REFUSED,
		    "the host is longer than %d octets", TARGET_HOST_MAX);
	if (memchr(text, '\0', len) != NULL)
		return err_set(err, ERR_REFUSED, "the host contains a NUL");
	for (size_t i = 0; i < len; i++)
		out->text[i] = to_lower(text[i]);

	if (out->text[0] == '[')
		return parse_ipv6(out, err);
	if (ends_in_number(out->text))
		return parse_ipv4(out, err);
	fault = name_fault(out->text);
	if (fault != NULL)
		return err_set(err, ERR_REFUSED, "the host has %s", fault);
	return 0;
}

/* Special-use names (RFC 6761, 6762, 7686, 8375, ICANN's "internal") and what
 * containers and hosts files call themselves. */
static const struct {
	const char *suffix, *why;
} internal[] = {
	{ "localhost", "localhost is this machine" },
	{ "localdomain", "localdomain is this machine's own network" },
	{ "local", "names under local are of a local network" },
	{ "internal", "names under internal are of an inner network" },
	{ "svc", "names under svc are of a cluster" },
	{ "home.arpa", "names under home.arpa are of a home network" },
	{ "onion", "names under onion are not in the DNS" },
	{ "invalid", "names under invalid never resolve" },
};

static bool
ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);

	if (len < tail || strcmp(name + len - tail, suffix) != 0)
		return false;
	return len == tail || name[len - tail - 1] == '.';
}

const char *
host_internal_name(const char *name)
{
	for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++)
		if (ends_in(name, internal[i].suffix))
			return internal[i].why;
	if (strchr(name, '.') == NULL)
		return "a name of one label is of an inner network";
	return NULL;
}
