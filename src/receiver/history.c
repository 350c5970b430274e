#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "history.h"
#include "receipt.h"

/* Both begin with their key, which lies behind them in memory. */
struct seen {
	const char *key;
	int requests;
};

struct lane {
	const char *key;
	bool has_highest;
	int64_t highest; /* position of those first seen */
	int unanswered;
};

struct history {
	void *events; /* trees of tsearch(3) */
	void *lanes;
	struct buf key;
};

int
history_new(struct history **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? err_set(err, ERR_NOMEM, "history") : 0;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
free_tree(void **root)
{
	while (*root != NULL) {
		void *item = *(void **)*root;

		(void)tdelete(item, root, compare);
		free(item);
	}
}

void
history_free(struct history *history)
{
	if (history == NULL)
		return;
	free_tree(&history->events);
	free_tree(&history->lanes);
	buf_fini(&history->key);
	free(history);
}

/* The item of `root` for these two texts, made of `size` zeros if it is new;
 * NULL if memory is short.  Neither text holds a newline. */
static void *
obtain(struct history *history, void **root, size_t size, const char *path,
    const char *name)
{
	struct buf *key = &history->key;
	const char *probe;
	char *item;
	void *found;

	buf_clear(key);
	buf_printf(key, "%s\n%s", path, name);
	probe = buf_text(key);
	if (key->failed)
		return NULL;
	found = tfind(&probe, root, compare);
	if (found != NULL)
		return *(void **)found;
	item = calloc(1, size + key->len + 1);
	if (item == NULL)
		return NULL;
	memcpy(item + size, probe, key->len);
	*(const char **)(void *)item = item + size;
	if (tsearch(item, root, compare) == NULL) {
		free(item);
		return NULL;
	}
	return item;
}

static struct seen *
obtain_event(struct history *history, const char *path, const char *event_id)
{
	return obtain(
	    history, &history->events, sizeof(struct seen), path, event_id);
}

static struct lane *
obtain_lane(struct history *history, const char *path, const char *asset)
{
	return obtain(
	    history, &history->lanes, sizeof(struct lane), path, asset);
}

static void
raise(struct lane *lane, int64_t position)
{
	if (lane->has_highest && position < lane->highest)
		return;
	lane->has_highest = true;
	lane->highest = position;
}

static void
enter_lane(struct lane *lane, struct receipt *receipt)
{
	receipt->lane = lane;
	receipt->overlaps = lane->unanswered > 0;
	lane->unanswered++;
	if (receipt->nth != 1 || !receipt->has_position)
		return;
	receipt->out_of_order =
	    lane->has_highest && receipt->position < lane->highest;
	raise(lane, receipt->position);
}

int
history_see(struct history *history, struct receipt *receipt, struct err *err)
{
	struct seen *seen;
	struct lane *lane = NULL;

	seen = obtain_event(history, receipt->path, receipt->event_id);
	if (receipt->asset != NULL)
		lane = obtain_lane(history, receipt->path, receipt->asset);
	if (seen == NULL || (receipt->asset != NULL && lane == NULL))
		return err_set(err, ERR_NOMEM, "history");
	receipt->nth = ++seen->requests;
	if (lane != NULL)
		enter_lane(lane, receipt);
	return 0;
}

void
history_answered(struct lane *lane)
{
	if (lane != NULL)
		lane->unanswered--;
}

static void
forget_event(const void *node, VISIT visit, int depth)
{
	struct seen *seen = *(struct seen *const *)node;

	(void)visit;
	(void)depth;
	seen->requests = 0;
}

static void
forget_lane(const void *node, VISIT visit, int depth)
{
	struct lane *lane = *(struct lane *const *)node;

	(void)visit;
	(void)depth;
	lane->has_highest = false;
}

/* The items stay: requests in hand point to their lanes. */
void
history_forget(struct history *history)
{
	twalk(history->events, forget_event);
	twalk(history->lanes, forget_lane);
}

int
history_load_event(struct history *history, const char *path,
    const char *event_id, int requests, struct err *err)
{
	struct seen *seen = obtain_event(history, path, event_id);

	if (seen == NULL)
		return err_set(err, ERR_NOMEM, "history");
	seen->requests = requests;
	return 0;
}

int
history_load_lane(struct history *history, const char *path, const char *asset,
    int64_t highest, struct err *err)
{
	struct lane *lane = obtain_lane(history, path, asset);

	if (lane == NULL)
		return err_set(err, ERR_NOMEM, "history");
	raise(lane, highest);
	return 0;
}
