/*
 * filter: which payload filters a subscription may have.
 *
 * A filter is an SQL/JSON path predicate about the body that is sent, such as
 *
 *	$.data.pressure > 10 && $.data.site.name starts with "N"
 *	exists($.data.readings[*] ? (@.unit == "bar" && @.value >= 2.5))
 *
 * which PostgreSQL evaluates for each event.  In the whole language a text of
 * twenty octets can take minutes, and PostgreSQL looks for a time-out in few of
 * the loops that it does so in: two paths are compared in pairs, `.**` and a `$`
 * within a filter multiply, `[0,0]` doubles, and so on.  So this takes what is
 * linear, and refuses the rest: each step and each comparison is done once for
 * each value in the body at most.
 *
 *	filter     = [ "lax" | "strict" ] or
 *	or         = and { "||" and }
 *	and        = test { "&&" test }
 *	test       = "!" delimited | delimited | "(" or ")" "is" "unknown"
 *	           | path "starts" "with" string
 *	           | path op literal | literal op path
 *	delimited  = "(" or ")" | "exists" "(" path ")"
 *	op         = "==" | "!=" | "<>" | "<" | "<=" | ">" | ">="
 *	literal    = string | [ "-" ] number | "true" | "false" | "null"
 *	path       = ( "$" | "@" ) { step }       "@" within "?(...)", else "$"
 *	step       = "." key | "." string | ".*" | "[*]" | "[" index "]"
 *	           | "." method "()" | "?" "(" or ")"
 *	index      = digits | "last" [ "-" digits ]
 *	method     = "abs" | "ceiling" | "double" | "floor" | "size" | "type"
 *
 * A key without quotes is ASCII letters, digits and _.  A string has the escapes
 * of JSON but \u.  PostgreSQL takes all of this; the tests hold the two together.
 */

#ifndef CORE_FILTER_H
#define CORE_FILTER_H

#include <stddef.h>

struct err;

enum {
	FILTER_MAX = 1024, /* octets */
	FILTER_DEPTH = 32, /* parentheses within each other */
	/*
	 * The most work that is done for one event, and for the events of one
	 * transaction: weights of filters times values in bodies.  A unit takes up
	 * to 60 ns, so that is a tenth of a second, where every octet was chosen
	 * to take long; usual ones take a hundredth of that.
	 */
	FILTER_WORK_MAX = 2097152,
};

/* Judge `text`.  `*weight` is the work that it is for each value in a body.
 * ERR_REFUSED says what is wrong at which octet, counted from 0. */
int filter_check(int *weight, const char *text, size_t len, struct err *err);

/* How many values `body`, which is JSON, has at the most. */
size_t filter_values(const void *body, size_t len);

#endif
