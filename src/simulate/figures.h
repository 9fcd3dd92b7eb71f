/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/figures.h - files of figures. The format is told in tutti/simulate.h. Limits: 64 KiB; jansson's own 2048 lists
 * inside each other; each number has its range. */
#ifndef TTI_SIMULATE_FIGURES_H
#define TTI_SIMULATE_FIGURES_H

#include <stddef.h>
#include <tutti/status.h>
#include "simulate/cluster.h"

/** Of a line, what programs see: 1448 of 1538 bytes, TCP in frames of 1500. */
#define TTI_SHARE_OF_LINE 0.9415

/** Of a shaper's rate: 1448 of 1514 bytes, since it counts the head of a frame, and neither preamble nor gap. */
#define TTI_SHARE_OF_SHAPER 0.9564

/** ns that a byte takes a line of so many Gb/s. */
static inline double tti_port_byte(double gbit_per_s)
{
    return 8 / (gbit_per_s * TTI_SHARE_OF_LINE);
}

/** Read the file; what it leaves out stays in figures. TUTTI_E_ARG says what is wrong, TUTTI_E_IO that it cannot be read. */
tutti_status tti_figures_read(const char *path, tti_figures *figures);
/** The same of a text; path is for the words of a failure. */
tutti_status tti_figures_parse(const char *path, const char *text, size_t bytes, tti_figures *figures);
tutti_status tti_figures_write(const char *path, const tti_figures *figures);

/** message_us and what else is told of messages as a tier. Posts of more than half a message are half of it. */
tti_tier tti_tier_of(double message_us, double post_us, double send_byte, double recv_byte);

#endif
