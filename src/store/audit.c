#include <inttypes.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/audit.h"
#include "store/stmt.h"

enum {
	LOOKED_AT = 10000, /* entries, for one page */
	CHAIN_PAGE = 500,
};

static void
put_from(struct pg_batch *batch, const char *source, bool is_local)
{
	if (source == NULL)
		return;
	pg_call(batch, STMT_AUDIT_FROM);
	pg_text(batch, source);
	pg_bool(batch, is_local);
}

void
audit_from(struct pg_batch *batch, const char *source)
{
	put_from(batch, source, true);
}

void
audit_from_session(struct pg_batch *batch, const char *source)
{
	put_from(batch, source, false);
}

void
audit_note(struct pg_batch *batch, const char *action, const char *subject,
    const char *detail)
{
	pg_call(batch, STMT_AUDIT_NOTE);
	pg_text(batch, "cli");
	pg_text(batch, action);
	pg_text(batch, subject);
	pg_text(batch, detail);
}

void
audit_list(struct pg_batch *batch, const struct audit_query *query)
{
	pg_call(batch, STMT_AUDIT_LIST);
	if (query->before < 0)
		pg_null(batch);
	else
		pg_bigint(batch, query->before);
	pg_text(batch, query->tenant);
	pg_text(batch, query->actor);
	pg_text(batch, query->action);
	pg_text(batch, query->subject);
	pg_time(batch, query->since);
	pg_time(batch, query->until);
	pg_int(batch, query->limit);
	pg_int(batch, LOOKED_AT);
}

bool
audit_read(struct audit_entry *out, const struct pg_rows *rows, int row)
{
	if (row >= pg_count(rows) || pg_read_bigint(rows, row, "number") == 0)
		return false;
	*out = (struct audit_entry){
		.number = pg_read_bigint(rows, row, "number"),
		.at = pg_read_bigint(rows, row, "at"),
		.actor = pg_read_text_or_null(rows, row, "actor"),
		.source = pg_read_text_or_null(rows, row, "source"),
		.tenant = pg_read_text_or_null(rows, row, "tenant"),
		.action = pg_read_text_or_null(rows, row, "action"),
		.subject = pg_read_text_or_null(rows, row, "subject"),
		.detail = pg_read_text_or_null(rows, row, "detail"),
		.hash = pg_read_text_or_null(rows, row, "hash"),
	};
	return true;
}

int64_t
audit_more_before(const struct pg_rows *rows)
{
	return pg_read_bigint(rows, 0, "more_before");
}

/* Run a batch of one call. */
static int
ask(struct pg *pg, struct pg_batch *batch, struct pg_rows ***rows,
    struct err *err)
{
	if (batch != NULL)
		return pg_run(pg, batch, rows, err);
	(void)err_set(err, ERR_NOMEM, "audit");
	return -1;
}

static void
get_hash(unsigned char out[AUDIT_HASH], const struct pg_rows *rows, int row)
{
	size_t len;
	const void *bytes =
	    pg_get_bytes(rows, row, pg_column(rows, "hash"), &len);

	memset(out, 0, AUDIT_HASH);
	if (bytes != NULL && len == AUDIT_HASH)
		memcpy(out, bytes, AUDIT_HASH);
}

static int
read_head(struct audit_link *head, const struct pg_rows *rows, struct err *err)
{
	int unlinked;

	if (pg_count(rows) == 0)
		return err_set(err, ERR_BROKEN, "the chain has no head");
	unlinked = pg_column(rows, "unlinked");
	if (!pg_is_null(rows, 0, unlinked))
		return err_set(err, ERR_BROKEN,
		    "the entry with the id %" PRId64 " was never linked",
		    pg_get_bigint(rows, 0, unlinked));
	head->number = pg_read_bigint(rows, 0, "number");
	get_hash(head->hash, rows, 0);
	return 0;
}

static int
ask_head(struct pg *pg, struct audit_link *head, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result;

	if (batch != NULL)
		pg_call(batch, STMT_AUDIT_HEAD);
	if (ask(pg, batch, &rows, err) != 0)
		return -1;
	result = read_head(head, rows[0], err);
	pg_rows_free(rows);
	return result;
}

