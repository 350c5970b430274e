/* dead_letters: the route that tells what died, and of what. */

#ifndef INGEST_DEAD_LETTERS_H
#define INGEST_DEAD_LETTERS_H

struct call;

/* GET /v1/dead-letters[?subscription=ID&reason=TEXT]: groups of one subscription
 * and one reason, the largest first.  Single ones are among its deliveries. */
void dead_letters_get(struct call *call);

#endif
