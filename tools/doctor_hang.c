/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_hang.c - `tutti doctor hang`: looks twice at the recorders of a job, and says who is missing from what. */
#include "doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "bench_line.h"
#include "hang.h"
#include "tool.h"

enum { LOOK_MS = 400, PATH_BYTES = 4096 };

typedef struct hang_options {
    const char *job;
    const char *save;
    char **words; /* numbers of processes, or files */
    int n_words;
    bool pids, dumps, json, all, help;
    double least_s;
} hang_options;

static int print_help(FILE *out, int code)
{
    fprintf(out, "usage: tutti doctor hang [--job NAME | --pid PID... | --dumps FILE...] [options]\n\n"
                 "Says which ranks of a running job are missing from which operation, what they do instead, and who waits for them.\n"
                 "Nothing is attached to, and nothing is stopped. Without a name: the one job of this host.\n\n"
                 "  --job NAME     the job's name (TORCHELASTIC_RUN_ID)\n"
                 "  --pid PID...   these processes\n"
                 "  --dumps FILE... recorders that were saved, of all hosts\n"
                 "  --save DIR     write what was read to DIR/RANK.rec, to be looked at together with that of other hosts; DIR is\n"
                 "                 made if it is not there\n"
                 "  --least S      seconds that an operation has to take to count (2)\n"
                 "  --all          a line for each rank, however many\n"
                 "  --json         for programs\n\n"
                 "Exit codes: 0 nothing hangs, 1 something does, 2 wrong command line, or nothing to look at.\n");
    return code;
}

static bool see_help(void)
{
    fprintf(stderr, "  next: tutti doctor hang --help\n");
    return false;
}

static bool read_least(const char *text, double *out)
{
    char *end = NULL;

    *out = strtod(text, &end);
    if (end != text && *end == '\0' && *out >= 0 && *out < 1e9)
        return true;
    fprintf(stderr, "tutti doctor hang: --least '%.40s' is no number of seconds below 1e9\n", text);
    return see_help();
}

static bool read_option(int option, hang_options *o)
{
    switch (option) {
    case 'j': o->job = optarg; return true;
    case 'p': o->pids = true; return true;
    case 'd': o->dumps = true; return true;
    case 's': o->save = optarg; return true;
    case 'l': return read_least(optarg, &o->least_s);
    case 'a': o->all = true; return true;
    case 'n': o->json = true; return true;
    case 'h': o->help = true; return true;
    default: return see_help();
    }
}

static bool check_words(hang_options *o, int argc, char **argv)
{
    o->words = argv + optind;
    o->n_words = argc - optind;
    if (o->help)
        return true;
    if ((o->job != NULL) + o->pids + o->dumps > 1) {
        fprintf(stderr, "tutti doctor hang: --job, --pid and --dumps exclude each other\n");
        return see_help();
    }
    if ((o->pids || o->dumps) && o->n_words == 0) {
        fprintf(stderr, "tutti doctor hang: %s\n", o->pids ? "--pid needs numbers of processes" : "--dumps needs files");
        return see_help();
    }
    if (!o->pids && !o->dumps && o->n_words > 0) {
        fprintf(stderr, "tutti doctor hang: '%.200s' is one word too many\n", o->words[0]);
        return see_help();
    }
    return true;
}

static bool read_options(int argc, char **argv, hang_options *o)
{
    static const struct option names[] = {
        { "job", required_argument, NULL, 'j' },   { "pid", no_argument, NULL, 'p' },  { "dumps", no_argument, NULL, 'd' },
        { "save", required_argument, NULL, 's' },  { "least", required_argument, NULL, 'l' }, { "all", no_argument, NULL, 'a' },
        { "json", no_argument, NULL, 'n' },        { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
    };
    int option;

    *o = (hang_options){ .least_s = 2 };
    while ((option = tool_next_option("tutti doctor hang", argc, argv, names)) >= 0)
        if (!read_option(option, o))
            return false;
    return check_words(o, argc, argv);
}

static void sleep_ms(int ms)
{
    const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&t, NULL);
}

/* A process that came in later may have been given a number that somebody else has had. */
static bool is_first_of_rank(const job_view *view, int at, int rank)
{
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    int i;

    for (i = 0; i < at; i++)
        if (tutti_recorder_get_info(view->recorders[i], &info) == TUTTI_OK && info.rank == rank)
            return false;
    return true;
}

/* What was read, in files that --dumps reads. */
static bool save(const job_view *view, const char *dir)
{
    char path[PATH_BYTES];
    int i;

    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        fprintf(stderr, "tutti doctor hang: cannot make '%s': %s\n", dir, strerror(errno));
        return false;
    }
    for (i = 0; i < view->n_recorders; i++) {
        tutti_recorder_info info = TUTTI_RECORDER_INFO;

        if (tutti_recorder_get_info(view->recorders[i], &info) != TUTTI_OK)
            continue;
        if (info.rank >= 0 && is_first_of_rank(view, i, info.rank))
            snprintf(path, sizeof path, "%s/%d.rec", dir, info.rank);
        else
            snprintf(path, sizeof path, "%s/pid%lld.rec", dir, (long long)info.pid);
        if (tutti_recorder_save(view->recorders[i], path) != TUTTI_OK) {
            fprintf(stderr, "tutti doctor hang: %s\n", tutti_last_error());
            return false;
        }
    }
    return true;
}

