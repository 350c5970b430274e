/* change: a change of a subscription under way, and how it is answered. */

#ifndef INGEST_CHANGE_H
#define INGEST_CHANGE_H

#include <stdint.h>

#include "etag.h"
#include "rotation_form.h"
#include "store/sealed.h"
#include "store/subscription.h"
#include "subscription_form.h"

struct call;
struct pg_rows;

enum change_kind { CHANGE_PATCH, CHANGE_MOVE, CHANGE_ROTATION };

struct change {
	struct call *call;
	int64_t id;
	struct etag_match match;
	enum change_kind kind;
	struct subscription_form form; /* of a patch */
	enum subscription_move move;
	struct rotation_form rotation;
	struct sealed sealed; /* the secrets that it brings */
};

/* Answer its call, by what the database has said. */
void change_reply(const struct change *change, struct pg_rows *const *rows);

#endif
