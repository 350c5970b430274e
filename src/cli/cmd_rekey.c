#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "command.h"
#include "core/seal.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/audit.h"
#include "store/secret.h"
#include "store/stmt.h"

enum { PAGE = 100 };

#define SAID_EVERY USEC_PER_SEC

/*
 * All that is not under the first key is gone through by id, again and again,
 * until nothing is left to be done: what is registered meanwhile, by somebody
 * who does not have the key yet, may be committed behind us.  Each page is a
 * transaction of its own, so whoever is killed has nothing to mend.
 */
struct rekey {
	struct pg *pg;
	struct seal_ring ring;
	int64_t total; /* what there was to do at the beginning */
	int64_t resealed;
	int64_t after; /* the last that this round has seen */
	int64_t done; /* in this round, or found to be done by another */
	int64_t missing_key, broken; /* in this round: they do not open */
	usec_t said_at;
};

/* Run what was put into `batch`; it may be NULL. */
static int
run(struct rekey *rekey, struct pg_batch *batch, struct pg_rows ***rows,
    struct err *err)
{
	if (batch != NULL)
		return pg_run(rekey->pg, batch, rows, err);
	(void)err_set(err, ERR_NOMEM, "rekey");
	return -1;
}

static int
count(struct rekey *rekey, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;

	if (batch != NULL) {
		pg_call(batch, STMT_SECRET_OLDER);
		pg_text(batch, rekey->ring.keys[0].id);
	}
	if (run(rekey, batch, &rows, err) != 0)
		return -1;
	rekey->total = pg_read_bigint(rows[0], 0, "secrets");
	pg_rows_free(rows);
	return 0;
}

/* Before anything is sealed anew, since it may be killed at any time. */
static int
note(struct rekey *rekey, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	char detail[64];

	(void)snprintf(
	    detail, sizeof(detail), "{\"secrets\": %" PRId64 "}", rekey->total);
	if (batch != NULL)
		audit_note(
		    batch, "secrets.resealed", rekey->ring.keys[0].id, detail);
	if (run(rekey, batch, &rows, err) != 0)
		return -1;
	pg_rows_free(rows);
	return 0;
}

/* Those of a page that are sealed anew, and the batch that keeps them. */
struct page {
	struct pg_batch *batch;
	int64_t ids[PAGE];
	int n;
};

static int
reseal(struct rekey *rekey, struct page *page, int64_t id,
    const struct secret *secret, const struct buf *plain, struct err *err)
{
	struct secret_resealed resealed = {
		.id = id,
		.old_nonce = secret->nonce,
		.key = &rekey->ring.keys[0],
	};
	int result = seal_close(&resealed.sealed, resealed.nonce, resealed.key,
	    secret->subscription_id, secret->label, plain->data, plain->len,
	    err);

	if (result == 0) {
		secret_reseal(page->batch, &resealed);
		page->ids[page->n++] = id;
	}
	buf_fini(&resealed.sealed);
	return result;
}

/* One that does not open is counted, and left as it is. */
static int
take(struct rekey *rekey, struct page *page, const struct pg_rows *rows,
    int row, struct err *err)
{
	struct secret secret;
	struct buf plain = { 0 };
	int64_t id = pg_read_bigint(rows, row, "id");
	int result = 0;

	rekey->after = id;
	secret_read(&secret, rows, row, "subscription_id");
	if (secret_open(&plain, &secret, &rekey->ring, err) == 0)
		result = reseal(rekey, page, id, &secret, &plain, err);
	else if (err->code == ERR_RETRY)
		rekey->missing_key++;
	else if (err->code == ERR_BROKEN)
		rekey->broken++;
	else
		result = -1;
	buf_wipe(&plain);
	return result;
}

/* Wait for one that somebody had in hand, so that the next round finds it free.
 */
static int
wait_for(struct rekey *rekey, int64_t id, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;

	if (batch != NULL) {
		pg_call(batch, STMT_SECRET_WAIT);
		pg_bigint(batch, id);
	}
	if (run(rekey, batch, &rows, err) != 0)
		return -1;
	pg_rows_free(rows);
	return 0;
}