/* A world that is looked at; -1: of that job none is there yet. */
typedef struct place {
    const char *job;
    int world;
} place;

static bool has_job(const place *list, int n, const char *job)
{
    int i;

    for (i = 0; i < n; i++)
        if (strcmp(list[i].job, job) == 0)
            return true;
    return false;
}

/* Worlds that are there now, those with most members first; then jobs that have none, but somebody who joins. *n_out is at least 1. */
static place *places_of(const job_view *view, int *n_out)
{
    place *list = calloc((size_t)(view->n_worlds + view->n_ranks) + 1, sizeof *list);
    int n = 0, i, k;

    for (i = 0; i < view->n_worlds && list != NULL; i++) {
        if (view->worlds[i].is_past)
            continue;
        for (k = n++; k > 0 && view->worlds[list[k - 1].world].n_living < view->worlds[i].n_living; k--)
            list[k] = list[k - 1];
        list[k] = (place){ .job = view->worlds[i].job, .world = i };
    }
    for (i = 0; i < view->n_ranks && list != NULL; i++)
        if (view->ranks[i].world < 0 && !view->ranks[i].is_left && !has_job(list, n, view->ranks[i].info.job))
            list[n++] = (place){ .job = view->ranks[i].info.job, .world = -1 };
    if (n == 0 && list != NULL)
        list[n++] = (place){ .job = view->n_ranks > 0 ? view->ranks[0].info.job : "", .world = -1 };
    *n_out = n;
    return list;
}

static int print_json(const hang *h, int n)
{
    json_t *all = json_array();
    int i, code;

    for (i = 0; i < n; i++)
        json_array_append_new(all, hang_json(&h[i]));
    code = all != NULL && json_dumpf(n == 1 ? json_array_get(all, 0) : all, stdout, JSON_INDENT(2)) == 0 ? EXIT_SUCCESS
                                                                                                        : EXIT_FAILURE;
    putchar('\n');
    json_decref(all);
    return code;
}

/* Whether number i is the first of its job. */
static bool is_first_of_job(const hang *h, int i)
{
    int k;

    for (k = 0; k < i && strcmp(h[k].job, h[i].job) != 0;)
        k++;
    return k == i;
}

/* Of several worlds those in which something hangs; if it is none, the first of each job. */
static int print(const hang *h, int n, const hang_options *o)
{
    int hanging = 0, printed = 0, code = EXIT_SUCCESS, i;

    for (i = 0; i < n; i++)
        hanging += hang_is_one(&h[i]);
    if (o->json)
        code = print_json(h, n);
    for (i = 0; i < n && !o->json; i++)
        if (hanging > 0 ? hang_is_one(&h[i]) : is_first_of_job(h, i)) {
            printf("%s", printed++ > 0 ? "\n" : "");
            hang_print(&h[i], o->all);
        }
    return hanging > 0 ? EXIT_FAILURE : code;
}

static bool open_view(const hang_options *o, job_view *view)
{
    if (o->pids)
        return job_view_open_pids("tutti doctor hang", o->words, o->n_words, view);
    if (o->dumps)
        return job_view_open_files("tutti doctor hang", o->words, o->n_words, view);
    return job_view_find("tutti doctor hang", o->job, view);
}

/* In each world that is there. */
static int find(const hang_options *o, const job_view *view, const hang_look *first)
{
    int n = 0, n_found = 0, code = TOOL_USAGE, i;
    place *places = places_of(view, &n);
    hang *h = calloc((size_t)n + 1, sizeof *h);
    bool ok = places != NULL && h != NULL;

    for (i = 0; i < n && ok; i++) {
        ok = hang_find(view, places[i].job, places[i].world, first, o->least_s, &h[i]);
        n_found++;
    }
    if (ok)
        code = print(h, n, o);
    else
        fprintf(stderr, "tutti doctor hang: no memory\n");
    for (i = 0; i < n_found; i++)
        hang_release(&h[i]);
    free(h);
    free(places);
    return code;
}

/* Two looks, so that what moves is told from what does not. */
static int look(const hang_options *o, job_view *view)
{
    hang_look first;
    int code = TOOL_USAGE;

    if (!hang_look_begin(view, &first)) {
        fprintf(stderr, "tutti doctor hang: no memory\n");
        return TOOL_USAGE;
    }
    if (!view->from_files)
        sleep_ms(LOOK_MS);
    job_view_update(view);
    if (o->save != NULL && !save(view, o->save))
        code = TOOL_USAGE; /* 1 would say that something hangs */
    else if (job_view_arrange(view, true))
        code = find(o, view, &first);
    else
        fprintf(stderr, "tutti doctor hang: no memory\n");
    hang_look_release(&first);
    return code;
}

int doctor_hang(int argc, char **argv)
{
    hang_options o;
    job_view view = { .recorders = NULL };
    int code = TOOL_USAGE;

    if (!read_options(argc, argv, &o))
        return TOOL_USAGE;
    if (o.help)
        return print_help(stdout, EXIT_SUCCESS);
    if (open_view(&o, &view))
        code = look(&o, &view);
    job_view_release(&view);
    return code;
}
