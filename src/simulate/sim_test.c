/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_test.c
 * Goal    tutti/simulate.h: predictions are those of the plans and of the model, choices those of the library, and what is
 *         wrong with options, calls and files is said.
 * Method  small clusters, and one of ten thousand ranks; files in a scratch folder. */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/tutti.h>
#include "simulate/figures.h"

static tutti_sim *cluster(int hosts, int per_host, double gbit)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim = NULL;

    o.hosts = hosts;
    o.ranks_per_host = per_host;
    o.gbit_per_s = gbit;
    if (tutti_sim_open(&o, &sim) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    return sim;
}

static tutti_sim_result run(tutti_sim *sim, const char *op, const char *algorithm, int64_t bytes)
{
    const tutti_sim_call call = { .op = op, .algorithm = algorithm, .bytes = bytes, .dtype = TUTTI_F32 };
    tutti_sim_result     result = { .us = -1 };

    if (tutti_sim_run(sim, &call, &result) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    return result;
}

static void says(tutti_status wanted, tutti_status got, const char *words)
{
    assert_int_equal(got, wanted);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void counts_what_is_sent(void **state)
{
    tutti_sim       *sim = cluster(4, 2, 10);
    tutti_sim_result r = run(sim, "all_reduce", "direct", 8 << 20);

    (void)state;
    assert_string_equal(r.algorithm, "direct");
    assert_int_equal(r.way, TUTTI_SIM_ALL);
    assert_int_equal(r.messages % (2 * 8 * 7), 0); /* of each piece */
    assert_int_equal(r.far * 7, r.messages * 6);
    assert_int_equal(r.bytes, INT64_C(2) * 7 * (8 << 20));
    assert_int_equal(r.bytes_far, INT64_C(2) * 6 * (8 << 20));
    assert_int_equal(r.port_bytes, r.bytes_far / 4);
    assert_true(r.us >= (double)r.port_bytes * 8 / 10e3); /* the port at line rate */
    tutti_sim_close(sim);
}

static void one_host_is_reckoned(void **state)
{
    tutti_sim       *sim = cluster(1, 4, 0);
    tutti_sim_result r = run(sim, "all_reduce", "sliced", 1 << 20);

    (void)state;
    assert_int_equal(r.way, TUTTI_SIM_AMOUNTS);
    assert_int_equal(r.messages, 0);
    assert_true(r.us > 0 && r.model_us > 0); /* the choice counts in other prices: neither is a bound of the other */
    r = run(sim, "barrier", NULL, 0);
    assert_int_equal(r.way, TUTTI_SIM_AMOUNTS);
    assert_true(r.candidate);
    tutti_sim_close(sim);
}

static void one_rank_takes_no_time(void **state)
{
    tutti_sim *sim = cluster(1, 1, 0);

    (void)state;
    assert_true(run(sim, "all_reduce", "direct", 4096).us >= 0);
    assert_int_equal(run(sim, "barrier", "dissemination", 0).messages, 0);
    tutti_sim_close(sim);
}

/* A rate ten times as high must show where the wire is what takes the time. */
static void links_tell(void **state)
{
    tutti_sim *slow = cluster(4, 1, 1), *quick = cluster(4, 1, 10);
    const double ratio = run(slow, "all_reduce", "direct", 64 << 20).us / run(quick, "all_reduce", "direct", 64 << 20).us;

    (void)state;
    assert_true(ratio > 5 && ratio < 11);
    assert_true(run(slow, "all_reduce", "direct", 4).us < 1.01 * run(quick, "all_reduce", "direct", 4).us);
    tutti_sim_close(slow);
    tutti_sim_close(quick);
}

static const char *chosen(const tutti_sim *sim, const char *op, int64_t bytes)
{
    const tutti_sim_call call = { .op = op, .bytes = bytes, .dtype = TUTTI_F32 };
    const char          *name = NULL;

    assert_int_equal(tutti_sim_choose(sim, &call, &name), TUTTI_OK);
    return name;
}

/* A group is told what a port carries, and goes by that where it is little: shorter messages, fewer bytes in more of them. */
static void slow_ports_are_known(void **state)
{
    tutti_sim *slow = cluster(8, 1, 1), *quick = cluster(8, 1, 10), *quicker = cluster(8, 1, 100);

    (void)state;
    assert_true(run(slow, "reduce", "direct", 16 << 20).messages > run(quick, "reduce", "direct", 16 << 20).messages);
    assert_int_equal(run(quick, "reduce", "direct", 16 << 20).messages, run(quicker, "reduce", "direct", 16 << 20).messages);
    assert_string_equal(chosen(slow, "all_reduce", 4 << 10), "direct");
    assert_string_equal(chosen(quick, "all_reduce", 4 << 10), "one_shot");
    assert_string_equal(chosen(quicker, "all_reduce", 4 << 10), "one_shot");
    tutti_sim_close(slow);
    tutti_sim_close(quick);
    tutti_sim_close(quicker);
}

static void ten_thousand_ranks_choose(void **state)
{
    tutti_sim           *sim = cluster(10000, 1, 100);
    const tutti_sim_call call = { .op = "barrier", .dtype = TUTTI_F32 };
    tutti_sim_result     r;

    (void)state;
    assert_int_equal(tutti_sim_run(sim, &call, &r), TUTTI_OK);
    assert_true(r.us > 0 && r.messages > 10000);
    tutti_sim_close(sim);
}

/* Which go in two levels: each byte once over the link between two hosts, where ranks that all talk to all send it four times,
 * from each, or for each. */
static void hosts_of_several_ranks_choose(void **state)
{
    tutti_sim           *sim = cluster(2, 4, 10), *alone = cluster(4, 1, 10);
    const tutti_sim_call call = { .op = "all_reduce", .bytes = 8 << 20, .dtype = TUTTI_F32 };
    tutti_sim_options    o = TUTTI_SIM_OPTIONS;
    const char          *name = NULL;
    tutti_sim_result     r;

    (void)state;
    assert_int_equal(tutti_sim_choose(sim, &call, &name), TUTTI_OK);
    assert_string_equal(name, "two_level");
    assert_int_equal(tutti_sim_run(sim, &call, &r), TUTTI_OK);
    assert_string_equal(r.algorithm, "two_level");
    assert_true(r.candidate && r.model_us > 0);
    assert_int_equal(r.port_bytes, 8 << 20);
    assert_int_equal(r.bytes, 2 * (8 << 20));
    assert_true(run(sim, "all_reduce", "direct", 8 << 20).port_bytes == 4 * (8 << 20));
    assert_true(r.us > 8e-3 * (8 << 20) / 10 && r.us < run(sim, "all_reduce", "direct", 8 << 20).us / 2);
    says(TUTTI_E_UNSUPPORTED, tutti_sim_run(alone, &(tutti_sim_call){ .op = "all_reduce", .algorithm = "two_level",
                                                                      .bytes = 64, .dtype = TUTTI_F32 }, &r),
         "'two_level' needs several hosts");
    tutti_sim_close(alone);
    assert_false(run(sim, "all_reduce", "direct", 8 << 20).candidate); /* other bits */
    assert_true(run(sim, "broadcast", "sliced", 8 << 20).candidate);
    tutti_sim_close(sim);
    sim = cluster(1250, 8, 100);
    assert_int_equal(tutti_sim_choose(sim, &(tutti_sim_call){ .op = "barrier", .dtype = TUTTI_F32 }, &name), TUTTI_OK);
    assert_string_equal(name, "leaders"); /* 8 ranks meet on a host, not 10,000 */
    assert_true(run(sim, "barrier", "leaders", 0).messages == 11 * 1250); /* a token in each step, from each host */
    tutti_sim_close(sim);
    o.hosts = 2;
    o.ranks_per_host = 4;
    o.messages_only = true;
    assert_int_equal(tutti_sim_open(&o, &sim), TUTTI_OK);
    assert_int_equal(tutti_sim_choose(sim, &call, &name), TUTTI_OK);
    assert_true(run(sim, "all_reduce", name, 8 << 20).candidate);
    tutti_sim_close(sim);
}

/* Of each kind as many bytes over a port as one host has for the others; by one rank or by all. */
static void levels_send_what_hosts_have(void **state)
{
    static const struct { const char *op; int64_t times; } kinds[] = {
        { "all_reduce", 1 }, { "reduce", 1 },  { "broadcast", 1 },      { "all_gather", 4 },
        { "gather", 4 },     { "scatter", 4 }, { "reduce_scatter", 4 },
    };
    static const char *const names[] = { "two_level", "leaders" };
    tutti_sim               *sim = cluster(2, 4, 10);
    int                      i, k;

    (void)state;
    for (k = 0; k < 2; k++) {
        for (i = 0; i < (int)(sizeof kinds / sizeof kinds[0]); i++)
            assert_int_equal(run(sim, kinds[i].op, names[k], 1 << 20).port_bytes, kinds[i].times << 20);
        /* Sixteen pairs, of 1 KiB and of 1 MiB: the longer ones are announced by 16 bytes each. */
        assert_int_equal(run(sim, "all_to_all", names[k], 1024).port_bytes, 16 * (1024 + 16));
        assert_int_equal(run(sim, "all_to_all", names[k], 1 << 20).port_bytes, 16 * ((1 << 20) + 16));
    }
    assert_true(run(sim, "all_to_all", "two_level", 64).far < run(sim, "all_to_all", "direct", 64).far);
    tutti_sim_close(sim);
}

/* They make no difference; those of all hosts together are more than an int counts. */
static void more_cores_than_ranks_are_idle(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *usual = cluster(65536, 1, 0), *sim = NULL;

    (void)state;
    o.hosts = 65536;
    o.cores = 65536;
    assert_int_equal(tutti_sim_open(&o, &sim), TUTTI_OK);
    assert_true(run(sim, "broadcast", "binomial", 4).us == run(usual, "broadcast", "binomial", 4).us);
    tutti_sim_close(sim);
    tutti_sim_close(usual);
}

/* Also where a core is said to be busy with it for longer. */
static void a_message_takes_what_it_is_told_to(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim = NULL;

    (void)state;
    o.hosts = 2;
    o.message_us = 1;
    assert_int_equal(tutti_sim_open(&o, &sim), TUTTI_OK);
    assert_true(run(sim, "barrier", "dissemination", 0).us == 1);
    tutti_sim_close(sim);
}

static const char *choice_of(const tutti_sim_options *o, const char *op)
{
    const tutti_sim_call call = { .op = op, .bytes = 4, .dtype = TUTTI_F32 };
    const char          *name = NULL;
    tutti_sim           *sim = NULL;

    assert_int_equal(tutti_sim_open(o, &sim), TUTTI_OK);
    assert_int_equal(tutti_sim_choose(sim, &call, &name), TUTTI_OK);
    tutti_sim_close(sim);
    return name;
}

/* Groups of at most 16 ranks, all of whose hosts are one machine, go by what messages take there. */
static void hosts_of_one_machine_have_a_choice_of_their_own(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;

    (void)state;
    o.hosts = 4;
    o.cores = 2;
    assert_string_equal(choice_of(&o, "all_gather"), "direct");
    o.one_machine = true;
    assert_string_equal(choice_of(&o, "all_gather"), "bruck");
    o.hosts = 16;
    assert_string_equal(choice_of(&o, "all_gather"), "bruck");
    o.hosts = 17;
    assert_string_equal(choice_of(&o, "all_gather"), "direct");
}

/* A shaper counts less of a frame than a line takes. */
static void shapers_let_more_through_than_lines(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *line = cluster(2, 1, 1), *shaper = NULL;
    double            of_line, of_shaper;

    (void)state;
    o.hosts = 2;
    o.gbit_per_s = 1;
    o.one_machine = true;
    assert_int_equal(tutti_sim_open(&o, &shaper), TUTTI_OK);
    of_line = run(line, "broadcast", "flat", 64 << 20).us;
    of_shaper = run(shaper, "broadcast", "flat", 64 << 20).us;
    assert_true(of_line / of_shaper > 1.015 && of_line / of_shaper < 1.017); /* 1538 bytes, or 1514, for 1448 */
    tutti_sim_close(line);
    tutti_sim_close(shaper);
}

/* After a rest a call fits into a bucket, one behind others does not. */
static void calls_one_after_the_other_take_longer(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *plain = cluster(2, 1, 1), *rested = NULL, *few = NULL, *busy = NULL;
    double            first, later;

    (void)state;
    o.hosts = 2;
    o.gbit_per_s = 1;
    o.burst_bytes = 80 << 10;
    assert_int_equal(tutti_sim_open(&o, &rested), TUTTI_OK);
    o.calls = 5;
    assert_int_equal(tutti_sim_open(&o, &few), TUTTI_OK);
    o.calls = 50;
    assert_int_equal(tutti_sim_open(&o, &busy), TUTTI_OK);
    first = run(rested, "all_reduce", "direct", 32 << 10).us;
    later = run(busy, "all_reduce", "direct", 32 << 10).us;
    assert_true(first < 100); /* two messages of 30 us, and copies */
    assert_true(run(few, "all_reduce", "direct", 32 << 10).us > 2 * first); /* three of five fit, of the later ones one */
    assert_true(later > 8 * (32 << 10) / 1000.0); /* the rate, and heads of frames */
    assert_true(later < run(plain, "all_reduce", "direct", 32 << 10).us);
    assert_true(run(busy, "all_reduce", "direct", 4).us == run(rested, "all_reduce", "direct", 4).us);
    tutti_sim_close(plain);
    tutti_sim_close(rested);
    tutti_sim_close(few);
    tutti_sim_close(busy);
}

static void wrong_calls_are_refused(void **state)
{
    tutti_sim       *sim = cluster(2, 1, 0);
    tutti_sim_call   call = { .op = "all_reduce", .algorithm = "direct", .bytes = 3, .dtype = TUTTI_F32 };
    tutti_sim_result r;

    (void)state;
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "3 bytes are no whole number");
    call.bytes = -4;
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "-4 bytes");
    call.bytes = INT64_MAX - 3;
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "of at most");
    call.bytes = 4;
    call.algorithm = "magic";
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "all_reduce has no algorithm 'magic'");
    call.algorithm = "sliced";
    says(TUTTI_E_UNSUPPORTED, tutti_sim_run(sim, &call, &r), "needs all ranks on one host");
    call.algorithm = "fused";
    says(TUTTI_E_UNSUPPORTED, tutti_sim_run(sim, &call, &r), "registered memory");
    call.op = "gather_v";
    says(TUTTI_E_UNSUPPORTED, tutti_sim_run(sim, &call, &r), "blocks of different sizes");
    call.op = "all_reduc";
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "no operation is called 'all_reduc'");
    call.op = NULL;
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "no operation is called ''");
    call = (tutti_sim_call){ .op = "barrier", .dtype = (tutti_dtype)1000 };
    says(TUTTI_E_ARG, tutti_sim_run(sim, &call, &r), "no dtype");
    tutti_sim_close(sim);
    tutti_sim_close(NULL);
}

