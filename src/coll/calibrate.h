/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/calibrate.h - the figures of the cost model, measured. */
#ifndef TTI_COLL_CALIBRATE_H
#define TTI_COLL_CALIBRATE_H

#include "coll/cost.h"

/** What things take on this machine: measured in the first call of the process, a few milliseconds. What
 * could not be measured, and all that is about other hosts, is tti_machine_default's. Any thread. */
const tti_machine *tti_machine_here(void);

#endif
