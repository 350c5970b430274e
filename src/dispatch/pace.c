#include "dispatch/pace.h"

#define LONGEST_REST (100 * USEC_PER_MS)

/* Lanes that a turn is to give, if it has them. */
enum { LANES_A_TURN = 16 };

int
pace_enough(int most)
{
	return most / 4;
}

usec_t
pace_rest(usec_t took, int lanes, int most, int room)
{
	int enough = pace_enough(most);
	usec_t rest = took;

	if (lanes >= enough)
		return 0;
	if (room < enough)
		rest *= 1 + 2 * enough / (lanes + 1);
	return rest < LONGEST_REST ? rest : LONGEST_REST;
}

int
pace_turns(int turns, int most, int room, int found)
{
	int fewest = room / LANES_A_TURN + 1;

	if (found < room / 2)
		turns *= 2;
	else if (found >= room - room / 4 && turns > fewest)
		turns = fewest + (turns - fewest) / 2;
	return turns < most ? turns : most;
}
