/*
 * gate: what every request passes before its handler.
 *
 * What the head tells is judged before a body is read: is there such a route,
 * is a key offered, is the body of its type, is the answer's type accepted?
 * Then the key is looked up, and the route's handler is called.
 */

#ifndef INGEST_GATE_H
#define INGEST_GATE_H

#include <stddef.h>

struct request;

/* What struct server_events wants; `arg` is the struct ingest. */
size_t gate_check(void *arg, struct request *request);
void gate_handle(void *arg, struct request *request);
void gate_refuse(
    void *arg, struct request *request, int status, const char *detail);

#endif