static void wrong_clusters_are_refused(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim = NULL;

    (void)state;
    o.hosts = -1;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "hosts of a simulation is -1");
    o.hosts = 1 << 20;
    o.ranks_per_host = 2;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "the number of ranks");
    o.hosts = 6;
    o.rack_hosts = 4;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "6 hosts are no whole number of racks of 4");
    o.rack_hosts = 3;
    o.taper = 0.5;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "taper of a simulation is 0.5");
    o.taper = 0.0 / 0.0;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "taper");
    o.taper = 2;
    o.gbit_per_s = -1;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "gbit_per_s");
    o.gbit_per_s = 0;
    o.burst_bytes = -1;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "burst_bytes of a simulation is -1");
    o.burst_bytes = 0;
    o.calls = 1000001;
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "calls of a simulation is 1000001");
    o = (tutti_sim_options){ .size = 0 };
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "TUTTI_SIM_OPTIONS");
    assert_null(sim);
}

/* ---- files of figures -------------------------------------------------------------------------- */

static char scratch[] = "/tmp/tutti-sim-XXXXXX";

static int make_scratch(void **state)
{
    const int fd = mkstemp(scratch);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int drop_scratch(void **state)
{
    (void)state;
    return unlink(scratch);
}

static tutti_status open_with(const char *text)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim = NULL;
    FILE             *file = fopen(scratch, "w");
    tutti_status      st;

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    o.hosts = 2;
    o.figures = scratch;
    st = tutti_sim_open(&o, &sim);
    tutti_sim_close(sim);
    return st;
}