static int
keep(struct rekey *rekey, struct page *page, struct err *err)
{
	struct pg_batch *batch = page->batch;
	struct pg_rows **rows;
	int64_t missed = 0;

	page->batch = NULL;
	if (run(rekey, batch, &rows, err) != 0)
		return -1;
	for (int i = 0; i < page->n; i++) {
		rekey->resealed += pg_affected(rows[i]);
		if (missed == 0 && pg_affected(rows[i]) == 0)
			missed = page->ids[i];
	}
	rekey->done += page->n;
	pg_rows_free(rows);
	return missed == 0 ? 0 : wait_for(rekey, missed, err);
}

static int
reseal_page(struct rekey *rekey, const struct pg_rows *rows, struct err *err)
{
	struct page page = { .batch = pg_batch_new() };
	int result = 0;

	if (page.batch == NULL)
		return err_set(err, ERR_NOMEM, "rekey");
	for (int i = 0; result == 0 && i < pg_count(rows); i++)
		result = take(rekey, &page, rows, i, err);
	if (result == 0 && page.n > 0)
		result = keep(rekey, &page, err);
	pg_batch_free(page.batch);
	return result;
}

static void
say_progress(struct rekey *rekey)
{
	usec_t now = clock_now();

	if (now < rekey->said_at + SAID_EVERY)
		return;
	rekey->said_at = now;
	(void)fprintf(stderr, "%" PRId64 " of %" PRId64 " sealed anew\n",
	    rekey->resealed, rekey->total);
}

/* How many the page had; -1. */
static int
take_page(struct rekey *rekey, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int n;

	if (batch != NULL)
		secret_page(batch, rekey->after, rekey->ring.keys[0].id, PAGE);
	if (run(rekey, batch, &rows, err) != 0)
		return -1;
	n = reseal_page(rekey, rows[0], err) == 0 ? pg_count(rows[0]) : -1;
	pg_rows_free(rows);
	say_progress(rekey);
	return n;
}

static int
take_all(struct rekey *rekey, struct err *err)
{
	int n;

	do {
		rekey->after = 0;
		rekey->done = 0;
		rekey->missing_key = 0;
		rekey->broken = 0;
		do {
			n = take_page(rekey, err);
		} while (n == PAGE);
	} while (n >= 0 && rekey->done > 0);
	return n < 0 ? -1 : 0;
}

static enum status
report(const struct rekey *rekey, const struct call *call, struct err *err)
{
	bool is_json = command_value(call, "json") != NULL;
	struct out out;

	out_init(&out, OUT_RECORD, is_json);
	out_text(&out, "key", rekey->ring.keys[0].id);
	out_number(&out, "resealed", rekey->resealed);
	out_number(&out, "missing_key", rekey->missing_key);
	out_number(&out, "broken", rekey->broken);
	out_end(&out);
	if (out_print(&out, err) != 0)
		return STATUS_FAILED;
	if (rekey->missing_key + rekey->broken > 0) {
		(void)err_set(err, ERR_BROKEN,
		    "%" PRId64 " secrets do not open, and stay as they are; "
		    "`postrider doctor` tells more",
		    rekey->missing_key + rekey->broken);
		return STATUS_FAILED;
	}
	if (!is_json && rekey->ring.n > 1)
		(void)printf(
		    "Nothing is sealed under the other keys of %s any more.  "
		    "Only a\nbackup made before now needs them.\n",
		    call->settings.secret_key_file);
	return STATUS_DONE;
}

/* What was resealed before a failure stays so. */
static enum status
reseal_all(struct rekey *rekey, const struct call *call, struct err *err)
{
	if (count(rekey, err) == 0 &&
	    (rekey->total == 0 || note(rekey, err) == 0) &&
	    take_all(rekey, err) == 0)
		return report(rekey, call, err);
	(void)err_wrap(err,
	    "%" PRId64 " of %" PRId64 " sealed anew; run it again to go on",
	    rekey->resealed, rekey->total);
	return STATUS_FAILED;
}

enum status
cmd_rekey(const struct call *call, struct err *err)
{
	const char *path = call->settings.secret_key_file;
	struct rekey rekey = { .said_at = clock_now() };
	enum status status = STATUS_FAILED;
	struct session session;

	if (path[0] == '\0')
		return command_misused(call, err, "secret_key_file is not set");
	if (seal_ring_read(&rekey.ring, path, err) != 0)
		return STATUS_FAILED;
	if (session_open(&session, &call->settings, err) == 0) {
		rekey.pg = session.pg;
		status = reseal_all(&rekey, call, err);
	}
	session_close(&session);
	seal_ring_fini(&rekey.ring);
	return status;
}
