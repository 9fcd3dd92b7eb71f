/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay.c - the switch of relay.h as a program, for links.py: it says "ready" when the hosts are joined, carries packets until
 * its standard input ends or its time is over, and says what happened. */
#include "harness/relay.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { USAGE = 2, REFUSED = 77 };

typedef struct options {
    tt_relay_link link;
    double        seconds;
} options;

static int usage(void)
{
    fprintf(stderr, "usage: relay [--delay-ms X] [--jitter-ms X] [--loss SHARE] [--mbit X] [--queue BYTES] [--seed N]\n"
                    "             [--mtu N] [--reorder] [--seconds X] NAMESPACE NAMESPACE ...: paths, one for each host\n");
    return USAGE;
}

static bool read_options(int argc, char **argv, options *o)
{
    static const struct option names[] = {
        { "delay-ms", required_argument, NULL, 'd' }, { "jitter-ms", required_argument, NULL, 'j' },
        { "loss", required_argument, NULL, 'l' },     { "mbit", required_argument, NULL, 'm' },
        { "queue", required_argument, NULL, 'q' },    { "seed", required_argument, NULL, 's' },
        { "mtu", required_argument, NULL, 'u' },      { "reorder", no_argument, NULL, 'r' },
        { "seconds", required_argument, NULL, 't' },  { NULL, 0, NULL, 0 },
    };
    int name;

    *o = (options){ .link = { .seed = 1 }, .seconds = 600 };
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1)
        switch (name) {
        case 'd': o->link.delay_ns = (int64_t)(atof(optarg) * 1e6); break;
        case 'j': o->link.jitter_ns = (int64_t)(atof(optarg) * 1e6); break;
        case 'l': o->link.loss = atof(optarg); break;
        case 'm': o->link.rate_bps = (int64_t)(atof(optarg) * 1e6); break;
        case 'q': o->link.queue_bytes = atoll(optarg); break;
        case 's': o->link.seed = strtoull(optarg, NULL, 10); break;
        case 'u': o->link.mtu = atoi(optarg); break;
        case 'r': o->link.reorder = true; break;
        case 't': o->seconds = atof(optarg); break;
        default: return false;
        }
    return true;
}

static bool open_all(char **paths, int n, int *fds)
{
    int i;

    for (i = 0; i < n; i++) {
        fds[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) {
            printf("cannot open namespace '%s'\n", paths[i]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    int             fds[TT_RELAY_HOSTS_MAX];
    char            reason[160];
    tt_relay_counts counts;
    tt_relay       *relay;
    options         o;
    int             n;

    if (!read_options(argc, argv, &o))
        return usage();
    n = argc - optind;
    if (n < 2 || n > TT_RELAY_HOSTS_MAX)
        return usage();
    if (!open_all(argv + optind, n, fds))
        return REFUSED;
    if (!tt_relay_open(fds, n, &o.link, &relay, reason, sizeof reason)) {
        printf("%s\n", reason);
        return REFUSED;
    }
    printf("ready\n");
    fflush(stdout);
    tt_relay_run(relay, STDIN_FILENO, o.seconds);
    tt_relay_count(relay, &counts);
    printf("packets\tbytes\tlost\tdropped\tdelivered\n%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
           counts.packets, counts.bytes, counts.lost, counts.dropped, counts.delivered);
    tt_relay_close(relay);
    return 0;
}
