/* dice: chance, where a poor one does no harm: it only spreads what would else
 * come together. */

#ifndef DISPATCH_DICE_H
#define DISPATCH_DICE_H

/* 0 to 999,999. */
int dice_roll(void);

#endif
