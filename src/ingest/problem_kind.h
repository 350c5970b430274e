/*
 * problem_kind: the kinds of problem there are, one for each status.
 *
 * A problem's `type` is the address of its kind's page, /problems/NAME, which
 * says in a few lines what happened and what to do.
 */

#ifndef INGEST_PROBLEM_KIND_H
#define INGEST_PROBLEM_KIND_H

struct call;

struct problem_kind {
	int status;
	const char *name;
	const char *title;
	const char *advice; /* a paragraph: what it means, and what to do */
};

#define PROBLEM_PAGES "/problems/"

/* That of a status; what has none of its own is "internal". */
const struct problem_kind *problem_kind_of(int status);

/* GET /problems/{id} */
void problem_kind_get(struct call *call);

#endif
