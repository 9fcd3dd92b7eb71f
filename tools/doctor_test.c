/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_test.c
 * Goal    `tutti doctor host` and `env` tell what there is, say what is wrong in the words of who would fail with it, with
 *         one next step and status 1, and refuse wrong lines.
 * Method  the built command in an environment of the test's own, limits made small by the shell. */
#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char text[65536]; /* of the last command, both streams */

/* A shell's line in which $T is the command; nothing of this test's environment is in its. */
static int run(const char *line)
{
    char command[2048];
    FILE *out;
    size_t n;

    snprintf(command, sizeof command, "env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH=\"$LD_LIBRARY_PATH\" T='%s/tutti' sh -c '%s' 2>&1",
             TUTTI_BIN_DIR, line);
    out = popen(command, "r");
    assert_non_null(out);
    n = fread(text, 1, sizeof text - 1, out);
    text[n] = '\0';
    return WEXITSTATUS(pclose(out));
}

static void says(const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
}

static void says_not(const char *words)
{
    if (strstr(text, words) != NULL)
        fail_msg("'%s' is in: %s", words, text);
}

static void expect(const char *line, int code, const char *words)
{
    const int got = run(line);

    if (got != code)
        fail_msg("%s: code %d, not %d: %s", line, got, code, text);
    says(words);
}

static void a_host_is_told_of(void **state)
{
    static const char *const topics[] = { "kernel", "cores", "clock", "memory", "shared memory", "copies", "deaths",
                                          "open files", "processes", "container", "lo ", "listening", "store", "own name",
                                          "ports", "backlog", "congestion", "GPU", "UCX", "gdb" };
    size_t i;

    (void)state;
    run("$T doctor host"); /* what is wrong with this machine is its own affair */
    for (i = 0; i < sizeof topics / sizeof topics[0]; i++)
        says(topics[i]);
    says("ok    shared memory  can be made without a name");
    says(" warning");
}

static void what_will_fail_is_status_1(void **state)
{
    (void)state;
    expect("ulimit -n 40; $T doctor host", 1, "fails open files     at most 40");
    says("next: ulimit -n 65536");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which take terabytes of it */
    expect("ulimit -v 2000000; $T doctor host", 1, "fails address space");
#endif
    expect("MASTER_ADDR=no.such.host.invalid $T doctor host", 1, "fails listening");
    expect("TUTTI_SOCKET_IFNAME=nope0 $T doctor host", 1, "no interface with an address matches");
}

/* What the link carries is told by the kernel, or by a variable: one that init would refuse is refused in its words. */
static void a_link_is_told_of(void **state)
{
    static const char *const wrong[] = { "abc", "-5", "1000M" };
    char line[256], words[256];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(line, sizeof line, "MASTER_ADDR=127.0.0.1 TUTTI_LINK_MBIT=%s $T doctor host", wrong[i]);
        snprintf(words, sizeof words, "fails link           environment variable TUTTI_LINK_MBIT is '%s', not a number between 0 and",
                 wrong[i]);
        expect(line, 1, words);
        says("next: set it to such a number");
    }
    expect("TUTTI_SOCKET_IFNAME=nope0 TUTTI_LINK_MBIT=abc $T doctor host", 1, "fails link           environment variable");
    run("MASTER_ADDR=127.0.0.1 TUTTI_LINK_MBIT=1000 $T doctor host");
    says("ok    link           TUTTI_LINK_MBIT says 1000; the kernel says: lo");
}

/* Whether this process may have a network of its own, in which nothing is up and nothing has a way out. */
static bool has_networks(void)
{
    return system("unshare -rn true 2> /dev/null") == 0;
}

/* A network whose loopback carries 1 Gb/s. */
static void look_at_a_shaped_link(const char *variables)
{
    char line[512];

    snprintf(line, sizeof line,
             "PATH=$PATH:/usr/sbin:/sbin; export PATH; unshare -rn sh -c \"ip link set lo up && "
             "tc qdisc add dev lo root tbf rate 1gbit burst 1mb latency 50ms && MASTER_ADDR=127.0.0.1 %s $T doctor host\"",
             variables);
    run(line);
}

