/* SPDX-License-Identifier: BSD-3-Clause
 *
 * startup_store.c - what joining takes of the process that serves the store: startup.py predicts larger worlds with it.
 *
 * The server is alone in a child process, whose time on a core is read before and after; so the clients' share of the work
 * is not in it. One line on standard output, in ns of the server: a connection with its hello, a small request, a card that
 * is read in a list of 256. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/tutti.h>

enum { CONNECTIONS = 400, REQUESTS = 20000, LISTS = 400, LIST = 256, CARD = 280 };

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tutti_last_error());
    exit(1);
}

static _Noreturn void serve(int to_parent)
{
    tutti_store_server *server = NULL;
    int                 port;

    if (tutti_store_server_start(NULL, &server) != TUTTI_OK)
        die("startup_store");
    port = tutti_store_server_port(server);
    if (write(to_parent, &port, sizeof port) != sizeof port)
        _exit(1);
    for (;;)
        pause();
}

/* ns that the threads of a process have run. */
static int64_t ran_ns(pid_t pid)
{
    char    path[64];
    int64_t ns = 0, sum = 0;
    FILE   *list, *file;
    int     tid;

    snprintf(path, sizeof path, "ls /proc/%d/task", (int)pid);
    list = popen(path, "r");
    while (list != NULL && fscanf(list, "%d", &tid) == 1) {
        snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, tid);
        file = fopen(path, "r");
        if (file != NULL && fscanf(file, "%" SCNd64, &ns) == 1)
            sum += ns;
        if (file != NULL)
            fclose(file);
    }
    if (list != NULL)
        pclose(list);
    return sum;
}

static tutti_store *open_store(int port)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;

    options.host = "127.0.0.1";
    options.port = port;
    if (tutti_tcp_store_open(&options, &store) != TUTTI_OK)
        die("startup_store");
    return store;
}

static double connections(pid_t server, int port)
{
    static tutti_store *stores[CONNECTIONS];
    const int64_t       began = ran_ns(server);
    double              each;
    int                 i;

    for (i = 0; i < CONNECTIONS; i++)
        stores[i] = open_store(port);
    each = (double)(ran_ns(server) - began) / CONNECTIONS;
    for (i = 0; i < CONNECTIONS; i++)
        tutti_store_close(stores[i]);
    return each;
}

static double requests(pid_t server, tutti_store *store)
{
    const int64_t began = ran_ns(server);
    int64_t       sum;
    int           i;

    for (i = 0; i < REQUESTS; i++)
        if (tutti_store_add(store, "tutti/worlds", 0, &sum) != TUTTI_OK)
            die("startup_store");
    return (double)(ran_ns(server) - began) / REQUESTS;
}

static double cards(pid_t server, tutti_store *store)
{
    static char room[LIST][64];
    static char card[CARD];
    const char *keys[LIST];
    tutti_bytes values[LIST];
    int64_t     began;
    int         i, k;

    for (k = 0; k < LIST; k++) {
        snprintf(room[k], sizeof room[k], "/worker/attempt_0/default_pg/0//cpu//card/%d", k);
        keys[k] = room[k];
        if (tutti_store_set(store, keys[k], card, sizeof card) != TUTTI_OK)
            die("startup_store");
    }
    began = ran_ns(server);
    for (i = 0; i < LISTS; i++) {
        if (tutti_store_multi_get(store, keys, LIST, 0, values) != TUTTI_OK)
            die("startup_store");
        for (k = 0; k < LIST; k++)
            tutti_bytes_free(&values[k]);
    }
    return (double)(ran_ns(server) - began) / LISTS / LIST;
}

int main(void)
{
    tutti_store *store;
    double       connection, request, card;
    int          ends[2], port = 0;
    pid_t        server;

    if (pipe(ends) != 0 || (server = fork()) < 0)
        return 1;
    if (server == 0)
        serve(ends[1]);
    if (read(ends[0], &port, sizeof port) != sizeof port)
        return 1;
    store = open_store(port);
    connection = connections(server, port);
    request = requests(server, store);
    card = cards(server, store);
    printf("startup_store %.0f %.0f %.1f\n", connection, request, card);
    tutti_store_close(store);
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    return 0;
}
