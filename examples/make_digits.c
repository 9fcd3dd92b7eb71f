/* SPDX-License-Identifier: BSD-3-Clause
 *
 * make_digits - write a data set of drawn digits, in the files and the format of MNIST.
 *
 *   make_digits DIR [--train N] [--test N] [--seed S] */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/data.h>

static void usage(FILE *out)
{
    fprintf(out, "usage: make_digits DIR [--train N] [--test N] [--seed S]\n");
}

static int whole_number(const char *text, uint64_t max, uint64_t *value_out)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > max)
        return -1;
    *value_out = value;
    return 0;
}

enum { HELP = 3 }; /* behind the three with a value */

int main(int argc, char **argv)
{
    static const struct option options[] = { { "train", required_argument, NULL, 0 },
                                             { "test", required_argument, NULL, 1 },
                                             { "seed", required_argument, NULL, 2 },
                                             { "help", no_argument, NULL, HELP },
                                             { NULL, 0, NULL, 0 } };
    uint64_t value[] = { 15000, 2000, 1 };
    int which;

    while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (which == HELP || which == '?') {
            usage(which == HELP ? stdout : stderr);
            return which == HELP ? 0 : 2;
        }
        if (whole_number(optarg, which == 2 ? UINT64_MAX : INT64_MAX, &value[which]) != 0) {
            fprintf(stderr, "make_digits: '%s' is no value for --%s, which takes a whole number\n",
                    optarg, options[which].name);
            return 2;
        }
    }
    if (optind + 1 != argc) {
        usage(stderr);
        return 2;
    }
    if (tutti_digits_write(argv[optind], value[2], (int64_t)value[0], (int64_t)value[1]) !=
        TUTTI_OK) {
        fprintf(stderr, "make_digits: %s\n", tutti_last_error());
        return 1;
    }
    printf("%s: %" PRIu64 " digits to train on, %" PRIu64 " to test, seed %" PRIu64 "\n",
           argv[optind], value[0], value[1], value[2]);
    return 0;
}
