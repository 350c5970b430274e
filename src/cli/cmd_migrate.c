#include "base/err.h"
#include "command.h"
#include "out.h"
#include "pg/script.h"
#include "store/schema.h"

struct listing {
	struct out out;
	int pending;
};

static void
on_step(void *arg, const struct schema_step *step)
{
	struct listing *listing = arg;

	out_number(&listing->out, "version", step->version);
	out_text(&listing->out, "name", step->name);
	out_text(
	    &listing->out, "state", step->is_applied ? "applied" : "pending");
	out_end(&listing->out);
	listing->pending += !step->is_applied;
}

enum status
cmd_migrate(const struct call *call, struct err *err)
{
	bool is_json = command_value(call, "json") != NULL;
	bool only_status = command_value(call, "status") != NULL;
	struct listing listing = { .pending = 0 };
	struct script *script;
	int result;

	if (script_open(&script, call->settings.database, "postrider migrate",
		err) != 0)
		return STATUS_FAILED;
	out_init(&listing.out, OUT_LIST, is_json);
	if (only_status)
		result = schema_status(script, on_step, &listing, err);
	else
		result = schema_migrate(script, on_step, &listing, err);
	script_close(script);

	/* What was applied before a failure stays, so it is shown. */
	if (result != 0) {
		struct err ignored;

		(void)out_print(&listing.out, &ignored);
		return STATUS_FAILED;
	}
	if (out_print(&listing.out, err) != 0)
		return STATUS_FAILED;
	if (listing.pending > 0)
		return STATUS_PENDING;
	if (!is_json)
		(void)printf(
		    "The schema is at version %d.\n", schema_version());
	return STATUS_DONE;
}