static void wrong_files_are_refused(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim = NULL;

    (void)state;
    says(TUTTI_E_ARG, open_with(""), "line 1");
    says(TUTTI_E_ARG, open_with("[1]"), "it is not {");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 2}"), "another version");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"guest\": {}}"), "there is no 'guest'");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"host\": 7}"), "\"host\" is not { ... }");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"host\": {\"lime_ns\": 1}}"), "\"host\" has no 'lime_ns'");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"host\": {\"line_ns\": -1}}"), "no number from 0");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"host\": {\"line_ns\": \"1\"}}"), "no number from 0");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"local\": {\"gbit_per_s\": 1}}"), "has no 'gbit_per_s'");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"far\": {\"gbit_per_s\": 0}}"), "no number from 1e-06");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"far\": {\"message_us\": 4, \"uneven_us\": 3}}"),
         "\"uneven_us\" of \"far\" is more than a message takes at one end\n  next: give it at most 2, ");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"far\": {\"message_us\": 1, \"post_us\": 100}}"),
         "\"post_us\" of \"far\" is 100, more than half of \"message_us\", which is 1");
    says(TUTTI_E_ARG, open_with("{\"tutti_figures\": 1, \"far\": {\"post_us\": 16}}"), "next: give it at most 15");
    assert_int_equal(open_with("{\"tutti_figures\": 1, \"far\": {\"message_us\": 11.487, \"post_us\": 5.744}}"), TUTTI_OK);
    assert_int_equal(open_with("{\"tutti_figures\": 1, \"far\": {\"message_us\": 8, \"post_us\": 4, \"uneven_us\": 4}}"), TUTTI_OK);
    assert_int_equal(open_with("{\"tutti_figures\": 1}"), TUTTI_OK);
    assert_int_equal(open_with("{\"far\": {\"message_us\": 5}, \"tutti_figures\": 1}"), TUTTI_OK);
    o.figures = "/nowhere/figures.json";
    says(TUTTI_E_IO, tutti_sim_open(&o, &sim), "cannot open the file of figures");
    o.figures = "/dev/zero";
    says(TUTTI_E_ARG, tutti_sim_open(&o, &sim), "no file of at most");
}

