#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "command.h"
#include "core/seal.h"
#include "doctor.h"
#include "pg/script.h"
#include "session.h"

void
doctor_report(struct doctor *doctor, const char *check, enum finding finding,
    const char *format, ...)
{
	static const char *const words[] = { [FINE] = "ok",
		[WARNED] = "warning",
		[BAD] = "bad",
		[SKIPPED] = "skipped" };
	char detail[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	out_text(&doctor->out, "check", check);
	out_text(&doctor->out, "finding", words[finding]);
	out_text(&doctor->out, "detail", detail);
	out_end(&doctor->out);
	doctor->nbad += finding == BAD;
}

/* True if there are keys. */
static bool
check_key_file(struct doctor *doctor, const char *path, struct seal_ring *ring)
{
	struct err err;

	if (path[0] == '\0') {
		doctor_report(doctor, "key file", SKIPPED,
		    "secret_key_file is not set here");
		return false;
	}
	if (seal_ring_read(ring, path, &err) != 0) {
		doctor_report(doctor, "key file", BAD, "%s", err.text);
		return false;
	}
	doctor_report(doctor, "key file", FINE, "%s", path);
	return true;
}

static void
check_store(struct doctor *doctor, struct pg *pg, const struct seal_ring *ring)
{
	doctor_check_subscriptions(doctor, pg);
	if (ring != NULL)
		doctor_check_secrets(doctor, pg, ring);
	else
		doctor_report(doctor, "secrets", SKIPPED,
		    "there is no key to open them with");
	doctor_check_names(doctor, pg);
	doctor_check_lanes(doctor, pg);
}

static void
check_schema(struct doctor *doctor, const struct settings *settings,
    struct script *script, const struct seal_ring *ring)
{
	struct session session;
	struct err err;

	if (session_open(&session, settings, &err) != 0) {
		doctor_report(doctor, "schema", BAD, "%s", err.text);
	} else {
		doctor_report(doctor, "schema", FINE,
		    "is the one that this program knows");
		doctor_check_rights(doctor, script);
		check_store(doctor, session.pg, ring);
	}
	session_close(&session);
}

static void
examine(struct doctor *doctor, const struct settings *settings)
{
	struct seal_ring ring = { .n = 0 };
	bool has_key = check_key_file(doctor, settings->secret_key_file, &ring);
	struct script *script = NULL;
	struct err err;

	if (script_open(
		&script, settings->database, "postrider doctor", &err) != 0) {
		doctor_report(doctor, "database", BAD, "%s", err.text);
	} else {
		doctor_report(doctor, "database", FINE, "answers");
		if (doctor_check_server(doctor, script) == 0)
			check_schema(
			    doctor, settings, script, has_key ? &ring : NULL);
	}
	script_close(script);
	seal_ring_fini(&ring);
}

enum status
cmd_doctor(const struct call *call, struct err *err)
{
	struct doctor doctor = { .nbad = 0 };

	out_init(&doctor.out, OUT_LIST, command_value(call, "json") != NULL);
	examine(&doctor, &call->settings);
	if (out_print(&doctor.out, err) != 0)
		return STATUS_FAILED;
	if (doctor.nbad == 0)
		return STATUS_DONE;
	(void)err_set(err, ERR_BROKEN, "what is bad above is to be mended");
	return STATUS_FAILED;
}
