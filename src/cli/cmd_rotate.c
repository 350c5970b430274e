#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "command.h"
#include "core/sign.h"
#include "core/sign_key.h"
#include "input.h"
#include "out.h"
#include "pg/pg.h"
#include "session.h"
#include "store/sealed.h"
#include "store/subscription.h"

enum {
	OVERLAP_DAY = 86400,
	OVERLAP_MAX = 2592000,
	SECRET_TEXT_MAX = 256, /* longer than any secret is written */
};

/* What is asked for. */
struct rotation {
	bool is_key;
	int64_t id;
	int overlap_seconds;
	struct seal_ring ring;
	struct sealed sealed;
	struct buf text; /* the secret as it is shown */
};

/* One line. */
static int
read_secret(struct buf *out, const char *path, struct err *err)
{
	int result = input_read(out, path, SECRET_TEXT_MAX, err);

	if (result == 0 && out->len > 0 && out->data[out->len - 1] == '\n')
		out->len--;
	return result;
}

/* Given, or made; sealed, and as it is shown. */
static int
make_secret(struct rotation *rotation, const struct buf *given, struct err *err)
{
	struct sign_secret secret = { .len = 0 };
	int result = given->data == NULL ? sign_secret_new(&secret, err)
	                                 : sign_secret_parse(&secret,
					       given->data, given->len, err);

	if (result == 0)
		result = sealed_add(&rotation->sealed, SECRET_SIGNING, NULL,
		    secret.bytes, secret.len, err);
	if (result == 0)
		sign_secret_print(&rotation->text, &secret);
	sign_secret_fini(&secret);
	return result;
}

static int
make_key(struct rotation *rotation, const struct buf *given, struct err *err)
{
	struct sign_key key = { .bytes = { 0 } };
	int result = given->data == NULL
	                 ? sign_key_new(&key, err)
	                 : sign_key_parse(&key, given->data, given->len, err);

	if (result == 0)
		result = sealed_add_key(&rotation->sealed, &key, err);
	if (result == 0)
		sign_key_print(&rotation->text, &key);
	sign_key_fini(&key);
	return result;
}

static int
make(struct rotation *rotation, const struct call *call, struct err *err)
{
	const char *path = command_value(call, "from");
	struct buf given = { 0 };
	int result = 0;

	if (path != NULL)
		result = read_secret(&given, path, err);
	if (result == 0)
		result = rotation->is_key ? make_key(rotation, &given, err)
		                          : make_secret(rotation, &given, err);
	buf_wipe(&given);
	return result;
}

static int
judge(const struct subscription_outcome *outcome, struct err *err)
{
	if (outcome->answer == SUBSCRIPTION_MISSING)
		return err_set(
		    err, ERR_REFUSED, "there is no such subscription");
	if (outcome->answer == SUBSCRIPTION_REFUSED)
		return err_set(err, ERR_REFUSED, "it has no signing key");
	return 0;
}

static int
run_rotation(
    struct pg *pg, struct rotation *rotation, struct out *out, struct err *err)
{
	const struct subscription_change which = {
		.tenant_id = SUBSCRIPTION_ANY_TENANT,
		.id = rotation->id,
		.actor = "cli",
	};
	struct pg_batch *batch = pg_batch_new();
	struct subscription_outcome outcome;
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "subscription");
	subscription_rotate(batch, &which,
	    &(struct subscription_rotation){
		.overlap_seconds = rotation->overlap_seconds,
		.sealed = &rotation->sealed,
	    });
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	subscription_changed(&outcome, rows);
	result = judge(&outcome, err);
	pg_rows_free(rows);
	if (result != 0)
		return -1;
	out_id(out, "id", rotation->id);
	out_time(out, "old_expires_at", outcome.old_until);
	out_text(out, rotation->is_key ? "signing_key" : "secret",
	    buf_text(&rotation->text));
	out_end(out);
	return 0;
}

/* The options and the key file; what is wrong with them is misuse. */
static enum status
prepare(struct rotation *rotation, const struct call *call, struct err *err)
{
	const char *overlap = command_value(call, "overlap");
	char *end;
	long seconds;

	if (command_id(call, &rotation->id, err) != STATUS_DONE)
		return STATUS_USAGE;
	if (overlap != NULL) {
		seconds = strtol(overlap, &end, 10);
		if (end == overlap || *end != '\0' || seconds < 0 ||
		    seconds > OVERLAP_MAX)
			return command_misused(
			    call, err, "--overlap takes seconds, 0 to 2592000");
		rotation->overlap_seconds = (int)seconds;
	}
	if (call->settings.secret_key_file[0] == '\0')
		return command_misused(call, err,
		    "secret_key_file has to say where the key of the stored "
		    "secrets is");
	if (seal_ring_read(
		&rotation->ring, call->settings.secret_key_file, err) == 0)
		return STATUS_DONE;
	(void)err_wrap(err, "secret_key_file");
	return STATUS_USAGE;
}

static enum status
run(struct rotation *rotation, const struct call *call, struct err *err)
{
	struct session session;
	struct out out;
	int result = -1;

	sealed_init(&rotation->sealed, &rotation->ring, rotation->id);
	if (make(rotation, call, err) != 0)
		return STATUS_FAILED;
	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = run_rotation(session.pg, rotation, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

static enum status
rotate(const struct call *call, bool is_key, struct err *err)
{
	struct rotation rotation = {
		.is_key = is_key,
		.overlap_seconds = OVERLAP_DAY,
	};
	enum status status = prepare(&rotation, call, err);

	if (status == STATUS_DONE)
		status = run(&rotation, call, err);
	sealed_fini(&rotation.sealed);
	seal_ring_fini(&rotation.ring);
	buf_wipe(&rotation.text);
	return status;
}

enum status
cmd_subscription_rotate_key(const struct call *call, struct err *err)
{
	return rotate(call, true, err);
}

enum status
cmd_subscription_rotate_secret(const struct call *call, struct err *err)
{
	return rotate(call, false, err);
}
