/* SPDX-License-Identifier: BSD-3-Clause
 *
 * startup_rank.c - one rank of bench/startup.py: joins, adds up one number, says when that was done and
 * what it holds open.
 *
 * One line on standard output: the clock (CLOCK_MONOTONIC, ns) in main(), after joining and after the first
 * all_reduce; descriptors, and how many of them are connected TCP sockets; memory in KiB (own, shared, page
 * tables). */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <tutti/tutti.h>

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What this process holds open: of all sorts, and TCP connections. */
static void count_open(int *n_out, int *connected_out)
{
    struct sockaddr_storage peer;
    struct dirent          *entry;
    DIR                    *dir = opendir("/proc/self/fd");

    *n_out = *connected_out = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        socklen_t size = sizeof peer;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(dir))
            continue;
        ++*n_out;
        if (getpeername(atoi(entry->d_name), (struct sockaddr *)&peer, &size) == 0 && peer.ss_family != AF_UNIX)
            ++*connected_out;
    }
    if (dir != NULL)
        closedir(dir);
}

/* A line of /proc/self/status, in KiB; 0: it has none. */
static long status_kib(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char  line[256];
    long  kib = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            kib = strtol(line + strlen(name) + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return kib;
}

int main(void)
{
    const int64_t began = now_ns();
    int64_t       joined, done;
    float         x = 1.0f;
    int           n, n_open, connected;

    if (tutti_init_process_group(NULL) != TUTTI_OK)
        goto failed;
    joined = now_ns();
    n = tutti_get_world_size(NULL);
    if (tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL) != TUTTI_OK)
        goto failed;
    done = now_ns();
    if (x != (float)n) {
        fprintf(stderr, "the sum of %d ones is %g\n", n, (double)x);
        return 1;
    }
    count_open(&n_open, &connected);
    printf("startup %" PRId64 " %" PRId64 " %" PRId64 " %d %d %ld %ld %ld\n", began, joined, done, n_open, connected,
           status_kib("RssAnon"), status_kib("RssShmem"), status_kib("VmPTE"));
    fflush(stdout);
    if (tutti_barrier(NULL) != TUTTI_OK || tutti_destroy_process_group(NULL) != TUTTI_OK)
        goto failed;
    return 0;

failed:
    fprintf(stderr, "%s\n", tutti_last_error());
    return 1;
}