static void a_link_of_another_rate_is_warned_of(void **state)
{
    (void)state;
    if (!has_networks())
        skip();
    look_at_a_shaped_link("");
    if (strstr(text, "the kernel says: lo 1000 Mb/s") == NULL)
        skip(); /* no tc, or no such queue discipline here */
    look_at_a_shaped_link("TUTTI_LINK_MBIT=100");
    says("warn  link           TUTTI_LINK_MBIT says 100; the kernel says: lo 1000 Mb/s");
    says("next: unset TUTTI_LINK_MBIT");
    look_at_a_shaped_link("TUTTI_LINK_MBIT=100000");
    says("warn  link           TUTTI_LINK_MBIT says 100000; the kernel says: lo 1000 Mb/s");
    look_at_a_shaped_link("TUTTI_LINK_MBIT=900");
    says("ok    link           TUTTI_LINK_MBIT says 900; the kernel says: lo 1000 Mb/s");
    look_at_a_shaped_link("TUTTI_LINK_MBIT=0");
    says("ok    link           TUTTI_LINK_MBIT says 0; the kernel says: lo 1000 Mb/s");
}

static void networks_that_lack_something_are_told_of(void **state)
{
    (void)state;
    if (!has_networks())
        skip();
    expect("unshare -rn $T doctor host", 1, "fails lo             loopback is down: ranks of this host cannot meet");
    says("fails store          nobody can connect to 127.0.0.1: ");
    says_not("now in progress");
    says("note  listening      there is no default route: where ranks would listen depends on the way to MASTER_ADDR");
    says("next: set MASTER_ADDR to the host of rank 0, and look again");
    says("note  link           what it carries is not known, as where ranks would listen is not");
    run("PATH=$PATH:/usr/sbin:/sbin; export PATH; unshare -rn sh -c \"ip link set lo up && ip link add v0 type veth peer name v1 && "
        "ip link set v1 up && $T doctor host\"");
    if (strstr(text, " v0 ") == NULL)
        skip(); /* no veth here */
    says("note  v0             no address, is down");
    says("ok    store          a connection over loopback is made");
}

/* The finding of a topic in the JSON of the last command; its "text" is *text_out. */
static const char *finding(json_t *all, const char *topic, const char **text_out)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(all, "findings"), i, row)
        if (strcmp(json_string_value(json_object_get(row, "topic")), topic) == 0) {
            *text_out = json_string_value(json_object_get(row, "text"));
            return json_string_value(json_object_get(row, "verdict"));
        }
    fail_msg("no finding '%s'", topic);
    return NULL;
}

static void programs_read_json(void **state)
{
    const char *words = NULL;
    json_t *all;

    (void)state;
    run("$T doctor host --json");
    all = json_loads(text, 0, NULL);
    assert_non_null(all);
    assert_string_equal(json_string_value(json_object_get(all, "doctor")), "host");
    assert_string_equal(finding(all, "shared memory", &words), "ok");
    assert_non_null(strstr(words, "memfd"));
    json_decref(all);
    assert_int_equal(run("TUTTI_ALGO=\"$(printf \"x\\377\\033\")\" $T doctor env --json"), 1);
    all = json_loads(text, 0, NULL);
    assert_non_null(all);
    assert_string_equal(finding(all, "TUTTI_ALGO", &words), "fails");
    assert_non_null(strstr(words, "= x??"));
    assert_int_equal(json_integer_value(json_object_get(all, "fails")), 1);
    json_decref(all);
}

static void an_environment_is_told_of(void **state)
{
    (void)state;
    expect("$T doctor env", 0, "none that tutti reads is set");
    says("nothing says which rank this process is");
    expect("TUTTI_TIMEOUT_MS=5000 $T doctor env", 0, "ok    TUTTI_TIMEOUT_MS = 5000");
    expect("TUTTI_TRANSPORT=shm $T doctor env", 1, "TUTTI_TRANSPORT is 'shm', not 'auto' or 'tcp'");
    expect("TUTTI_TIMEOUT_MS=0 $T doctor env", 1, "next: a number of ms, or -1 for none");
    expect("TUTTI_TRANSPROT=tcp $T doctor env", 0, "warn  TUTTI_TRANSPROT is unknown and changes nothing");
    says("next: did you mean TUTTI_TRANSPORT?");
    expect("TUTTI_QUITE_ANOTHER_THING=1 $T doctor env", 0, "next: docs/env.md");
    expect("TUTTI_TEST_X=1 $T doctor env", 0, "0 warnings");
    expect("NCCL_DEBUG=INFO $T doctor env", 0, "note  NCCL_DEBUG     is not read by tutti");
    expect("TUTTI_TRACE_SIGNAL=USR1 $T doctor env", 1, "next: set TUTTI_TRACE_FILE");
    expect("TUTTI_LOG=info TORCH_CPP_LOG_LEVEL=ERROR $T doctor env", 0, "TORCH_CPP_LOG_LEVEL is ERROR: the first is taken");
}

