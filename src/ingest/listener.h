/*
 * listener: where and how ingest listens, and what it lets clients take.
 *
 * In the clear it listens on loopback alone, unless plain_http says otherwise:
 * keys of the API would cross a network for all to read.
 */

#ifndef INGEST_LISTENER_H
#define INGEST_LISTENER_H

struct err;
struct ingest;
struct ingest_conf;

/* Whether the settings fit together, and the files of TLS can be used. */
int listener_check(const struct ingest_conf *conf, struct err *err);

/* Open ingest->server. */
int listener_open(struct ingest *ingest, struct err *err);

/* Read the files of TLS again, for connections to come; the log says what came
 * of it.  If they are wrong, all stays as it is. */
void listener_reload(struct ingest *ingest);

#endif