/* The hash of the entry that follows `last`. */
static int
hash_next(unsigned char out[AUDIT_HASH], const struct audit_link *last,
    const char *content, struct err *err)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int result = 0;

	if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
	    EVP_DigestUpdate(ctx, last->hash, AUDIT_HASH) != 1 ||
	    EVP_DigestUpdate(ctx, content, strlen(content)) != 1 ||
	    EVP_DigestFinal_ex(ctx, out, NULL) != 1)
		result = err_set(err, ERR_RETRY, "SHA-256 failed");
	EVP_MD_CTX_free(ctx);
	return result;
}

static bool
is_same(const unsigned char *a, const unsigned char *b)
{
	return memcmp(a, b, AUDIT_HASH) == 0;
}

/* What is verified, and how far that is. */
struct walk {
	struct pg *pg;
	struct audit_link head, last;
	const struct audit_link *earlier;
};

/* Move on by one row. */
static int
step(struct walk *walk, const struct pg_rows *rows, int row, struct err *err)
{
	const struct audit_link *earlier = walk->earlier;
	struct audit_link next = { 0 };
	unsigned char kept[AUDIT_HASH];

	next.number = pg_read_bigint(rows, row, "number");
	if (next.number != walk->last.number + 1)
		return err_set(err, ERR_BROKEN,
		    "entry %" PRId64 " is missing: the next is %" PRId64,
		    walk->last.number + 1, next.number);
	get_hash(kept, rows, row);
	if (hash_next(next.hash, &walk->last,
		pg_read_text_or_null(rows, row, "content"), err) != 0)
		return -1;
	if (!is_same(next.hash, kept))
		return err_set(err, ERR_BROKEN,
		    "entry %" PRId64 " is not what it was when it was made",
		    next.number);
	if (earlier != NULL && earlier->number == next.number &&
	    !is_same(next.hash, earlier->hash))
		return err_set(err, ERR_BROKEN,
		    "entry %" PRId64 " was another one earlier: the chain was "
		    "made anew",
		    next.number);
	walk->last = next;
	return 0;
}

/* Go on by a page.  How many rows that were; -1. */
static int
step_page(struct walk *walk, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int n, done = 0;

	if (batch != NULL) {
		pg_call(batch, STMT_AUDIT_CHAIN);
		pg_bigint(batch, walk->last.number);
		pg_int(batch, CHAIN_PAGE);
	}
	if (ask(walk->pg, batch, &rows, err) != 0)
		return -1;
	n = pg_count(rows[0]);
	while (done < n && step(walk, rows[0], done, err) == 0)
		done++;
	pg_rows_free(rows);
	return done == n ? n : -1;
}

static int
step_all(struct walk *walk, struct err *err)
{
	int n;

	do {
		n = step_page(walk, err);
	} while (n > 0);
	return n;
}

static int
judge_end(const struct walk *walk, struct err *err)
{
	int64_t last = walk->last.number, wanted = walk->head.number;

	if (walk->earlier != NULL && walk->earlier->number > wanted)
		wanted = walk->earlier->number;
	if (last < wanted)
		return err_set(err, ERR_BROKEN,
		    "the end is missing: entry %" PRId64
		    " is the last, and there were %" PRId64,
		    last, wanted);
	if (last > wanted || !is_same(walk->last.hash, walk->head.hash))
		return err_set(err, ERR_BROKEN,
		    "entry %" PRId64 " is not the one that the head has", last);
	return 0;
}

/* The head is asked for when all entries were seen, and entries may have come
 * between the two. */
int
audit_verify(struct pg *pg, const struct audit_link *earlier,
    struct audit_link *head, struct err *err)
{
	struct walk walk = { .pg = pg, .earlier = earlier };
	int64_t before;

	do {
		before = walk.last.number;
		if (step_all(&walk, err) != 0 ||
		    ask_head(pg, &walk.head, err) != 0)
			return -1;
	} while (
	    walk.last.number > before && walk.head.number > walk.last.number);
	if (judge_end(&walk, err) != 0)
		return -1;
	*head = walk.head;
	return 0;
}