static void a_folder_for_dumps_has_to_be_there(void **state)
{
    (void)state;
    expect("TUTTI_TRACE_FILE=/nowhere/dumps/r $T doctor env", 0, "warn  TUTTI_TRACE_FILE '/nowhere/dumps/' is no directory here");
    says("next: make it on all hosts");
    expect("TORCH_FR_DUMP_TEMP_FILE=/nowhere/r $T doctor env", 0, "warn  TORCH_FR_DUMP_TEMP_FILE '/nowhere/' is no directory here");
    expect("cd / && TUTTI_TRACE_FILE=tmp/r $T doctor env", 0, "ok    TUTTI_TRACE_FILE = tmp/r");
    says_not("nothing can be dumped");
    expect("cd /tmp && TUTTI_TRACE_FILE=r $T doctor env", 0, "ok    TUTTI_TRACE_FILE = r");
    says_not("nothing can be dumped");
}

static void backends_that_are_not_there_are_found(void **state)
{
    (void)state;
    expect("TUTTI_BACKEND=native $T doctor env", 0, "ok    TUTTI_BACKEND  = native");
    expect("TUTTI_BACKEND=natvie $T doctor env", 1, "there is no backend 'natvie'");
    says("one that the program itself registers is not seen from here");
    expect("TUTTI_BACKEND=ucc $T doctor env", 1, "backend 'ucc' is a plug-in, and 'tutti-backend-ucc.so' is not in");
    says("next: install it there, or name its directory in TUTTI_PLUGIN_PATH");
    expect("TUTTI_BACKEND=cpu:native,cuda:ucc $T doctor env", 0, "warn  TUTTI_BACKEND  a call on memory of one of its devices will fail");
    expect("TUTTI_PLUGIN_PATH=here $T doctor env", 1, "TUTTI_PLUGIN_PATH has 'here', which is not absolute");
    expect("TUTTI_PLUGIN_PATH=/:/nowhere $T doctor env", 0, "has '/nowhere', which is no directory here");
    says_not("has '/',");
    expect("d=$(mktemp -d); chmod 0722 $d; TUTTI_PLUGIN_PATH=$d $T doctor env; c=$?; rmdir $d; exit $c", 1,
           "has mode 0722, so others may write to it");
    says("next: chmod go-w");
}

static void contradictions_are_found(void **state)
{
    (void)state;
    expect("RANK=1 $T doctor env", 1, "WORLD_SIZE, which is not set");
    expect("RANK=3 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 $T doctor env", 1, "rank 3 is outside of 0 .. 1");
    expect("RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.7 MASTER_PORT=29500 $T doctor env", 1,
           "192.0.2.7, which is no address of this host, and rank 0 is to serve the store there");
    says("next: start rank 0 on that host, or name this one");
    expect("RANK=1 WORLD_SIZE=2 MASTER_ADDR=192.0.2.7 MASTER_PORT=29500 $T doctor env", 0, "rank 1 of 2, store at 192.0.2.7");
    expect("RANK=0 WORLD_SIZE=2 MASTER_ADDR='[2001:db8::7]' MASTER_PORT=29500 $T doctor env", 1,
           "'[2001:db8::7]' means 2001:db8::7, which is no address of this host");
    expect("RANK=1 WORLD_SIZE=2 MASTER_ADDR=no.such.host.invalid MASTER_PORT=29500 $T doctor env", 1, "no.such.host.invalid");
    expect("RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500 $T doctor env", 1,
           "ranks of other hosts cannot reach that");
    says("nobody gets in beyond loopback without a secret");
    expect("RANK=1 WORLD_SIZE=2 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 $T doctor env", 1,
           "is 2, and LOCAL_WORLD_SIZE is 2");
}