/* What stands for a default is told, on namespaces of one machine as on hosts. */
static void a_cluster_tells_what_it_is(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS, told = TUTTI_SIM_OPTIONS, wrong = { .size = 1 };
    tutti_sim        *sim = NULL;

    (void)state;
    o.hosts = 4;
    o.ranks_per_host = 2;
    assert_int_equal(tutti_sim_open(&o, &sim), TUTTI_OK);
    assert_int_equal(tutti_sim_get_options(sim, &told), TUTTI_OK);
    assert_int_equal(told.hosts, 4);
    assert_int_equal(told.cores, 2);
    assert_int_equal(told.rack_hosts, 0);
    assert_int_equal(told.calls, 1);
    assert_true(fabs(told.gbit_per_s - 10) < 1e-9 && fabs(told.message_us - 30) < 1e-9);
    assert_true(told.taper == 1);
    says(TUTTI_E_ARG, tutti_sim_get_options(sim, &wrong), "was not initialised");
    says(TUTTI_E_ARG, tutti_sim_get_options(sim, NULL), "options_out is NULL");
    tutti_sim_close(sim);
    o.one_machine = true;
    o.gbit_per_s = 25;
    o.message_us = 7;
    assert_int_equal(tutti_sim_open(&o, &sim), TUTTI_OK);
    assert_int_equal(tutti_sim_get_options(sim, &told), TUTTI_OK);
    assert_true(fabs(told.gbit_per_s - 25) < 1e-9 && fabs(told.message_us - 7) < 1e-9);
    assert_true(told.one_machine && told.cores == 8);
    tutti_sim_close(sim);
}

