/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_fit.c - `tutti sim --fit`: figures of this machine.
 *
 * How     Two ranks of a job of this command exchange messages, over TCP and through shared memory, as `tutti bench` measures
 *         them. One tiny message is message_us. A batch of 64 has 48 more sends and receives on a rank than one of 16:
 *         the difference is what they take a core. Two large messages of different sizes tell what a byte takes; over a
 *         loopback both ends copy at the same time, so that it is each end's. They fit into the sockets' memory: beyond, a
 *         loopback tells more of how two processes take turns than of copying. Memory and waits the library measures. No
 *         collective is part of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench_files.h"
#include "bench_options.h"
#include "sim_options.h"

/* Columns as bench_rank.c prints them. */
enum { OP = 0, BYTES = 7, MEDIAN = 11, COLUMNS = 18, ROW_MAX = 1024 };
enum { TINY = 4, LARGE = 16 << 10, LARGEST = 512 << 10, MORE_POSTS = 2 * (32 - 8) };

typedef struct times {
    double tiny, large, largest;   /* of one message, us */
    double of_16, of_64;           /* of a batch */
} times;

static void take_row(char **fields, times *t)
{
    const long bytes = strtol(fields[BYTES], NULL, 10);
    const double us = strtod(fields[MEDIAN], NULL);

    if (strcmp(fields[OP], "exchange16") == 0)
        t->of_16 = us;
    else if (strcmp(fields[OP], "exchange64") == 0)
        t->of_64 = us;
    else if (strcmp(fields[OP], "send_recv") == 0)
        *(bytes == TINY ? &t->tiny : bytes == LARGE ? &t->large : &t->largest) = us;
}

static bool read_rows(const char *path, times *t)
{
    FILE *rows = fopen(path, "re");
    char line[ROW_MAX], *fields[COLUMNS], *rest;
    int n;

    while (rows != NULL && fgets(line, sizeof line, rows) != NULL) {
        rest = line;
        for (n = 0; n < COLUMNS && (fields[n] = strsep(&rest, "\t\n")) != NULL; n++)
            ;
        if (n == COLUMNS)
            take_row(fields, t);
    }
    if (rows != NULL)
        fclose(rows);
    return t->tiny > 0 && t->large > 0 && t->largest > 0 && t->of_16 > 0 && t->of_64 > 0;
}

static int measure(const char *op, const char *sizes, const char *transport, char *path)
{
    static char words[9][16] = { "", "--launched", "--transport", "", "--budget-ms", "700", "--sizes", "" };
    char *argv[9] = { words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7], NULL };

    snprintf(words[0], sizeof words[0], "%s", op);
    snprintf(words[3], sizeof words[3], "%s", transport);
    snprintf(words[7], sizeof words[7], "%s", sizes);
    return bench_launch(8, argv, 2, path);
}

static bool measure_messages(const char *transport, times *t)
{
    char path[BENCH_SCRATCH_MAX];
    const int fd = bench_scratch(path);
    bool ok;

    *t = (times){ .tiny = 0 };
    if (fd < 0)
        return false;
    ok = measure("send_recv", "4,16K,512K", transport, path) == EXIT_SUCCESS &&
         measure("exchange16", "4", transport, path) == EXIT_SUCCESS &&
         measure("exchange64", "4", transport, path) == EXIT_SUCCESS;
    if (ok && !read_rows(path, t)) {
        fprintf(stderr, "tutti sim: what was measured has not the rows that were expected\n");
        ok = false;
    }
    close(fd);
    return ok;
}

static double positive(double value)
{
    return value > 0 ? value : 0;
}

static tutti_sim_messages messages_of(const times *t)
{
    const double byte_ns = 1000 * positive(t->largest - t->large) / (LARGEST - LARGE);

    return (tutti_sim_messages){ .message_us = t->tiny, .post_us = positive(t->of_64 - t->of_16) / MORE_POSTS,
                                 .send_ns_per_byte = byte_ns, .recv_ns_per_byte = byte_ns };
}

static void print_messages(const char *what, const tutti_sim_messages *m)
{
    printf("%s: %.2f us a message, of which %.2f us at each end; %.3f ns a byte at each end\n", what, m->message_us,
           m->post_us, m->send_ns_per_byte);
}

int sim_fit(const sim_options *o)
{
    const bool replaces = access(o->fit, F_OK) == 0;
    times near, far;
    tutti_sim_messages local, over_tcp;

    setenv("OMP_NUM_THREADS", "1", 0); /* else the launcher does, and says so */
    if (!measure_messages("auto", &near) || !measure_messages("tcp", &far))
        return EXIT_FAILURE;
    local = messages_of(&near);
    over_tcp = messages_of(&far);
    if (tutti_sim_fit(o->fit, &local, &over_tcp, o->gbit.values[0]) != TUTTI_OK) {
        fprintf(stderr, "tutti sim: %s\n", tutti_last_error());
        return EXIT_FAILURE;
    }
    print_messages("inside the host", &local);
    print_messages("over TCP", &over_tcp);
    printf("%s: written%s\n", o->fit, replaces ? ", in the place of the one that was there" : "");
    return EXIT_SUCCESS;
}