/* A rank of a job of several hosts listens where the others can come to. */
static void addresses_to_listen_at_are_tried(void **state)
{
    static const char rank_1[] = "RANK=1 WORLD_SIZE=2 MASTER_PORT=29500 ";
    char line[256];

    (void)state;
    expect("TUTTI_SOCKET_IFNAME=192.0.2.7 $T doctor host", 1, "no interface with an address matches");
    expect("TUTTI_SOCKET_IFNAME=192.0.2.7 $T doctor env", 1,
           "no interface with an address matches");
    says("next: name interfaces");
    snprintf(line, sizeof line, "%s MASTER_ADDR=192.0.2.9 TUTTI_SOCKET_IFNAME=lo $T doctor env", rank_1);
    expect(line, 1, "this rank would listen at 127.0.0.1, and ranks of other hosts cannot reach that");
    says("next: name the interface that leads to the other hosts, or unset it");
    snprintf(line, sizeof line, "%s MASTER_ADDR=127.0.0.1 TUTTI_SOCKET_IFNAME=lo $T doctor env", rank_1);
    expect(line, 0, "ok    TUTTI_SOCKET_IFNAME = lo");
    snprintf(line, sizeof line, "%s MASTER_ADDR=192.0.2.9 TUTTI_SOCKET_IFNAME=lo TUTTI_ADVERTISE=192.0.2.8 $T doctor env", rank_1);
    expect(line, 0, "ok    TUTTI_SOCKET_IFNAME = lo");
}

static int bind_shared(struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)at, &len), 0);
    return fd;
}

/* It is taken while one listens there. The other socket does not, and is in the way of nobody who sets SO_REUSEADDR: it keeps the port
 * from being given to another process in between. */
static void a_taken_port_is_found(void **state)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
    const int kept = bind_shared(&at), fd = bind_shared(&at);
    char line[256];

    (void)state;
    assert_int_equal(listen(fd, 1), 0);
    snprintf(line, sizeof line, "RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d $T doctor env", ntohs(at.sin_port));
    expect(line, 1, "is taken now");
    close(fd);
    expect(line, 0, "rank 0 of 1");
    says_not("taken");
    close(kept);
}

static void ranks_of_a_launcher_are_fine(void **state)
{
    (void)state;
    expect("$T run --nproc-per-node 2 $T doctor env", 0, "[default1]:ok    who            rank 1 of 2");
    says("which the launcher serves");
    says_not("fails ");
}

static void wrong_lines_are_refused(void **state)
{
    (void)state;
    expect("$T doctor", 2, "usage: tutti doctor WORD");
    expect("$T doctor --help", 0, "usage: tutti doctor WORD");
    expect("$T help doctor", 0, "usage: tutti doctor WORD");
    expect("$T doctor hots", 2, "did you mean 'host'?");
    expect("$T doctor surgery", 2, "unknown word 'surgery'");
    expect("$T doctor host now", 2, "'now' is one word too many");
    expect("$T doctor env --jsn", 2, "unknown option '--jsn', did you mean '--json'?");
    expect("$T doctor env --help", 0, "usage: tutti doctor env");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_told_of),
        cmocka_unit_test(what_will_fail_is_status_1),
        cmocka_unit_test(a_link_is_told_of),
        cmocka_unit_test(a_link_of_another_rate_is_warned_of),
        cmocka_unit_test(networks_that_lack_something_are_told_of),
        cmocka_unit_test(programs_read_json),
        cmocka_unit_test(an_environment_is_told_of),
        cmocka_unit_test(a_folder_for_dumps_has_to_be_there),
        cmocka_unit_test(backends_that_are_not_there_are_found),
        cmocka_unit_test(contradictions_are_found),
        cmocka_unit_test(addresses_to_listen_at_are_tried),
        cmocka_unit_test(a_taken_port_is_found),
        cmocka_unit_test(ranks_of_a_launcher_are_fine),
        cmocka_unit_test(wrong_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