/* Bytes of calls that outgrow the caches take longer, others do not. */
static void bulk_takes_longer(void **state)
{
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *usual = cluster(2, 1, 100), *slow = NULL;

    (void)state;
    assert_int_equal(open_with("{\"tutti_figures\": 1, \"far\": {\"bulk_ns_per_byte\": 5}}"), TUTTI_OK);
    o.hosts = 2;
    o.gbit_per_s = 100;
    o.figures = scratch;
    assert_int_equal(tutti_sim_open(&o, &slow), TUTTI_OK);
    assert_true(run(slow, "broadcast", "flat", 1 << 20).us == run(usual, "broadcast", "flat", 1 << 20).us);
    assert_true(run(slow, "broadcast", "flat", 4 << 20).us > 5e-3 * (4 << 20));
    assert_true(run(usual, "broadcast", "flat", 4 << 20).us < 5e-3 * (4 << 20));
    tutti_sim_close(usual);
    tutti_sim_close(slow);
}

/* Times have an end, and say so. */
static void what_takes_too_long_is_refused(void **state)
{
    const tutti_sim_call call = { .op = "all_reduce", .algorithm = "direct", .bytes = INT64_C(1) << 36, .dtype = TUTTI_F32 };
    tutti_sim_options    o = TUTTI_SIM_OPTIONS;
    tutti_sim           *sim = NULL;
    tutti_sim_result     r;

    (void)state;
    assert_int_equal(open_with("{\"tutti_figures\": 1, \"far\": {\"gbit_per_s\": 1e-6, \"send_ns_per_byte\": 1e5}}"), TUTTI_OK);
    o.hosts = 64;
    o.rack_hosts = 2;
    o.taper = 1e6;
    o.figures = scratch;
    assert_int_equal(tutti_sim_open(&o, &sim), TUTTI_OK);
    says(TUTTI_E_UNSUPPORTED, tutti_sim_run(sim, &call, &r), "more than 26 days, which is too long\n  next: look in the file of figures");
    tutti_sim_close(sim);
}

