#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "core/filter.h"
#include "core/utf8.h"

/* What is done for each value, in units, as measured: a comparison takes as long
 * as eight steps from one value to the next, or negations.  Of an index PostgreSQL
 * makes an array first if there is none. */
enum { COMPARISON = 8, METHOD = 8, INDEX = 16, STEP = 1 };

struct parse {
	const char *start, *at, *end;
	int weight;
	int depth;
	bool in_item; /* within "?(...)" */
	struct err *err;
};

static int
refuse(const struct parse *p, const char *what)
{
	return err_set(
	    p->err, ERR_REFUSED, "at octet %td: %s", p->at - p->start, what);
}

static bool
is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool
is_word(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       is_digit(c);
}

/* The next octet, as it is; -1 at the end. */
static int
peek(const struct parse *p)
{
	return p->at < p->end ? (unsigned char)*p->at : -1;
}

/* The same, past white space. */
static int
next(struct parse *p)
{
	while (p->at < p->end && strchr(" \t\n\r", *p->at) != NULL &&
	       *p->at != '\0')
		p->at++;
	return peek(p);
}

static bool
take(struct parse *p, const char *token)
{
	size_t len = strlen(token);

	(void)next(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len) != 0)
		return false;
	p->at += len;
	return true;
}

static size_t
word_len(const struct parse *p)
{
	const char *at = p->at;

	while (at < p->end && is_word((unsigned char)*at))
		at++;
	return (size_t)(at - p->at);
}

static bool
take_word(struct parse *p, const char *word)
{
	(void)next(p);
	if (word_len(p) != strlen(word) ||
	    memcmp(p->at, word, strlen(word)) != 0)
		return false;
	p->at += strlen(word);
	return true;
}

/* One of a list that NULL ends. */
static bool
take_any(struct parse *p, const char *const *tokens,
    bool (*take_one)(struct parse *p, const char *token))
{
	while (*tokens != NULL)
		if (take_one(p, *tokens++))
			return true;
	return false;
}

static bool
take_digits(struct parse *p)
{
	const char *start = p->at;

	while (is_digit(peek(p)))
		p->at++;
	return p->at > start;
}

/* As JSON has it: a zero that others follow is none. */
static bool
take_integer(struct parse *p)
{
	const char *start = p->at;

	return take_digits(p) && (*start != '0' || p->at == start + 1);
}

static int parse_or(struct parse *p);

static int
parse_string(struct parse *p)
{
	p->at++;
	while (peek(p) != '"') {
		size_t left = (size_t)(p->end - p->at);
		size_t n = left == 0 ? 0 : utf8_len(p->at, left);

		if (n == 0 || (unsigned char)*p->at < ' ')
			return refuse(p, "a string that does not end, or has "
					 "what is no character");
		if (*p->at == '\\' &&
		    (p->at + 1 == p->end ||
			strchr("\"\\/bfnrt", p->at[1]) == NULL ||
			p->at[1] == '\0'))
			return refuse(p, "an unknown escape in a string; write "
					 "characters as they are");
		p->at += *p->at == '\\' ? 2 : n;
	}
	p->at++;
	return 0;
}

/* As JSON has it, with an exponent of three digits at the most. */
static int
parse_number(struct parse *p)
{
	const char *start;

	(void)take(p, "-");
	(void)next(p);
	if (!take_integer(p))
		return refuse(p, "want a number as JSON has it");
	if (peek(p) == '.') {
		p->at++;
		if (!take_digits(p))
			return refuse(p, "want digits behind the point");
	}
	if (peek(p) == 'e' || peek(p) == 'E') {
		p->at++;
		p->at += peek(p) == '-' || peek(p) == '+';
		start = p->at;
		if (!take_digits(p) || p->at > start + 3)
			return refuse(p, "want an exponent of 1 to 3 digits");
	}
	return is_word(peek(p)) ? refuse(p, "want a number as JSON has it") : 0;
}

static int
parse_parenthesis(struct parse *p)
{
	if (!take(p, "("))
		return refuse(p, "want (");
	if (parse_or(p) != 0)
		return -1;
	return take(p, ")") ? 0 : refuse(p, "want an operator, or )");
}

static int
parse_key(struct parse *p)
{
	static const char *const methods[] = { "abs", "ceiling", "double",
		"floor", "size", "type", NULL };
	const char *start;

	if (next(p) == '"')
		return parse_string(p);
	start = p->at;
	p->at += word_len(p);
	if (p->at == start || is_digit((unsigned char)*start))
		return refuse(p, "want a key; one that is not letters, digits "
				 "and _ alone is written in quotes");
	if (next(p) != '(')
		return 0;
	p->at = start;
	if (!take_any(p, methods, take_word))
		return refuse(p, "of methods there are abs(), ceiling(), "
				 "double(), floor(), size() and type()");
	p->weight += METHOD;
	return take(p, "(") && take(p, ")") ? 0 : refuse(p, "want ()");
}

static int
parse_index(struct parse *p)
{
	if (!take(p, "*")) {
		p->weight += INDEX;
		if (take_word(p, "last")) {
			if (take(p, "-") && (next(p), !take_integer(p)))
				return refuse(p, "want a number");
		} else if (!take_integer(p)) {
			return refuse(p, "want *, a number, or last");
		}
	}
	return take(p, "]") ? 0 : refuse(p, "want ]: one index, or *");
}

