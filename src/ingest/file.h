/* file: answering with a file that is part of the program. */

#ifndef INGEST_FILE_H
#define INGEST_FILE_H

struct call;
struct embedded;

/*
 * Answer with it, as `type`; or with 304 to a client that has it.  Its entity tag
 * is made of its content: the same from every host, and another with another
 * release.  `cache` is the Cache-Control.
 */
void file_answer(struct call *call, const struct embedded *file,
    const char *type, const char *cache);

#endif
