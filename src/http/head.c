#include <string.h>
#include <strings.h>

#include "head.h"

enum { HOST_MAX = 255, PORT_DIGITS_MAX = 5 };

/* What the head says of itself; NULL where it is silent. */
struct claims {
	const char *authority; /* of a target in absolute form */
	size_t authority_len;
	const char *authorization, *coding, *expect, *host, *length;
};

static struct refusal
refuse(int status, const char *detail)
{
	return (struct refusal){ status, detail };
}

static bool
is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_hex(unsigned char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
is_alnum(unsigned char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* strchr() finds the terminator too. */
static bool
is_one_of(unsigned char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

bool
head_is_token(unsigned char c)
{
	return is_alnum(c) || is_one_of(c, "!#$%&'*+-.^_`|~");
}

bool
head_is_control(unsigned char c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

void
head_init(struct head *head)
{
	head->method = head->path = head->query = "";
	head->minor = 1;
	head->is_chunked = head->closes = head->expects_continue = false;
	head->length = 0;
	head->nfields = 0;
}

enum head_found
head_scan(struct head_scan *scan, const char *bytes, size_t len)
{
	for (size_t at = scan->at; at < len; scan->at = at) {
		unsigned char c = (unsigned char)bytes[at++];

		if (!head_is_control(c))
			continue;
		if (c != '\r')
			return HEAD_BAD;
		if (at == len)
			return HEAD_MORE;
		if (bytes[at++] != '\n')
			return HEAD_BAD;
		if (at - scan->line == 2) {
			scan->at = at;
			return HEAD_WHOLE;
		}
		scan->line = at;
	}
	return HEAD_MORE;
}

static bool
is_port(const char *text, size_t len)
{
	if (len > PORT_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_digit((unsigned char)text[i]))
			return false;
	return true;
}

bool
head_is_host(const char *value, size_t len)
{
	bool is_literal = len > 0 && value[0] == '[';
	size_t n = is_literal ? 1 : 0;

	while (n < len &&
	       (is_literal ? is_hex((unsigned char)value[n]) ||
				 is_one_of((unsigned char)value[n], ":.")
			   : is_alnum((unsigned char)value[n]) ||
				 is_one_of((unsigned char)value[n], "-._")))
		n++;
	if (is_literal && (n < 3 || n == len || value[n++] != ']'))
		return false;
	if (n == 0 || n > HOST_MAX)
		return false;
	return n == len ||
	       (value[n] == ':' && is_port(value + n + 1, len - n - 1));
}

/* Only the methods that some route could serve; the rest is 501. */
static bool
is_known(const char *method)
{
	static const char *const known[] = {
		"GET",
		"POST",
		"HEAD",
		"PUT",
		"PATCH",
		"DELETE",
		"OPTIONS",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(method, known[i]) == 0)
			return true;
	return false;
}

static struct refusal
check_method(const char *method)
{
	const char *p = method;

	while (head_is_token((unsigned char)*p))
		p++;
	if (p == method || *p != '\0')
		return refuse(400, "the method is not a token");
	if (!is_known(method))
		return refuse(501, "no such method is served here");
	return ACCEPTED;
}

static struct refusal
parse_version(struct head *head, const char *version)
{
	if (strncmp(version, "HTTP/", 5) != 0 ||
	    !is_digit((unsigned char)version[5]) || version[6] != '.' ||
	    !is_digit((unsigned char)version[7]) || version[8] != '\0')
		return refuse(
		    400, "the request line does not end in a version");
	if (version[5] != '1')
		return refuse(505, "only HTTP/1.1 and HTTP/1.0 are served");
	head->minor = version[7] - '0';
	head->closes = head->minor == 0;
	return ACCEPTED;
}

/* RFC 3986: path and query, with whole escapes. */
static bool
is_path_and_query(const char *p)
{
	for (; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '%' && is_hex((unsigned char)p[1]) &&
		    is_hex((unsigned char)p[2]))
			continue;
		if (!is_alnum(c) && !is_one_of(c, "-._~!$&'()*+,;=:@/?"))
			return false;
	}
	return true;
}

/* The path of a target in absolute form; NULL if it is none. */
static char *
skip_authority(char *target, struct claims *claims)
{
	char *path;

	if (strncasecmp(target, "http://", 7) == 0)
		target += 7;
	else if (strncasecmp(target, "https://", 8) == 0)
		target += 8;
	else
		return NULL;
	path = target + strcspn(target, "/?");
	claims->authority = target;
	claims->authority_len = (size_t)(path - target);
	return head_is_host(target, claims->authority_len) ? path : NULL;
}

static struct refusal
parse_target(struct head *head, char *target, struct claims *claims)
{
	char *path = target, *query;

	if (strcmp(target, "*") == 0) {
		if (strcmp(head->method, "OPTIONS") != 0)
			return refuse(400, "the target * is for OPTIONS only");
		head->path = target;
		return ACCEPTED;
	}
	if (target[0] != '/') {
		path = skip_authority(target, claims);
		if (path == NULL)
			return refuse(400, "the target is no path");
	}
	if (!is_path_and_query(path))
		return refuse(400, "the target has an octet to be escaped");
	query = strchr(path, '?');
	if (query != NULL) {
		*query = '\0';
		head->query = query + 1;
	}
	head->path = *path == '\0' ? "/" : path;
	return ACCEPTED;
}

/* Cut `*text` at the next space; NULL if there is none. */
static char *
next_word(char **text)
{
	char *word = *text, *space = strchr(word, ' ');

	if (space == NULL)
		return NULL;
	*space = '\0';
	*text = space + 1;
	return word;
}

static struct refusal
parse_line(struct head *head, char *line, struct claims *claims)
{
	char *method = next_word(&line);
	char *target = method == NULL ? NULL : next_word(&line);
	struct refusal refusal;

	if (target == NULL)
		return refuse(400, "the request line is not of three words");
	refusal = parse_version(head, line);
	if (refusal.status != 0)
		return refusal;
	refusal = check_method(method);
	if (refusal.status != 0)
		return refusal;
	head->method = method;
	return parse_target(head, target, claims);
}

static struct refusal
parse_field(struct head *head, char *line, char *end)
{
	char *p = line;

	while (head_is_token((unsigned char)*p))
		p++;
	if (p == line && (*p == ' ' || *p == '\t'))
		return refuse(400, "a header is folded");
	if (p == line || *p != ':')
		return refuse(400, "a header's name is not a token");
	if (head->nfields == HEAD_FIELDS_MAX)
		return refuse(431, "there are too many headers");
	*p++ = '\0';
	while (*p == ' ' || *p == '\t')
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	head->fields[head->nfields++] = (struct head_field){ line, p };
	return ACCEPTED;
}

/* RFC 9110 7.6.1: a list, in any case; the one option of meaning is close. */
static bool
has_close(const char *list)
{
	size_t n;

	for (; *list != '\0'; list += n) {
		list += strspn(list, " \t,");
		n = strcspn(list, " \t,");
		if (n == 5 && strncasecmp(list, "close", n) == 0)
			return true;
	}
	return false;
}

/* Fields that may come once only: a second one is how two readers differ. */
static struct refusal
note_field(
    struct head *head, struct claims *claims, const struct head_field *field)
{
	const struct {
		const char *name;
		const char **value;
	} once[] = {
		{ "Host", &claims->host },
		{ "Content-Length", &claims->length },
		{ "Transfer-Encoding", &claims->coding },
		{ "Expect", &claims->expect },
		{ "Authorization", &claims->authorization },
	};

	if (strcasecmp(field->name, "Connection") == 0 &&
	    has_close(field->value))
		head->closes = true;
	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
		if (strcasecmp(field->name, once[i].name) != 0)
			continue;
		if (*once[i].value != NULL)
			return refuse(400, "a header that may come once is "
					   "there twice");
		*once[i].value = field->value;
	}
	return ACCEPTED;
}

static struct refusal
parse_length(struct head *head, const char *text)
{
	uint64_t value = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (!is_digit((unsigned char)*p))
			return refuse(400, "Content-Length is no number");
		if (value > (UINT64_MAX - 9) / 10)
			value = UINT64_MAX; /* refused as too large later */
		else
			value = value * 10 + (uint64_t)(*p - '0');
	}
	if (text[0] == '\0')
		return refuse(400, "Content-Length is empty");
	head->length = value;
	return ACCEPTED;
}

static struct refusal
judge_body(struct head *head, const struct claims *claims)
{
	if (claims->coding != NULL && claims->length != NULL)
		return refuse(
		    400, "both Content-Length and Transfer-Encoding are there");
	if (claims->coding != NULL && head->minor == 0)
		return refuse(400, "HTTP/1.0 has no Transfer-Encoding");
	if (claims->coding != NULL) {
		if (strcasecmp(claims->coding, "chunked") != 0)
			return refuse(
			    501, "the only Transfer-Encoding is chunked");
		head->is_chunked = true;
		return ACCEPTED;
	}
	if (claims->length != NULL)
		return parse_length(head, claims->length);
	if (head->method[0] == 'P') /* POST, PUT, PATCH */
		return refuse(411, "a Content-Length is needed");
	return ACCEPTED;
}

static struct refusal
judge(struct head *head, const struct claims *claims)
{
	const char *host = claims->host;

	if (host == NULL && head->minor > 0)
		return refuse(400, "Host is missing");
	if (host != NULL && !head_is_host(host, strlen(host)))
		return refuse(400, "Host is no host");
	if (host != NULL && claims->authority != NULL &&
	    (strlen(host) != claims->authority_len ||
		strncasecmp(host, claims->authority, strlen(host)) != 0))
		return refuse(400, "the target and Host differ");
	if (claims->expect != NULL && head->minor > 0) {
		if (strcasecmp(claims->expect, "100-continue") != 0)
			return refuse(417, "only 100-continue can be expected");
		head->expects_continue = true;
	}
	return judge_body(head, claims);
}

static struct refusal
parse(struct head *head, char *text, size_t len)
{
	const char *last = text + len - 2; /* the empty line */
	char *line = text, *end = memchr(line, '\r', len);
	struct claims claims = { 0 };
	struct refusal refusal;

	*end = '\0';
	refusal = parse_line(head, line, &claims);
	for (line = end + 2; line < last; line = end + 2) {
		if (refusal.status != 0)
			return refusal;
		end = memchr(line, '\r', (size_t)(last - line));
		*end = '\0';
		refusal = parse_field(head, line, end);
		if (refusal.status == 0)
			refusal = note_field(
			    head, &claims, &head->fields[head->nfields - 1]);
	}
	return refusal.status != 0 ? refusal : judge(head, &claims);
}

struct refusal
head_parse(struct head *head, char *text, size_t len)
{
	struct refusal refusal;

	head_init(head);
	refusal = parse(head, text, len);
	if (refusal.status != 0)
		head_init(head);
	return refusal;
}

const char *
head_value(const struct head *head, const char *name, const char *behind)
{
	bool is_behind = behind == NULL;

	for (int i = 0; i < head->nfields; i++) {
		const char *value = head->fields[i].value;

		if (is_behind && strcasecmp(head->fields[i].name, name) == 0)
			return value;
		is_behind = is_behind || value == behind;
	}
	return NULL;
}