static int
parse_item_filter(struct parse *p)
{
	bool was_in_item = p->in_item;
	int result;

	p->in_item = true;
	result = parse_parenthesis(p);
	p->in_item = was_in_item;
	return result;
}

/* Behind its "$" or "@". */
static int
parse_steps(struct parse *p)
{
	int result = 0;

	if (is_word(peek(p)) || peek(p) == '"')
		return refuse(p, "want . and a key; there are no variables");
	while (result == 0) {
		if (take(p, ".**"))
			return refuse(p, ".** is not taken: its work has no "
					 "bound");
		if (take(p, ".*"))
			result = 0;
		else if (take(p, "."))
			result = parse_key(p);
		else if (take(p, "["))
			result = parse_index(p);
		else if (take(p, "?"))
			result = parse_item_filter(p);
		else
			return 0;
		p->weight += STEP;
	}
	return -1;
}

static int
parse_path(struct parse *p)
{
	if (!take(p, p->in_item ? "@" : "$"))
		return refuse(p, p->in_item
				     ? "want a path that begins with @: within "
				       "?() there is no $"
				     : "want a path that begins with $");
	p->weight += STEP;
	return parse_steps(p);
}

static bool
has_path(struct parse *p)
{
	return next(p) == '$' || peek(p) == '@';
}

static int
parse_literal(struct parse *p)
{
	static const char *const words[] = { "true", "false", "null", NULL };

	if (next(p) == '"')
		return parse_string(p);
	if (peek(p) == '-' || is_digit(peek(p)))
		return parse_number(p);
	if (take_any(p, words, take_word))
		return 0;
	return refuse(p, has_path(p)
			     ? "compare it with a constant: pairs of two paths "
			       "are work without a bound"
			     : "want a string, a number, true, false or null");
}

/* Behind the left side of a comparison. */
static int
parse_operator(struct parse *p)
{
	static const char *const operators[] = { "==", "!=", "<>",
		"<=", ">=", "<", ">", NULL };

	if (take_any(p, operators, take))
		return 0;
	if (take_word(p, "like_regex"))
		return refuse(p, "like_regex is not taken: its work has no "
				 "bound");
	if (next(p) > 0 && strchr("+-*/%", peek(p)) != NULL)
		return refuse(p, "arithmetic is not taken");
	return refuse(p, "want a comparison: ==, !=, <, <=, >, >=, or starts "
			 "with");
}

static int
parse_comparison(struct parse *p)
{
	p->weight += COMPARISON;
	if (!has_path(p)) {
		if (parse_literal(p) != 0 || parse_operator(p) != 0)
			return -1;
		return parse_path(p);
	}
	if (parse_path(p) != 0)
		return -1;
	if (take_word(p, "starts")) {
		if (!take_word(p, "with") || next(p) != '"')
			return refuse(p, "want starts with and a string");
		return parse_string(p);
	}
	return parse_operator(p) != 0 ? -1 : parse_literal(p);
}

static int
parse_exists(struct parse *p)
{
	p->weight += COMPARISON;
	if (!take(p, "("))
		return refuse(p, "want (");
	if (parse_path(p) != 0)
		return -1;
	return take(p, ")") ? 0 : refuse(p, "want )");
}

static int
parse_test(struct parse *p)
{
	bool is_negated = take(p, "!");

	p->weight += STEP;
	if (take_word(p, "exists"))
		return parse_exists(p);
	if (!is_negated && next(p) != '(')
		return parse_comparison(p);
	if (parse_parenthesis(p) != 0)
		return -1;
	if (!is_negated && take_word(p, "is") && !take_word(p, "unknown"))
		return refuse(p, "want is unknown");
	return 0;
}

static int
parse_and(struct parse *p)
{
	do {
		if (parse_test(p) != 0)
			return -1;
	} while (take(p, "&&"));
	return 0;
}

static int
parse_or(struct parse *p)
{
	if (++p->depth > FILTER_DEPTH)
		return refuse(p, "too many parentheses within each other");
	do {
		if (parse_and(p) != 0)
			return -1;
	} while (take(p, "||"));
	p->depth--;
	return 0;
}

int
filter_check(int *weight, const char *text, size_t len, struct err *err)
{
	static const char *const modes[] = { "lax", "strict", NULL };
	struct parse p = {
		.start = text, .at = text, .end = text + len, .err = err
	};

	if (len > FILTER_MAX)
		return err_set(err, ERR_REFUSED,
		    "must not be longer than %d "
		    "octets",
		    FILTER_MAX);
	(void)take_any(&p, modes, take_word);
	if (parse_or(&p) != 0)
		return -1;
	if (next(&p) != -1)
		return refuse(&p, "want an operator, or the end");
	*weight = p.weight;
	return 0;
}

size_t
filter_values(const void *body, size_t len)
{
	const char *at = body;
	size_t n = 1;

	/* Those in strings count too: it is a bound. */
	for (size_t i = 0; i < len; i++)
		n += at[i] == ',' || at[i] == '{' || at[i] == '[';
	return n;
}