/* ---- in memory that ranks share ---------------------------------------------------------------- */

typedef struct figure {
    const char *name;
    double      value;
} figure;

/* A host on which nothing takes any time but what is said. */
static tutti_sim *host_with(int ranks, int cores, const figure *said, int n)
{
    static const figure zeros[] = {
        { "line_ns", 0 }, { "give_ns", 0 }, { "copy_ns_per_byte", 0 }, { "copy_far_ns_per_byte", 0 }, { "fetch_ns_per_byte", 0 },
        { "combine_ns_per_byte", 0 }, { "copy_all_ns_per_byte", 0 }, { "combine_all_ns_per_byte", 0 },
        { "read_main_ns_per_byte", 0 }, { "write_main_ns_per_byte", 0 }, { "store_ns_per_byte", 0 }, { "store_out_ns_per_byte", 0 },
        { "load_ns_per_byte", 0 }, { "pass_ns", 0 }, { "pass_many_ns", 0 }, { "pull_ns_per_byte", 0 }, { "pull_call_ns", 0 },
        { "near_bytes", 1 << 20 }, { "last_bytes", 1 << 30 },
    };
    tutti_sim_options o = TUTTI_SIM_OPTIONS;
    tutti_sim        *sim = NULL;
    FILE             *file = fopen(scratch, "w");
    size_t            z;
    int               i;

    assert_non_null(file);
    fputs("{\"tutti_figures\": 1, \"local\": {\"message_us\": 0, \"post_us\": 0}, \"host\": {", file);
    for (z = 0; z < sizeof zeros / sizeof zeros[0]; z++) {
        double value = zeros[z].value;

        for (i = 0; i < n; i++)
            if (strcmp(said[i].name, zeros[z].name) == 0)
                value = said[i].value;
        fprintf(file, "%s\"%s\": %.10g", z > 0 ? ", " : "", zeros[z].name, value);
    }
    fputs("}}", file);
    fclose(file);
    o.hosts = 1;
    o.ranks_per_host = ranks;
    o.cores = cores;
    o.figures = scratch;
    if (tutti_sim_open(&o, &sim) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    return sim;
}

static void takes(tutti_sim *sim, const char *op, const char *algorithm, int64_t bytes, double us)
{
    const double predicted = run(sim, op, algorithm, bytes).us;

    if (fabs(predicted - us) > 1e-9 * (us + 1))
        fail_msg("%s of %lld bytes by %s: %.6f us, not %.6f", op, (long long)bytes, algorithm, predicted, us);
}

/* As long as the other core's cache has what is stored, and less when it has fallen out of it. */
static void stores_are_dearer_where_another_core_reads(void **state)
{
    const figure said[] = { { "store_ns_per_byte", 1 }, { "store_out_ns_per_byte", 0.25 } };
    tutti_sim   *sim = host_with(2, 2, said, 2);

    (void)state;
    takes(sim, "broadcast", "lines", 8192, 8.192);
    takes(sim, "broadcast", "staged", 1 << 20, 1048.576); /* eight pieces do not push each other out */
    takes(sim, "all_reduce", "lines", 8192, 8.192);
    takes(sim, "all_reduce", "sliced", 4 << 20, 1048.576); /* a half is staged, and the sum of the other one shown */
    takes(sim, "reduce", "sliced", 4 << 20, 524.288);      /* but not to the root, which copies meanwhile */
    takes(sim, "all_gather", "lines", 8192, 8.192);
    tutti_sim_close(sim);
}

/* With more ranks than cores each rank of a core does so. */
static void what_ranks_of_a_core_do_adds_up(void **state)
{
    const figure said[] = { { "store_ns_per_byte", 1 }, { "store_out_ns_per_byte", 1 } };
    tutti_sim   *sim = host_with(4, 2, said, 2);

    (void)state;
    takes(sim, "all_reduce", "lines", 8192, 2 * 8.192);
    takes(sim, "broadcast", "lines", 8192, 8.192); /* there is one root */
    tutti_sim_close(sim);
}

/* A byte that is in no cache comes from memory: of twice what the last one holds that is a half of them. */
static void what_caches_do_not_hold_comes_from_memory(void **state)
{
    const figure said[] = { { "read_main_ns_per_byte", 1 }, { "last_bytes", 4 << 20 } };
    tutti_sim   *sim = host_with(2, 2, said, 2);

    (void)state;
    takes(sim, "all_reduce", "sliced", 4 << 20, 0);
    takes(sim, "all_reduce", "sliced", 8 << 20, 0.5 * 8388.608);
    tutti_sim_close(sim);
}

/* Results that go past the caches do so while there is room. */
static void results_past_the_caches_cost_memory(void **state)
{
    const figure said[] = { { "write_main_ns_per_byte", 1 } };
    tutti_sim   *sim = host_with(2, 2, said, 1);

    (void)state;
    takes(sim, "reduce_scatter", "staged", 256 << 10, 0);
    takes(sim, "reduce_scatter", "staged", 512 << 10, 524.288);
    takes(sim, "all_gather", "staged", 512 << 10, 524.288); /* the own part; the other's is copied as it comes */
    takes(sim, "all_reduce", "sliced", 4 << 20, 0);         /* in place */
    tutti_sim_close(sim);
}

/* Once around, whatever is waited for; a short block comes with its size. */
static void ranks_of_a_core_take_turns(void **state)
{
    const figure said[] = { { "pass_ns", 1000 } };
    tutti_sim   *four = host_with(4, 2, said, 1), *eight = host_with(8, 2, said, 1), *own = host_with(2, 2, said, 1);

    (void)state;
    takes(four, "barrier", "lines", 0, 2);
    takes(eight, "barrier", "lines", 0, 4);
    takes(own, "barrier", "lines", 0, 0);
    takes(four, "all_to_all", "lines", 1024, 2);
    takes(four, "all_reduce", "sliced", 512 << 10, 4); /* slots have room for all of it */
    takes(four, "broadcast", "staged", 512 << 10, 2);
    tutti_sim_close(four);
    tutti_sim_close(eight);
    tutti_sim_close(own);
}

/* With four of a core it may take longer from each to the next; three lie between. */
static void many_ranks_of_a_core_take_longer_turns(void **state)
{
    const figure said[] = { { "pass_ns", 1000 }, { "pass_many_ns", 1200 } };
    tutti_sim   *four = host_with(4, 2, said, 2), *six = host_with(6, 2, said, 2), *eight = host_with(8, 2, said, 2);
    tutti_sim   *sixteen = host_with(16, 2, said, 2);

    (void)state;
    takes(four, "barrier", "lines", 0, 2);
    takes(six, "barrier", "lines", 0, 3.3);
    takes(eight, "barrier", "lines", 0, 4.8);
    takes(sixteen, "barrier", "lines", 0, 9.6);
    tutti_sim_close(four);
    tutti_sim_close(six);
    tutti_sim_close(eight);
    tutti_sim_close(sixteen);
}

/* Above what is read by its receiver, as the library does it (tti_staged_wants_pull). */
static void long_blocks_are_pulled(void **state)
{
    const figure said[] = { { "pull_ns_per_byte", 1 }, { "store_ns_per_byte", 3 } };
    tutti_sim   *sim = host_with(2, 2, said, 2);

    (void)state;
    takes(sim, "all_to_all", "lines", 16 << 10, 3 * 16.384);
    takes(sim, "all_to_all", "lines", 32 << 10, 32.768);
    tutti_sim_close(sim);
}

static int cores_here(void)
{
    cpu_set_t all;

    return sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
}

/* What two processes of a core, and two cores, take of each other. Where they do not come to the end in time the usual figures stay. */
static bool is_of_two(const tti_figures *f)
{
    const tti_figures *usual = &tti_figures_default;

    return f->pass != usual->pass && (cores_here() < 2 || (f->store != usual->store && f->store_out != usual->store_out &&
                                                           f->load != usual->load));
}

/* More runs than cores: then time slices of others are in each turn of the two. */
static bool is_busy(void)
{
    double load;

    return getloadavg(&load, 1) == 1 && load > cores_here();
}

/* Each figure is somebody's measurement, not what stands for one. */
static void what_is_fitted_was_measured(void **state)
{
    enum { TRIES = 10 };
    tti_figures f = tti_figures_default;
    int         i;

    (void)state;
    for (i = 0; i < TRIES && !is_of_two(&f); i++) {
        f = tti_figures_default;
        assert_int_equal(tutti_sim_fit(scratch, NULL, NULL, 0), TUTTI_OK);
        assert_int_equal(tti_figures_read(scratch, &f), TUTTI_OK);
    }
    if (!is_of_two(&f)) {
        assert_true(is_busy());
        print_message("others had the cores: what two of them take was not measured\n");
    }
    assert_true(f.copy_all > 0 && f.combine_all > 0 && f.read_main > 0 && f.write_main > 0);
    assert_true(f.copy_all != tti_figures_default.copy_all && f.read_main != tti_figures_default.read_main &&
                f.write_main != tti_figures_default.write_main);
    assert_true(f.pass_many > 0 || is_busy());
    assert_true(f.pass > 0 && f.store > 0 && f.store_out > 0 && f.load > 0);
    assert_true(f.machine.near_bytes > 0 && f.machine.last_bytes > 0);
}

static void what_is_fitted_can_be_read(void **state)
{
    const tutti_sim_messages far = { .message_us = 12, .post_us = 2, .send_ns_per_byte = 0.25, .recv_ns_per_byte = 0.5 };
    tutti_sim_options        o = TUTTI_SIM_OPTIONS;
    tutti_sim               *sim = NULL;

    (void)state;
    if (tutti_sim_fit(scratch, NULL, &far, 25) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    o.hosts = 2;
    o.figures = scratch;
    if (tutti_sim_open(&o, &sim) != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
    assert_true(run(sim, "barrier", "dissemination", 0).us == 12);
    tutti_sim_close(sim);
    says(TUTTI_E_IO, tutti_sim_fit("/nowhere/figures.json", NULL, NULL, 0), "cannot write");
    says(TUTTI_E_ARG, tutti_sim_fit(scratch, NULL, NULL, -1), "negative");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_is_sent),
        cmocka_unit_test(one_host_is_reckoned),
        cmocka_unit_test(one_rank_takes_no_time),
        cmocka_unit_test(links_tell),
        cmocka_unit_test(slow_ports_are_known),
        cmocka_unit_test(ten_thousand_ranks_choose),
        cmocka_unit_test(hosts_of_several_ranks_choose),
        cmocka_unit_test(levels_send_what_hosts_have),
        cmocka_unit_test(more_cores_than_ranks_are_idle),
        cmocka_unit_test(a_message_takes_what_it_is_told_to),
        cmocka_unit_test(hosts_of_one_machine_have_a_choice_of_their_own),
        cmocka_unit_test(shapers_let_more_through_than_lines),
        cmocka_unit_test(calls_one_after_the_other_take_longer),
        cmocka_unit_test(a_cluster_tells_what_it_is),
        cmocka_unit_test(bulk_takes_longer),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(wrong_clusters_are_refused),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(what_takes_too_long_is_refused),
        cmocka_unit_test(stores_are_dearer_where_another_core_reads),
        cmocka_unit_test(what_ranks_of_a_core_do_adds_up),
        cmocka_unit_test(what_caches_do_not_hold_comes_from_memory),
        cmocka_unit_test(results_past_the_caches_cost_memory),
        cmocka_unit_test(ranks_of_a_core_take_turns),
        cmocka_unit_test(many_ranks_of_a_core_take_longer_turns),
        cmocka_unit_test(long_blocks_are_pulled),
        cmocka_unit_test(what_is_fitted_was_measured),
        cmocka_unit_test(what_is_fitted_can_be_read),
    };

    return cmocka_run_group_tests(tests, make_scratch, drop_scratch);
}
