/*
 * doctor: what `postrider doctor` looks for.
 *
 * Each check reports what it finds, and where that is bad, how to mend it.
 * Nothing of a key or a secret is ever in a report.
 */

#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "out.h"

struct pg;
struct script;
struct seal_ring;

struct doctor {
	struct out out;
	int nbad;
};

enum finding {
	FINE,
	WARNED, /* worth a look; the installation itself is sound */
	BAD,
	SKIPPED,
};

void doctor_report(struct doctor *doctor, const char *check,
    enum finding finding, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The server, its clock, encoding and settings, our roles.  0 if it answers. */
int doctor_check_server(struct doctor *doctor, struct script *script);

/* What the programs' roles may do in the schema, which is there. */
void doctor_check_rights(struct doctor *doctor, struct script *script);

/* Whether each subscription has a secret. */
void doctor_check_subscriptions(struct doctor *doctor, struct pg *pg);

/* Whether each secret opens with a key of `ring`; they are read in pages. */
void doctor_check_secrets(
    struct doctor *doctor, struct pg *pg, const struct seal_ring *ring);

/* Whether names of subscriptions can be looked up from here: of a few. */
void doctor_check_names(struct doctor *doctor, struct pg *pg);

/* Whether lanes stand still. */
void doctor_check_lanes(struct doctor *doctor, struct pg *pg);

#endif
