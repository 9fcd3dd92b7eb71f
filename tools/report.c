/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - a line for each finding. What is not printable ASCII is shown as '?'. */
#include "report.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 1024 };

static const char *const names[] = { [FINE] = "ok", [NOTE] = "note", [WARN] = "warn", [FAILS] = "fails" };

report report_begin(const char *name, bool json)
{
    return (report){ .name = name, .json = json, .rows = json ? json_array() : NULL };
}

/* Names of hosts, interfaces and values of variables are anybody's: they shall not move the cursor. */
static void clean(char *text)
{
    for (; *text != '\0'; text++)
        if (!isprint((unsigned char)*text) && *text != '\n')
            *text = '?';
}

/* Lines behind the first stand below it. */
static void print_text(verdict v, const char *topic, const char *text)
{
    const char *line = text;

    printf("%-6s%-14s ", names[v], topic);
    for (; *line != '\0'; line++) {
        putchar(*line);
        if (*line == '\n')
            printf("%21s", "");
    }
    putchar('\n');
}

void report_add(report *r, verdict v, const char *topic, const char *next, const char *fmt, ...)
{
    char text[TEXT_MAX], step[TEXT_MAX] = "", name[TEXT_MAX];
    va_list args;

    if (next != NULL)
        snprintf(step, sizeof step, "%s", next);
    clean(step);
    snprintf(name, sizeof name, "%s", topic);
    clean(name);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    clean(text);
    r->n[v]++;
    if (r->json) {
        json_array_append_new(r->rows, json_pack("{ss ss ss ss?}", "verdict", names[v], "topic", name, "text", text, "next",
                                                 next != NULL ? step : NULL));
        return;
    }
    print_text(v, name, text);
    if (next != NULL)
        printf("%20s next: %s\n", "", step);
    fflush(stdout);
}

int report_end(report *r)
{
    const int code = r->n[FAILS] > 0 ? EXIT_FAILURE : EXIT_SUCCESS;

    if (r->json) {
        json_t *all = json_pack("{ss si si so}", "doctor", r->name, "fails", r->n[FAILS], "warnings", r->n[WARN], "findings",
                                r->rows);

        if (all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)) != 0)
            return EXIT_FAILURE;
        putchar('\n');
        json_decref(all);
    } else {
        printf("\n%d fail%s, %d warning%s\n", r->n[FAILS], r->n[FAILS] == 1 ? "s" : "", r->n[WARN],
               r->n[WARN] == 1 ? "" : "s");
    }
    return fflush(stdout) == 0 ? code : EXIT_FAILURE;
}
