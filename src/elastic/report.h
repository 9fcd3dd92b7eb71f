/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/report.h - what is said of a job that failed. */
#ifndef TTI_ELASTIC_REPORT_H
#define TTI_ELASTIC_REPORT_H

#include "elastic/supervisor.h"

enum { TTI_END_TEXT_MAX = 160 };

/** "exit code 3", "signal SIGABRT (6)", "cannot be executed: Exec format error". Returns out. */
const char *tti_end_text(const tti_rank_end *end, char out[TTI_END_TEXT_MAX]);

/** Write to standard error which rank failed first, which others failed by themselves, and which the
 * launcher had to stop or kill. Says nothing of a job that succeeded. */
void tti_report(const tti_job_result *result, const char *program, int first_rank);

#endif
