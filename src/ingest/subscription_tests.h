/*
 * subscription_tests: the route that has a test event sent, and the calls that
 * wait for what comes back.
 *
 * A dispatcher sends it, which store/subscription_test.h tells about.  Each call
 * looks now and then: to be told would wake ingest for each hint of work.
 */

#ifndef INGEST_SUBSCRIPTION_TESTS_H
#define INGEST_SUBSCRIPTION_TESTS_H

struct call;
struct err;
struct ingest;
struct subscription_tests;

int subscription_tests_open(
    struct subscription_tests **out, struct ingest *ingest, struct err *err);

/* Tell those that wait that we are stopping: 503. */
void subscription_tests_stop(struct subscription_tests *tests);

/* NULL is fine.  After the desk. */
void subscription_tests_close(struct subscription_tests *tests);

/* POST /v1/subscriptions/{id}/test: 200 with what came back, whatever that is;
 * 429 if one is under way; 503 if no dispatcher takes it; 504 if the one that
 * did says nothing. */
void subscription_tests_post(struct call *call);

#endif
