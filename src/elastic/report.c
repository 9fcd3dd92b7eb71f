/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report.c - the root cause first, then who else failed, then whom the launcher stopped.
 *
 *   tutti: 'train' failed with exit code 134
 *     first: rank 1 (local rank 1, pid 4712, host 'n1'): signal SIGABRT (6) at 2026-03-01 12:00:07
 *     in the whole job: rank 5 (host 'n2', pid 911) was ended by signal 9 (Killed), before that
 *     also: rank 3 (local rank 3, pid 4714): exit code 1
 *     stopped by the launcher: ranks 0, 2
 *     killed, they did not end after the first signal: rank 2 */
#include "elastic/report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>

enum { LISTED_MAX = 16 };

/* "SIGABRT (6)", or "34" where there is no name. */
static void signal_text(int number, char *out, size_t bytes)
{
    const char *name = sigabbrev_np(number);

    if (name != NULL)
        snprintf(out, bytes, "SIG%s (%d)", name, number);
    else
        snprintf(out, bytes, "%d", number);
}

const char *tti_end_text(const tti_rank_end *end, char out[TTI_END_TEXT_MAX])
{
    char text[128];

    if (end->exec_errno != 0) {
        snprintf(out, TTI_END_TEXT_MAX, "cannot be executed: %s",
                 strerror_r(end->exec_errno, text, sizeof text));
    } else if (end->signal != 0) {
        signal_text(end->signal, text, sizeof text);
        snprintf(out, TTI_END_TEXT_MAX, "signal %s", text);
    } else {
        snprintf(out, TTI_END_TEXT_MAX, "exit code %d", end->exit_code);
    }
    return out;
}

static void say_first(FILE *out, const tti_job_result *result, int first_rank)
{
    const tti_rank_end *end = &result->ends[result->first];
    char text[TTI_END_TEXT_MAX];
    char host[256] = "?";
    char when[32] = "?";
    struct tm day;

    gethostname(host, sizeof host - 1);
    if (localtime_r(&end->when, &day) != NULL)
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &day);
    fprintf(out, "  first: rank %d (local rank %d, pid %ld, host '%s'): %s at %s\n",
            first_rank + result->first, result->first, (long)end->pid, host,
            tti_end_text(end, text), when);
}

/* What failed here may be what came of it. */
static void say_origin(FILE *out, const tti_job_result *result)
{
    char words[TTI_ENDING_TEXT_MAX];

    if (result->elsewhere)
        fprintf(out, "  in the whole job: %s, before that\n", tti_ending_words(&result->origin, words));
}

/* With keep: what became of the ranks of other hosts. */
static void say_gone(FILE *out, const tti_job_result *result)
{
    char words[TTI_ENDING_TEXT_MAX];
    int i;

    for (i = 0; i < result->n_gone && i < LISTED_MAX; i++)
        fprintf(out, "  in the whole job: %s\n", tti_ending_words(&result->gone[i], words));
    if (result->n_gone > LISTED_MAX)
        fprintf(out, "  in the whole job: %d more launchers are gone\n", result->n_gone - LISTED_MAX);
}

static void say_others(FILE *out, const tti_job_result *result, int first_rank)
{
    char text[TTI_END_TEXT_MAX];
    int n = 0;
    int i;

    for (i = 0; i < result->n_ranks; i++) {
        const tti_rank_end *end = &result->ends[i];

        if (i == result->first || end->stopped || end->exit_code == 0)
            continue;
        if (n++ < LISTED_MAX)
            fprintf(out, "  also: rank %d (local rank %d, pid %ld): %s\n", first_rank + i, i,
                    (long)end->pid, tti_end_text(end, text));
    }
    if (n > LISTED_MAX)
        fprintf(out, "  also: %d more\n", n - LISTED_MAX);
}

/* One line of ranks for which wanted() says yes; no line without any. */
static void say_list(FILE *out, const tti_job_result *result, int first_rank, const char *title,
                     bool (*wanted)(const tti_rank_end *end))
{
    int n = 0;
    int total = 0;
    int i;

    for (i = 0; i < result->n_ranks; i++)
        total += wanted(&result->ends[i]);
    if (total == 0)
        return;
    fprintf(out, "  %s: %s", title, total == 1 ? "rank" : "ranks");
    for (i = 0; i < result->n_ranks && n < LISTED_MAX; i++)
        if (wanted(&result->ends[i]))
            fprintf(out, "%s%d", n++ == 0 ? " " : ", ", first_rank + i);
    if (total > n)
        fprintf(out, " and %d more", total - n);
    fputc('\n', out);
}

static bool was_stopped(const tti_rank_end *end)
{
    return end->stopped;
}

static bool was_killed(const tti_rank_end *end)
{
    return end->killed;
}

static void say_all(FILE *out, const tti_job_result *result, const char *program, int first_rank)
{
    char text[64];

    if (result->kept && result->first >= 0) {
        fprintf(out, "tutti: '%s' went on without ranks that had failed, and ended well\n", program);
        say_first(out, result, first_rank);
        say_others(out, result, first_rank);
    } else if (result->first >= 0) {
        fprintf(out, "tutti: '%s' failed with exit code %d\n", program, result->exit_code);
        say_first(out, result, first_rank);
        say_origin(out, result);
        say_others(out, result, first_rank);
    } else if (result->signal == 0) {
        fprintf(out, "tutti: '%s' went on without ranks of other hosts, and %s\n", program,
                result->exit_code == 0 ? "ended well" : "not all of its output could be written");
    } else if (result->signal == SIGINT) {
        fprintf(out, "tutti: '%s' was interrupted (SIGINT)\n", program);
    } else {
        signal_text(result->signal, text, sizeof text);
        fprintf(out, "tutti: '%s' was ended by signal %s\n", program, text);
    }
    say_gone(out, result);
    say_list(out, result, first_rank, "stopped by the launcher", was_stopped);
    say_list(out, result, first_rank, "killed, having outlived the first signal", was_killed);
}

void tti_report(const tti_job_result *result, const char *program, int first_rank)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out;
    ssize_t done;

    if (result->first < 0 && result->signal == 0 && result->n_gone == 0)
        return;
    out = open_memstream(&text, &bytes);
    if (out == NULL)
        return;
    say_all(out, result, program, first_rank);
    if (fclose(out) == 0) {
        done = write(STDERR_FILENO, text, bytes);
        (void)done; /* nowhere to say that it cannot be said */
    }
    free(text);
}
