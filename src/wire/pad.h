/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/pad.h - what keys are combined with while they lie in memory. */
#ifndef TTI_WIRE_PAD_H
#define TTI_WIRE_PAD_H

#include <stddef.h>
#include <stdint.h>

enum { TTI_PAD_BYTES = 32 };

/** This process's, the same at every call; NULL, with errno: there is no memory for it that stays out of cores. */
const volatile uint8_t *tti_pad(void);

#endif
