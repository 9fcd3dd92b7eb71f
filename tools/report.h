/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.h - findings, each with a verdict and one next step, as text for people or as JSON. */
#ifndef TUTTI_REPORT_H
#define TUTTI_REPORT_H

#include <jansson.h>
#include <stdbool.h>

typedef enum verdict {
    FINE,  /* as it should be */
    NOTE,  /* good to know */
    WARN,  /* works, but slower, or not with many ranks or hosts */
    FAILS, /* something will not work */
    N_VERDICTS
} verdict;

typedef struct report {
    const char *name; /* "host" */
    bool json;
    json_t *rows; /* NULL: text, which is printed as it comes */
    int n[N_VERDICTS];
} report;

report report_begin(const char *name, bool json);

/** One finding. topic: a word or two; next: what to do, or NULL. */
__attribute__((format(printf, 5, 6))) void report_add(report *r, verdict v, const char *topic, const char *next,
                                                      const char *fmt, ...);

/** Print what is left. Exit code: 0, or 1 if something fails, or if the report could not be written. */
int report_end(report *r);

#endif
