/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shaped_link_test.c
 * Goal    rank 0 finds out what its link carries: of a shaper at the root of the interface that is used; not of a virtual interface
 *         that says 10 Gb/s; of the slowest, times their number, where several are named; and not at all where TUTTI_LINK_MBIT says
 *         something.
 * Method  Two network namespaces joined by veth pairs, which the ranks shape by themselves, once by a TBF and once by an HTB. What
 *         worlds found stands in rank 0's log; what a process would find is told by tutti_link_look(). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { LOG_BYTES = 64 << 10 };
enum { SHAPED, ENDED }; /* counters of the harness */

static void all_here(tt_ctx *t, int mark)
{
    tt_post(t, mark);
    tt_await(t, mark, (uint32_t)t->size);
}

static void have(const char *command)
{
    if (system(command) != 0) {
        printf("SKIP: this machine refuses: %s\n", command);
        exit(TT_SKIPPED);
    }
}

static void expect_link(const char *address, int mbit, const char *words)
{
    tutti_link link = TUTTI_LINK;

    assert_int_equal(tutti_link_look(address, &link), TUTTI_OK);
    assert_int_equal(link.mbit, mbit);
    assert_string_equal(link.words, words);
}

/* What this process writes to its log while it makes a world and ends it. */
static void make_world(tt_ctx *t, char log[LOG_BYTES])
{
    tutti_init_options options = TUTTI_INIT_OPTIONS;
    char               path[512];
    const int          before = dup(STDERR_FILENO);
    ssize_t            got;
    int                fd;

    snprintf(path, sizeof path, "%s/log.%d", t->dir, t->rank);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(before >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    options.init_method = t->init_method;
    assert_int_equal(tutti_init_process_group(&options), TUTTI_OK);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_OK);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    got = pread(fd, log, LOG_BYTES - 1, 0);
    assert_true(got >= 0);
    log[got] = '\0';
    close(before);
    close(fd);
}

static char log_of_world[LOG_BYTES];

/* words: what rank 0 says; NULL: it does not ask. Other ranks never do. */
static void world_finds(tt_ctx *t, const char *words)
{
    const char *said;

    setenv("TUTTI_LOG", "debug", 1);
    make_world(t, log_of_world);
    said = strstr(log_of_world, "what the link of this host carries: ");
    if ((said != NULL) != (words != NULL && t->rank == 0))
        fail_msg("rank %d has %s asked: %s", t->rank, said != NULL ? "" : "not", log_of_world);
    if (said != NULL && strstr(said, words) == NULL)
        fail_msg("'%s' is not in: %.120s", words, said);
    all_here(t, ENDED);
}

static void a_virtual_link_is_not_known(tt_ctx *t)
{
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 0, "tt0 unknown");
    expect_link("127.0.0.1", 0, "lo unknown");
    expect_link("192.0.2.7", 0, "");
    world_finds(t, "carries: tt0 unknown");
}

static void a_bucket_is_found(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root tbf rate 1gbit burst 80kb limit 1mb");
    all_here(t, SHAPED);
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 1000, "tt0 1000 Mb/s (tbf)");
    world_finds(t, "carries: tt0 1000 Mb/s (tbf)");
    assert_true(t->rank != 0 || strstr(log_of_world, "taken for 1000 Mb/s, of which 81920 B pass at once") != NULL);
}

static void a_wide_bucket_is_found(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root tbf rate 50gbit burst 4mb limit 8mb");
    all_here(t, SHAPED);
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 50000, "tt0 50000 Mb/s (tbf)");
}

static void a_class_is_found(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root handle 1: htb default 20 && tc class add dev tt0 parent 1: classid 1:1 htb rate 5gbit && "
         "tc class add dev tt0 parent 1:1 classid 1:20 htb rate 100mbit ceil 300mbit && "
         "tc class add dev tt0 parent 1:1 classid 1:30 htb rate 1mbit ceil 2mbit");
    all_here(t, SHAPED);
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 300, "tt0 300 Mb/s (htb)");
    world_finds(t, "carries: tt0 300 Mb/s (htb)");
}

static void a_class_that_nobody_goes_by_is_none(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root handle 1: htb && tc class add dev tt0 parent 1: classid 1:1 htb rate 1mbit");
    all_here(t, SHAPED);
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 0, "tt0 unknown");
}

/* Without privileges, too: what the kernel says of its disciplines it says to everybody. */
static void nobody_may_ask_as_well(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root tbf rate 1gbit burst 80kb limit 1mb");
    all_here(t, SHAPED);
    if (setuid(65534) != 0) {
        printf("SKIP: this user cannot become another\n");
        exit(TT_SKIPPED);
    }
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 1000, "tt0 1000 Mb/s (tbf)");
}

static void what_is_said_goes_before(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root tbf rate 1gbit burst 80kb limit 1mb");
    all_here(t, SHAPED);
    setenv("TUTTI_LINK_MBIT", t->rank == 0 ? "2500" : "0", 1);
    world_finds(t, NULL);
}

static void several_are_found(tt_ctx *t)
{
    have("tc qdisc add dev tt0 root tbf rate 1gbit burst 80kb limit 1mb && tc qdisc add dev tt1 root tbf rate 300mbit burst 80kb limit 1mb");
    all_here(t, SHAPED);
    expect_link(t->rank == 0 ? "10.77.0.1" : "10.77.0.2", 600, "tt0 1000 Mb/s (tbf), tt1 300 Mb/s (tbf)");
    world_finds(t, "carries: tt0 1000 Mb/s (tbf), tt1 300 Mb/s (tbf)");
}

static void inside_a_host_nobody_asks(tt_ctx *t)
{
    world_finds(t, NULL);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(a_virtual_link_is_not_known, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(a_bucket_is_found, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(a_wide_bucket_is_found, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(a_class_is_found, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(a_class_that_nobody_goes_by_is_none, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(nobody_may_ask_as_well, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(what_is_said_goes_before, .hosts = 2, .init = TT_INIT_NONE),
        TT_TEST(several_are_found, .hosts = 2, .rails = true, .init = TT_INIT_NONE),
        TT_TEST(inside_a_host_nobody_asks, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
