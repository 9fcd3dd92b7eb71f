/* SPDX-License-Identifier: BSD-3-Clause
 *
 * picture.h - the tables of a run as a picture. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdbool.h>

/* Write curve.svg in a folder, from its losses.tsv and held_out.tsv: bits per byte over steps, and a dashed line at a
 * level of that name. */
bool picture_draw(const char *dir, double level, const char *level_name);

#endif
