#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "doctor.h"
#include "pg/script.h"
#include "store/stmt.h"

enum {
	OLDEST_SERVER = 140000, /* as server_version_num */
};

/* A signature's timestamp is believed for five minutes. */
static const usec_t clock_tolerance = 30 * USEC_PER_SEC;

static void
check_version(struct doctor *doctor, const char *number, const char *version)
{
	if (strtol(number, NULL, 10) < OLDEST_SERVER)
		doctor_report(doctor, "server", BAD,
		    "older than PostgreSQL 14: upgrade the server");
	else
		doctor_report(doctor, "server", FINE, "PostgreSQL %s", version);
}

static void
check_clock(struct doctor *doctor, const char *clock)
{
	usec_t difference = strtoll(clock, NULL, 10) - clock_wall();
	bool is_fine = llabs(difference) <= clock_tolerance;

	doctor_report(doctor, "clock", is_fine ? FINE : BAD,
	    "%+.1f s from the database's%s",
	    -(double)difference / (double)USEC_PER_SEC,
	    is_fine ? "" : ": receivers refuse old timestamps; use NTP");
}

static void
check_encoding(struct doctor *doctor, const char *encoding)
{
	bool is_fine = strcmp(encoding, "UTF8") == 0;

	doctor_report(doctor, "encoding", is_fine ? FINE : BAD, "%s",
	    is_fine ? encoding
		    : "not UTF8: make a database with ENCODING 'UTF8'");
}

static void
check_roles(struct doctor *doctor, const char *missing)
{
	if (missing == NULL)
		doctor_report(doctor, "roles", FINE, "all are here");
	else
		doctor_report(doctor, "roles", BAD,
		    "%s: missing; run `postrider migrate`", missing);
}

/* What was accepted is durable if what is committed is. */
static void
check_durability(struct doctor *doctor, const char *unsafe)
{
	if (unsafe == NULL)
		doctor_report(doctor, "durability", FINE,
		    "what is committed survives a crash");
	else
		doctor_report(doctor, "durability", WARNED,
		    "%s: a crash may lose what was accepted; set it on in "
		    "postgresql.conf",
		    unsafe);
}

static void
on_health(void *arg, const char *const *columns)
{
	struct doctor *doctor = arg;

	check_version(doctor, columns[0], columns[1]);
	check_clock(doctor, columns[2]);
	check_encoding(doctor, columns[3]);
	check_roles(doctor, columns[4]);
	check_durability(doctor, columns[5]);
}

int
doctor_check_server(struct doctor *doctor, struct script *script)
{
	struct err err;

	if (script_query(script, script_table[SCRIPT_SCHEMA_HEALTH].text, 0,
		NULL, on_health, doctor, &err) == 0)
		return 0;
	doctor_report(doctor, "server", BAD, "%s", err.text);
	return -1;
}

static void
on_missing(void *arg, const char *const *columns)
{
	doctor_report(arg, "rights", BAD, "missing: run `%s`", columns[0]);
}

void
doctor_check_rights(struct doctor *doctor, struct script *script)
{
	int nbad = doctor->nbad;
	struct err err;

	if (script_query(script, script_table[SCRIPT_SCHEMA_RIGHTS].text, 0,
		NULL, on_missing, doctor, &err) != 0)
		doctor_report(doctor, "rights", BAD, "%s", err.text);
	else if (doctor->nbad == nbad)
		doctor_report(
		    doctor, "rights", FINE, "each role may do what it has to");
}
