/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tls_cost.c - what TLS costs a connection, and a call over it: with it against without it, by turns.
 *
 *     tls_cost [--rounds N]
 *
 * How     Two servers of the tcp store on loopback in this process, one with TUTTI_TLS=1. A round opens a client of one of
 *         them (a TCP connection, the hello that proves the secret, TLS if there is any), asks it for a value of 4 KiB, and
 *         closes it; then one of the other. Which one is first changes from round to round.
 * Reads   us of opening and of a call, medians and quartiles; what TLS adds is the median of the rounds' differences. With the
 *         files of certificates named (TUTTI_TLS_CERT, ..._KEY, ..._CA) it is TLS with those. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <tutti/tutti.h>

enum { PLAIN, TLS, SIDES, ROUNDS = 1000, VALUE_BYTES = 4096 };

static const char *const names[SIDES] = { "plain", "TLS" };

typedef struct side {
    tutti_store_server *server;
    double             *open_us, *call_us; /* [rounds] */
} side;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(tutti_status st)
{
    if (st == TUTTI_OK)
        return;
    fprintf(stderr, "tls_cost: %s\n", tutti_last_error());
    exit(1);
}

/* Files of certificates without TLS are an error: they are there for one side only. */
static void choose(int which, char *const files[3])
{
    static const char *const variables[3] = { "TUTTI_TLS_CERT", "TUTTI_TLS_KEY", "TUTTI_TLS_CA" };
    int                      i;

    setenv("TUTTI_TLS", which == TLS ? "1" : "0", 1);
    for (i = 0; i < 3; i++) {
        if (which == TLS && files[i] != NULL)
            setenv(variables[i], files[i], 1);
        else
            unsetenv(variables[i]);
    }
}

static double a_round(const side *s, double *call_us_out)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    const double            begin = now_us();
    tutti_bytes             value = { .data = NULL };
    tutti_store            *store = NULL;
    double                  opened, called;

    options.host = "127.0.0.1";
    options.port = tutti_store_server_port(s->server);
    must(tutti_tcp_store_open(&options, &store));
    opened = now_us();
    must(tutti_store_get(store, "value", 0, &value));
    called = now_us();
    tutti_bytes_free(&value);
    tutti_store_close(store);
    *call_us_out = called - opened;
    return opened - begin;
}

static void serve(side *s, int rounds)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    static const char       value[VALUE_BYTES];
    tutti_store            *store = NULL;

    must(tutti_store_server_start(NULL, &s->server));
    options.host = "127.0.0.1";
    options.port = tutti_store_server_port(s->server);
    must(tutti_tcp_store_open(&options, &store));
    must(tutti_store_set(store, "value", value, sizeof value));
    tutti_store_close(store);
    s->open_us = calloc((size_t)rounds, sizeof *s->open_us);
    s->call_us = calloc((size_t)rounds, sizeof *s->call_us);
    if (s->open_us == NULL || s->call_us == NULL)
        exit(1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_row(const char *what, const char *name, double *us, int n)
{
    qsort(us, (size_t)n, sizeof *us, by_size);
    printf("%-10s %-12s %8.1f us   (%.1f to %.1f)\n", what, name, us[n / 2], us[n / 4], us[n - 1 - n / 4]);
}

static void report(const char *what, double *plain, double *tls, int n)
{
    double *added = calloc((size_t)n, sizeof *added);
    int     i;

    for (i = 0; added != NULL && i < n; i++)
        added[i] = tls[i] - plain[i];
    print_row(what, names[PLAIN], plain, n);
    print_row(what, names[TLS], tls, n);
    if (added != NULL)
        print_row(what, "TLS adds", added, n);
    free(added);
}

static const char *make_secret(void)
{
    static char path[] = "/tmp/tutti-tls-cost-XXXXXX";
    const int   fd = mkstemp(path);
    int         i;

    if (fd < 0)
        exit(1);
    for (i = 0; i < 64; i++)
        if (write(fd, "0123456789abcdef" + (i * 7 + 3) % 16, 1) != 1)
            exit(1);
    close(fd);
    return path;
}

int main(int argc, char **argv)
{
    const int   rounds = argc == 3 && strcmp(argv[1], "--rounds") == 0 ? atoi(argv[2]) : ROUNDS;
    const char *secret = make_secret();
    char       *files[3] = { getenv("TUTTI_TLS_CERT"), getenv("TUTTI_TLS_KEY"), getenv("TUTTI_TLS_CA") };
    side        sides[SIDES] = { { 0 } };
    int         i, k;

    for (i = 0; i < 3; i++)
        files[i] = files[i] != NULL ? strdup(files[i]) : NULL;
    setenv("TUTTI_SECRET_FILE", secret, 1);
    for (k = 0; k < SIDES; k++) {
        choose(k, files);
        serve(&sides[k], rounds > 0 ? rounds : 1);
    }
    for (i = 0; i < rounds; i++)
        for (k = 0; k < SIDES; k++) {
            const int which = (i + k) % SIDES;

            choose(which, files);
            sides[which].open_us[i] = a_round(&sides[which], &sides[which].call_us[i]);
        }
    if (rounds > 0) {
        report("opening", sides[PLAIN].open_us, sides[TLS].open_us, rounds);
        report("get 4 KiB", sides[PLAIN].call_us, sides[TLS].call_us, rounds);
    }
    for (k = 0; k < SIDES; k++) {
        tutti_store_server_stop(sides[k].server);
        free(sides[k].open_us);
        free(sides[k].call_us);
    }
    for (i = 0; i < 3; i++)
        free(files[i]);
    unlink(secret);
    return 0;
}
