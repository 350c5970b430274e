#include <stdio.h>
#include <string.h>

#include "batch.h"
#include "setup.h"

static void
add_setting(struct pg_batch *batch, const char *name, const char *value)
{
	/* As SET, which takes no parameters. */
	batch_command(
	    batch, name, "SELECT pg_catalog.set_config($1, $2, false)");
	pg_text(batch, name);
	pg_text(batch, value);
}

/* The server gives up first: that is an answer, and cheaper than a new
 * connection. */
static void
add_timeout(struct pg_batch *batch, usec_t deadline)
{
	usec_t timeout = deadline - deadline / 10;
	char ms[24];

	/* 0 would be no limit. */
	(void)snprintf(ms, sizeof(ms), "%lld",
	    (long long)(timeout < USEC_PER_MS ? 1 : timeout / USEC_PER_MS));
	add_setting(batch, "statement_timeout", ms);
}

static void
add_listen(struct pg_batch *batch, PGconn *conn, const char *channel)
{
	char *quoted = PQescapeIdentifier(conn, channel, strlen(channel));

	if (quoted == NULL) {
		batch->text.failed = true;
		return;
	}
	buf_printf(&batch->text, "LISTEN %s", quoted);
	PQfreemem(quoted);
	batch_command(batch, "listen", buf_text(&batch->text));
}

struct pg_batch *
setup_new(PGconn *conn, const struct pg_conf *conf)
{
	struct pg_batch *batch = pg_batch_new();

	if (batch == NULL)
		return NULL;
	add_setting(batch, "TimeZone", "UTC");
	add_timeout(batch, conf->statement_timeout);
	for (const struct pg_setting *s = conf->settings;
	     s != NULL && s->name != NULL; s++)
		add_setting(batch, s->name, s->value);
	if (conf->role != NULL && conf->role[0] != '\0')
		add_setting(batch, "role", conf->role);
	if (conf->channel != NULL && conf->channel[0] != '\0')
		add_listen(batch, conn, conf->channel);
	return batch;
}
