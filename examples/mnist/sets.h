/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sets.h - the pictures to train on, and those held out. */
#ifndef SETS_H
#define SETS_H

#include <stdbool.h>
#include <tutti/data.h>

/* Open train-* and t10k-* of a directory. Where there is no train-* file, the first nine tenths of
 * t10k-* are the training set. Free what was opened also after a failure. */
bool sets_open(const char *dir, tutti_dataset **train_out, tutti_dataset **test_out);

#endif
