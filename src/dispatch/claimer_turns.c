#include "dispatch/claimer_inside.h"
#include "pg/row.h"
#include "store/lane.h"
#include "store/rota.h"

void
claimer_take(struct claimer *claimer, struct pg_batch *batch, int room)
{
	int limit = room < claimer->turns ? room : claimer->turns;
	int64_t asked[CLAIMER_TURNS];
	size_t n = rota_next(claimer->rota, asked, (size_t)limit);

	claimer->nturns = (size_t)limit;
	lane_take(batch, limit, asked, n, claimer->entered_from);
}

void
claimer_taken(struct claimer *claimer, const struct pg_rows *rows)
{
	struct lane_turn turn;

	claimer->entered_from = lane_take_from(rows);
	claimer->nempty = 0;
	for (int i = 0; i < pg_count(rows); i++) {
		if (!lane_take_read(rows, i, &turn))
			break;
		if (turn.is_taken)
			claimer->empty[claimer->nempty++] =
			    turn.subscription_id;
		if (turn.tenant_id != 0) {
			rota_add(claimer->rota, turn.tenant_id,
			    turn.subscription_id);
		} else {
			rota_remove(claimer->rota, turn.subscription_id);
		}
	}
}

void
claimer_strike(struct claimer *claimer, int64_t subscription_id)
{
	for (size_t i = 0; i < claimer->nempty; i++)
		if (claimer->empty[i] == subscription_id) {
			claimer->empty[i] = claimer->empty[--claimer->nempty];
			return;
		}
}
