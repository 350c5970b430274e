/*
 * console: the operator console's files, which are part of the program.
 *
 * They need no key: all that they show they ask of the API, with the key that a
 * person enters.  What they may load and do is said to the browser with each
 * (src/README.md, "Console").
 */

#ifndef INGEST_CONSOLE_H
#define INGEST_CONSOLE_H

struct call;

/* GET /console: it is at /console/, where the files' own links lead on from. */
void console_redirect(struct call *call);

/* GET /console/ */
void console_page(struct call *call);

/* GET /console/{id}: the file of this name; there is no folder behind it. */
void console_file(struct call *call);

#endif
