#include <inttypes.h>

#include "base/buf.h"
#include "call.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "metrics.h"
#include "problem.h"
#include "routes.h"
#include "writer.h"

static void
put(struct buf *out, const char *name, const char *type, const char *help,
    uint64_t value)
{
	buf_printf(out, "# HELP postrider_ingest_%s %s\n", name, help);
	buf_printf(out, "# TYPE postrider_ingest_%s %s\n", name, type);
	buf_printf(out, "postrider_ingest_%s %" PRIu64 "\n", name, value);
}

static void
put_answers(struct buf *out, const struct metrics *metrics)
{
	buf_puts(out, "# HELP postrider_ingest_requests_total requests "
		      "answered, by route and status\n"
		      "# TYPE postrider_ingest_requests_total counter\n");
	for (size_t i = 0; routes_path(i) != NULL; i++)
		for (int s = 0; s < METRICS_STATUSES; s++)
			if (metrics->answers[i][s] > 0)
				buf_printf(out,
				    "postrider_ingest_requests_total{method="
				    "\"%s\",route=\"%s\",status=\"%d\"} "
				    "%" PRIu64 "\n",
				    routes_method(i), routes_path(i), s,
				    metrics->answers[i][s]);
}

static void
put_counters(struct buf *out, const struct metrics *metrics)
{
	put(out, "events_accepted_total", "counter", "new events kept",
	    metrics->accepted);
	put(out, "events_repeated_total", "counter",
	    "events that were known already, with the same content",
	    metrics->repeated);
	put(out, "deliveries_made_total", "counter",
	    "deliveries that new events made", metrics->deliveries);
	put(out, "batches_total", "counter", "batches sent to the database",
	    metrics->batches);
	put(out, "batches_failed_total", "counter",
	    "batches of which nothing was kept", metrics->failed_batches);
}

static void
put_refusals(struct buf *out, const struct ingest *ingest)
{
	put(out, "tls_failures_total", "counter",
	    "connections that failed at TLS", ingest->metrics.tls_failures);
	put(out, "connections_given_up_total", "counter",
	    "connections that were closed to make room for others",
	    server_given_up(ingest->server));
}

static void
put_gauges(struct buf *out, const struct ingest *ingest)
{
	put(out, "queued_events", "gauge", "events that wait for a connection",
	    writer_queued(ingest->writer));
	put(out, "queued_bytes", "gauge", "bytes of the events that wait",
	    writer_queued_bytes(ingest->writer));
	put(out, "queued_queries", "gauge", "queries that wait for the desk",
	    desk_queued(ingest->desk));
	put(out, "database_connections", "gauge", "connections that are up",
	    (uint64_t)writer_connections(ingest->writer) +
		desk_is_up(ingest->desk));
	put(out, "buffered_bytes", "gauge",
	    "memory of request bodies above 16 KiB",
	    server_buffered(ingest->server));
	put(out, "connections", "gauge", "HTTP connections",
	    (uint64_t)server_connections(ingest->server));
	if (ingest->certificate_expires_at != 0)
		put(out, "tls_certificate_expires_seconds", "gauge",
		    "when the certificate expires, since 1970",
		    (uint64_t)(ingest->certificate_expires_at / USEC_PER_SEC));
	put(out, "requests", "gauge", "requests being answered",
	    (uint64_t)server_requests(ingest->server));
}

void
metrics_get(struct call *call)
{
	const struct ingest *ingest = call->ingest;
	struct buf body = { 0 };

	put_answers(&body, &ingest->metrics);
	put_counters(&body, &ingest->metrics);
	put_refusals(&body, ingest);
	put_gauges(&body, ingest);
	call_answer(call, 200, "text/plain; version=0.0.4", &body);
}

void
metrics_healthz(struct call *call)
{
	struct buf body = { 0 };

	buf_puts(&body, "{\"status\":\"alive\"}");
	call_json(call, 200, &body);
}

void
metrics_readyz(struct call *call)
{
	struct buf body = { 0 };

	if (call->ingest->is_stopping) {
		problem_reply(call, 503,
		    "it is stopping: ask another one, or try again in a "
		    "moment");
	} else if (!ingest_is_ready(call->ingest)) {
		problem_reply(
		    call, 503, "the database is away: try again in a moment");
	} else {
		buf_puts(&body, "{\"status\":\"ready\"}");
		call_json(call, 200, &body);
	}
}
