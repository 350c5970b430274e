/* metrics: what has happened since the start, counted for Prometheus. */

#ifndef INGEST_METRICS_H
#define INGEST_METRICS_H

#include <stdint.h>

enum {
	METRICS_ROUTES = 64,
	METRICS_STATUSES = 600, /* indexed by the status */
};

struct metrics {
	/* The last route stands for requests that fit none. */
	uint64_t answers[METRICS_ROUTES][METRICS_STATUSES];
	uint64_t accepted; /* new events */
	uint64_t repeated; /* events that were known, with the same content */
	uint64_t deliveries; /* that new events made */
	uint64_t batches; /* transactions begun by the writers */
	uint64_t failed_batches;
	uint64_t tls_failures; /* clients that failed at TLS */
};

struct call;

/* GET /metrics, GET /healthz, GET /readyz */
void metrics_get(struct call *call);
void metrics_healthz(struct call *call);
void metrics_readyz(struct call *call);

#endif
