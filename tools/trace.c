/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.c - `tutti trace`: the latest operations of all ranks as a file for Perfetto or chrome://tracing. */
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bench_line.h"
#include "tool.h"

typedef struct trace_options {
    const char *job, *out;
    bool pids, dumps, help;
    char **words;
    int n_words;
} trace_options;

static int print_help(FILE *out, int code)
{
    fprintf(out, "usage: tutti trace [--job NAME | --pid PID... | --dumps FILE...] [--out FILE]\n\n"
                 "Writes the latest operations and ranges of all ranks of a job, running or dumped, on one time line, for\n"
                 "ui.perfetto.dev or chrome://tracing. Clocks of several hosts are set by the operations that they share.\n\n"
                 "  --job NAME       the job's name (the one job of this host)\n"
                 "  --pid PID...     these processes\n"
                 "  --dumps FILE...  recorders that were saved: tutti doctor hang --save, TUTTI_TRACE_SIGNAL\n"
                 "  --out FILE       where to; -: standard output (tutti-trace.json)\n");
    return code;
}

static bool see_help(void)
{
    fprintf(stderr, "  next: tutti trace --help\n");
    return false;
}

static bool check_words(trace_options *o, int argc, char **argv)
{
    o->words = argv + optind;
    o->n_words = argc - optind;
    if (o->help)
        return true;
    if ((o->job != NULL) + o->pids + o->dumps > 1)
        fprintf(stderr, "tutti trace: --job, --pid and --dumps exclude each other\n");
    else if ((o->pids || o->dumps) && o->n_words == 0)
        fprintf(stderr, "tutti trace: %s\n", o->pids ? "--pid needs numbers of processes" : "--dumps needs files");
    else if (!o->pids && !o->dumps && o->n_words > 0)
        fprintf(stderr, "tutti trace: '%.200s' is one word too many\n", o->words[0]);
    else
        return true;
    return see_help();
}

static bool read_options(int argc, char **argv, trace_options *o)
{
    static const struct option names[] = {
        { "job", required_argument, NULL, 'j' }, { "pid", no_argument, NULL, 'p' },  { "dumps", no_argument, NULL, 'd' },
        { "out", required_argument, NULL, 'o' }, { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
    };
    int option;

    *o = (trace_options){ .out = "tutti-trace.json" };
    while ((option = tool_next_option("tutti trace", argc, argv, names)) >= 0)
        switch (option) {
        case 'j': o->job = optarg; break;
        case 'p': o->pids = true; break;
        case 'd': o->dumps = true; break;
        case 'o': o->out = optarg; break;
        case 'h': o->help = true; break;
        default: return see_help();
        }
    return check_words(o, argc, argv);
}

static bool open_view(const trace_options *o, job_view *view)
{
    if (o->pids)
        return job_view_open_pids("tutti trace", o->words, o->n_words, view);
    if (o->dumps)
        return job_view_open_files("tutti trace", o->words, o->n_words, view);
    return job_view_find("tutti trace", o->job, view);
}

static int cannot_write(const char *file)
{
    fprintf(stderr, "tutti trace: cannot write '%.200s': %s\n", file, strerror(errno));
    return EXIT_FAILURE;
}

static int write_file(const trace *t, const trace_flow *flows, int n_flows, const char *file)
{
    const bool standard = strcmp(file, "-") == 0;
    FILE *out = standard ? stdout : fopen(file, "we");
    int n = 0, i;
    bool ok;

    if (out == NULL)
        return cannot_write(file);
    ok = trace_write(t, flows, n_flows, out);
    if (!standard)
        ok = fclose(out) == 0 && ok;
    if (!ok)
        return cannot_write(file);
    for (i = 0; i < t->view->n_ranks; i++)
        n += t->view->ranks[i].n_ops;
    if (!standard)
        printf("%s: %d operations of %d ranks on %d host%s, %d messages from end to end\n", file, n, t->view->n_ranks, t->n_clocks,
               t->n_clocks == 1 ? "" : "s", n_flows);
    return EXIT_SUCCESS;
}

static int write_view(job_view *view, const char *file)
{
    trace t = { .view = NULL };
    trace_flow *flows = NULL;
    int n_flows = 0, code = EXIT_FAILURE;

    if (job_view_arrange(view, false) && trace_make(view, &t) && trace_match(&t, &flows, &n_flows))
        code = write_file(&t, flows, n_flows, file);
    else
        fprintf(stderr, "tutti trace: no memory\n");
    free(flows);
    trace_release(&t);
    return code;
}

int tool_trace(int argc, char **argv)
{
    trace_options o;
    job_view view = { .recorders = NULL };
    int code = TOOL_USAGE;

    if (!read_options(argc, argv, &o))
        return TOOL_USAGE;
    if (o.help)
        return print_help(stdout, EXIT_SUCCESS);
    if (open_view(&o, &view))
        code = write_view(&view, o.out);
    job_view_release(&view);
    return code;
}
