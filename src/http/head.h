/*
 * head: the request line and headers of a request, from bytes to values.
 *
 * Pure, strict, and ours on purpose: Debian's http_parser is built without its
 * strict mode and takes bare LF, names with spaces and any two octets for
 * CRLF, so each check would have to be made before it anyway.  Where RFC 9112
 * leaves a choice that request smuggling lives on, the answer here is no.
 */

#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_FIELDS_MAX = 100 };

/* Why a request is refused: a status and a constant sentence; 0 if it is not. */
struct refusal {
	int status;
	const char *detail;
};

#define ACCEPTED ((struct refusal){ 0, NULL })

struct head_field {
	const char *name; /* as it was sent */
	const char *value; /* without the white space around it */
};

/* Its texts lie in the bytes that were parsed. */
struct head {
	const char *method;
	const char *path; /* still escaped; "*" for OPTIONS alone */
	const char *query; /* without '?'; "" if none */
	int minor; /* of the version 1.x */
	bool is_chunked;
	bool closes; /* the connection ends after the answer */
	bool expects_continue;
	uint64_t length; /* of the body, if not chunked; saturates */
	int nfields;
	struct head_field fields[HEAD_FIELDS_MAX];
};

/* An empty head: every text is "". */
void head_init(struct head *head);

/* How far the search for the end has come. Zeroed to begin with. */
struct head_scan {
	size_t at; /* octets looked at */
	size_t line; /* where the present line begins */
};

enum head_found { HEAD_MORE, HEAD_WHOLE, HEAD_BAD };

/*
 * Look on in `bytes`, which hold the same octets as last time and perhaps
 * more.  HEAD_WHOLE: the head, its empty line included, is the first
 * `scan->at` octets.  HEAD_BAD: an octet that no head may hold, such as a bare
 * CR or LF; there is no need to wait for the end.
 */
enum head_found head_scan(
    struct head_scan *scan, const char *bytes, size_t len);

/* Parse a head that head_scan() found whole.  `text` is split in place.  When
 * it is refused, `*head` is empty. */
struct refusal head_parse(struct head *head, char *text, size_t len);

/* The value of the first field of this name, in any case, behind the one whose
 * value `behind` is, or of all if that is NULL; NULL if none. */
const char *head_value(
    const struct head *head, const char *name, const char *behind);

/* True if `value` is a valid uri-host with an optional port. */
bool head_is_host(const char *value, size_t len);

/* True for the octets of a token, RFC 9110 5.6.2. */
bool head_is_token(unsigned char c);

/* True for the octets that no line may hold: controls other than tab. */
bool head_is_control(unsigned char c);

#endif
