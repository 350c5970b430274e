#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "base/err.h"
#include "revoked.h"

enum { FINGERPRINT = 32 };

struct revoked {
	struct buf prints; /* FINGERPRINT octets each, sorted */
};

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, FINGERPRINT);
}

/* -1 if `c` is no hexadecimal digit. */
static int
digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at =
	    c == '\0' ? NULL : strchr(digits, c >= 'A' ? c | 0x20 : c);

	return at == NULL ? -1 : (int)(at - digits);
}

/* Read a fingerprint that takes all of `text`. */
static bool
parse(unsigned char out[FINGERPRINT], const char *text)
{
	static const char label[] = "sha256 fingerprint=";

	if (strncasecmp(text, label, sizeof(label) - 1) == 0)
		text += sizeof(label) - 1;
	for (int i = 0; i < FINGERPRINT; i++) {
		int high, low;

		if (i > 0 && *text == ':')
			text++;
		high = digit(text[0]);
		low = high < 0 ? -1 : digit(text[1]);
		if (low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
		text += 2;
	}
	return *text == '\0';
}

/* Cut comment and space off `line`, at both ends. */
static char *
trim(char *line)
{
	size_t len;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t");
	len = strlen(line);
	while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL)
		line[--len] = '\0';
	return line;
}

/* Take one line, which getline() read as `len` octets. */
static int
read_line(struct revoked *revoked, char *line, size_t len)
{
	unsigned char print[FINGERPRINT];
	const char *text;

	if (strlen(line) != len) /* it has a NUL */
		return -1;
	text = trim(line);
	if (*text == '\0')
		return 0;
	if (!parse(print, text))
		return -1;
	buf_add(&revoked->prints, print, sizeof(print));
	return 0;
}

static int
read_lines(
    struct revoked *revoked, FILE *file, const char *path, struct err *err)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int number = 1, result = 0;

	while ((len = getline(&line, &size, file)) >= 0 && result == 0)
		if (read_line(revoked, line, (size_t)len) == 0)
			number++;
		else
			result = err_set(err, ERR_BROKEN,
			    "%s: line %d is no SHA-256 fingerprint", path,
			    number);
	if (result == 0 && !feof(file))
		result = err_errno(err, ERR_BROKEN, "%s", path);
	free(line);
	return result;
}

static int
read_file(struct revoked *revoked, const char *path, struct err *err)
{
	FILE *file = fopen(path, "re");
	int result;

	if (file == NULL)
		return err_errno(err, ERR_BROKEN, "%s", path);
	result = read_lines(revoked, file, path, err);
	(void)fclose(file);
	if (result == 0 && revoked->prints.failed)
		result = err_set(err, ERR_NOMEM, "revoked certificates");
	return result;
}

int
revoked_read(struct revoked **out, const char *path, struct err *err)
{
	struct revoked *revoked = calloc(1, sizeof(*revoked));

	if (revoked == NULL)
		return err_set(err, ERR_NOMEM, "revoked certificates");
	if (path[0] != '\0' && read_file(revoked, path, err) != 0) {
		revoked_free(revoked);
		return -1;
	}
	if (revoked->prints.len > 0)
		qsort(revoked->prints.data, revoked->prints.len / FINGERPRINT,
		    FINGERPRINT, compare);
	*out = revoked;
	return 0;
}

void
revoked_free(struct revoked *revoked)
{
	if (revoked == NULL)
		return;
	buf_fini(&revoked->prints);
	free(revoked);
}

static bool
has(const struct revoked *revoked, const X509 *certificate)
{
	unsigned char print[EVP_MAX_MD_SIZE];

	if (X509_digest(certificate, EVP_sha256(), print, NULL) != 1)
		return true;
	return bsearch(print, revoked->prints.data,
		   revoked->prints.len / FINGERPRINT, FINGERPRINT,
		   compare) != NULL;
}

bool
revoked_has_any(const struct revoked *revoked, const STACK_OF(X509) * chain)
{
	if (revoked->prints.len == 0)
		return false;
	for (int i = 0; i < sk_X509_num(chain); i++)
		if (has(revoked, sk_X509_value(chain, i)))
			return true;
	return false;
}
