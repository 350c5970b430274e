#include <stdint.h>

#include <openssl/rand.h>

#include "dispatch/dice.h"

enum { SIDES = 1000000 };

int
dice_roll(void)
{
	uint32_t random = 0;

	if (RAND_bytes((unsigned char *)&random, sizeof(random)) != 1)
		return SIDES / 2;
	return (int)(random % SIDES);
}
