/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attacks.c - a table of attacks on a job in training, each with its outcome.
 *
 *   attacks --tutti PATH [--long] [--worlds N] [--only TEXT]...
 *
 * Goal    none of the attacks comes to anything, and the job finishes its training with the right numbers.
 * Method  a training under `tutti run`, ranks over TCP (job.c), goes on while one attack after the other is tried. Then it
 *         is told to stop, and a second one, which nobody attacks, makes as many steps: its parameters have the same bits.
 *         In short, each attack takes a second at most; --long does more of each, and those that take long. --worlds: in how many
 *         memory is scribbled on, of which 200 may be too many at once: each run draws other words, so that parts add up. */
#include "attacks.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <tutti/status.h>

enum { END_MS = 60000, TEXTS_MAX = 32 };

typedef struct settings {
    const char *tutti, *self;
    const char *only[TEXTS_MAX]; /* none: all */
    int         n_only;
    bool        at_length;
    int         n_worlds; /* 0: as --long says */
} settings;

typedef struct tally {
    int n, n_failed, n_skipped;
} tally;

static bool is_wanted(const settings *s, const attack *a)
{
    bool named = s->n_only == 0;
    int  i;

    for (i = 0; i < s->n_only; i++)
        named = named || strstr(a->name, s->only[i]) != NULL;
    return named && (s->at_length || !a->only_at_length);
}

static void try_one(const job *j, const attack *a, const settings *s, tally *t)
{
    const int64_t start = now_ms();
    outcome       o;
    long          steps;

    if (!is_wanted(s, a))
        return;
    o = a->run(j, s->at_length);
    if (o.held && !job_lives(j, &steps))
        o = failed("the job is gone");
    t->n++;
    t->n_skipped += o.skipped;
    t->n_failed += !o.held;
    printf("%-28s %-9s %6lld ms  %s\n%-28s %-9s            %s; expected: %s\n", a->name, o.skipped ? "skipped" : o.held ? "held" : "FAILED",
           (long long)(now_ms() - start), o.words, "", "", a->does, a->expected);
    fflush(stdout);
}

static void try_all(const job *j, const settings *s, tally *t)
{
    static const struct {
        const attack *list;
        const size_t *n;
    } parts[] = { { leak_attacks, &n_leak_attacks },   { file_attacks, &n_file_attacks }, { hello_attacks, &n_hello_attacks },
                  { frame_attacks, &n_frame_attacks }, { flood_attacks, &n_flood_attacks } };
    size_t part, i;

    for (part = 0; part < sizeof parts / sizeof parts[0]; part++)
        for (i = 0; i < *parts[part].n; i++)
            try_one(j, &parts[part].list[i], s, t);
}

/* The same training, with nobody around: it may take as long as the other one took. */
static bool compare(const settings *s, int64_t took_ms, long steps, uint64_t sum)
{
    long     again = 0;
    uint64_t undisturbed = 0;
    job      j = { .tutti = s->tutti, .self = s->self };

    if (!job_start(&j, steps) || !job_stop(&j, took_ms + END_MS, &again, &undisturbed))
        return false;
    printf("the job under attack made %ld steps, and came to %016" PRIx64 "; one that nobody attacks to %016" PRIx64 "\n", steps, sum,
           undisturbed);
    return again == steps && undisturbed == sum;
}

static int attack_all(const settings *s)
{
    job      j = { .tutti = s->tutti, .self = s->self, .n_worlds = s->n_worlds > 0 ? s->n_worlds : s->at_length ? 200 : 2 };
    tally    t = { 0 };
    uint64_t sum = 0;
    long     steps = 0;
    bool     ended;
    const int64_t start = now_ms();

    if (!job_start(&j, 0))
        return 1;
    try_all(&j, s, &t);
    ended = job_stop(&j, END_MS, &steps, &sum);
    if (!ended || steps == 0 || !compare(s, now_ms() - start, steps, sum)) {
        printf("the job did NOT finish its training with the right numbers\n");
        t.n_failed++;
    }
    printf("%d attacks, %d failed to be held off, %d skipped\n", t.n, t.n_failed, t.n_skipped);
    return t.n_failed > 0;
}

int main(int argc, char **argv)
{
    settings      s = { .self = "/proc/self/exe" };
    char          self[PATH_BYTES] = "", tutti[PATH_MAX];
    struct rlimit files;
    int           i;

    if (argc == 4 && strcmp(argv[1], "--train") == 0)
        return job_rank(argv[2], atol(argv[3]));
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--tutti") == 0 && i + 1 < argc)
            s.tutti = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc && s.n_only < TEXTS_MAX)
            s.only[s.n_only++] = argv[++i];
        else if (strcmp(argv[i], "--worlds") == 0 && i + 1 < argc)
            s.n_worlds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--long") == 0)
            s.at_length = true;
    if (s.tutti == NULL || readlink("/proc/self/exe", self, sizeof self - 1) < 0) {
        fprintf(stderr, "usage: attacks --tutti PATH [--long] [--worlds N] [--only TEXT]...\n");
        return 2;
    }
    s.self = self;
    s.tutti = realpath(s.tutti, tutti);
    if (s.tutti == NULL) {
        fprintf(stderr, "attacks: there is no such program\n");
        return 2;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
    return attack_all(&s);
}
