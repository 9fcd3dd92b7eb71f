/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_find.h - the two halves of finding out: who is at what (hang_ranks.c), who waits for whom (hang_find.c). */
#ifndef TUTTI_HANG_FIND_H
#define TUTTI_HANG_FIND_H

#include "hang.h"

/** Make h's ranks, and its others, of the view. False: no memory. */
bool hang_place_ranks(hang *h);

/** Find out what they are at. */
void hang_look_at_ranks(hang *h, const hang_look *look, double least_s);

#endif
