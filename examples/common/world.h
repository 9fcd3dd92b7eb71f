/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.h - a program that runs under a launcher, or alone. */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>

/* Join the launcher's world; without one, a world of this process alone. */
bool world_join(void);

/* Leave it, when all do. */
bool world_leave(void);

/* Rank 0's word, for all ranks: whether a part that only rank 0 has went well. Every rank calls it. */
bool world_agrees(bool ok);

#endif
