/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scheduler_test.c
 * Goal    what srun and the mpiruns leave in the environment becomes rank, size, host and port; half of a
 *         job, contradictions and what a launcher does not tell are said by name, and with a way out.
 * Method  the variables that real launchers set are set by hand, socket PMI_FD included; the launchers
 *         themselves are called by tests/layouts. */
#include "rendezvous/who.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>

/* Nobody's variables but what a case sets. */
static int no_variables(void **state)
{
    (void)state;
    clearenv();
    return 0;
}

static void set_all(const char *text)
{
    char *copy = strdup(text), *rest = NULL, *at;

    clearenv();
    for (at = strtok_r(copy, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(at, '=');

        assert_non_null(equals);
        *equals = '\0';
        setenv(at, equals + 1, 1);
    }
    free(copy);
}

static tti_who find(const char *variables)
{
    const tti_rendezvous_config config = { .port = tti_port_system() };
    tti_who                     who;

    set_all(variables);
    if (tti_who_find(&config, &who) != TUTTI_OK)
        fail_msg("%s: %s", variables, tutti_last_error());
    return who;
}

static void refuses(const char *variables, const char *words)
{
    const tti_rendezvous_config config = { .port = tti_port_system() };
    tti_who                     who;

    set_all(variables);
    assert_int_equal(tti_who_find(&config, &who), TUTTI_E_ARG);
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' is not in: %s", words, tutti_last_error());
}

static void expect(tti_who who, int rank, int size, const char *host, int tcp_port, bool beacon)
{
    assert_int_equal(who.rank, rank);
    assert_int_equal(who.world_size, size);
    assert_string_equal(who.url.host, host);
    if (tcp_port >= 0)
        assert_int_equal(who.url.port, tcp_port);
    assert_int_equal(who.beacon, beacon);
}

#define OMPI(rank, size, local_size)                                                                   \
    "OMPI_COMM_WORLD_RANK=" #rank " OMPI_COMM_WORLD_SIZE=" #size " OMPI_COMM_WORLD_LOCAL_RANK=" #rank  \
    " OMPI_COMM_WORLD_LOCAL_SIZE=" #local_size " PMIX_NAMESPACE=15.1 PMIX_RANK=" #rank " "

static void open_mpi(void **state)
{
    tti_who who, other;

    (void)state;
    expect(find(OMPI(1, 4, 4)), 1, 4, "127.0.0.1", 0, true);
    expect(find(OMPI(0, 1, 1)), 0, 1, "127.0.0.1", 0, false);
    refuses(OMPI(1, 4, 2), "mpirun -x MASTER_ADDR=HOST");
    who = find(OMPI(1, 4, 2) "MASTER_ADDR=n1");
    expect(who, 1, 4, "n1", -1, false);
    assert_true(who.port_chosen);
    other = find(OMPI(3, 4, 2) "MASTER_ADDR=n1"); /* the same port on all ranks */
    assert_int_equal(who.url.port, other.url.port);
    assert_in_range(who.url.port, 20000, 29999);
    expect(find(OMPI(1, 4, 2) "MASTER_ADDR=n1 MASTER_PORT=77"), 1, 4, "n1", 77, false);
    expect(find(OMPI(1, 4, 2) "MASTER_ADDR=[fd99::10] MASTER_PORT=77"), 1, 4, "fd99::10", 77, false);
    expect(find(OMPI(1, 4, 4) "MASTER_PORT=77"), 1, 4, "127.0.0.1", 77, false);
    who = find(OMPI(1, 4, 2) "MASTER_ADDR=n1 TUTTI_PORT_RANGE=400-401");
    assert_in_range(who.url.port, 400, 401);
}

static void half_of_a_job(void **state)
{
    (void)state;
    refuses("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE is not: half of a job");
    refuses("OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK is not: half of a job");
    refuses("PMI_RANK=0", "PMI_SIZE is not");
    refuses("SLURM_PROCID=0 SLURM_STEP_ID=0", "SLURM_NTASKS is not");
    refuses("OMPI_COMM_WORLD_RANK=x OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK is 'x'");
    refuses(OMPI(0, 2, 2) "WORLD_SIZE=3", "Open MPI has started 2 ranks");
    refuses("PMIX_RANK=1 PMIX_NAMESPACE=x", "PMIX_RANK alone tells no world size");
    refuses("", "start the program with 'tutti run', srun or mpirun");
}

static void rank_wins(void **state)
{
    (void)state;
    expect(find(OMPI(3, 4, 4) "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=5"), 1, 2, "a", 5, false);
    refuses(OMPI(3, 4, 4) "RANK=1", "WORLD_SIZE, which is not set: RANK is set, so Open MPI's own variables are not asked\n"
                                    "  next: unset RANK");
    refuses(OMPI(3, 4, 4) "RANK=1 WORLD_SIZE=4", "MASTER_ADDR, which is not set: RANK is set, so Open MPI's");
    refuses("PMI_RANK=1 PMI_SIZE=2 RANK=0", "WORLD_SIZE, which is not set: RANK is set, so PMI's own variables");
    refuses("RANK=0", "WORLD_SIZE, which is not set\n  next: start the program with 'tutti run'");
}

#define SRUN(rank, size, nodes, node)                                                                  \
    "SLURM_JOB_ID=8812 SLURM_STEP_ID=0 SLURM_PROCID=" #rank " SLURM_NTASKS=" #size " SLURM_LOCALID=0 " \
    "SLURM_STEP_NUM_NODES=" #nodes " SLURMD_NODENAME=" #node " SLURM_STEP_NODELIST=gpu[07-09,12],m1 "

static void slurm(void **state)
{
    tti_who who;

    (void)state;
    who = find(SRUN(5, 8, 4, gpu09));
    expect(who, 5, 8, "gpu07", -1, false);
    assert_true(who.port_chosen);
    assert_string_equal(who.scheduler.job_name, "slurm-8812.0");
    expect(find(SRUN(1, 2, 1, gpu07)), 1, 2, "127.0.0.1", 0, true);
    expect(find(SRUN(5, 8, 4, gpu09) "MASTER_ADDR=h MASTER_PORT=9"), 5, 8, "h", 9, false);
    refuses("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_NODELIST=n[3", "which names no first host");
    refuses("SLURM_JOB_ID=8812 SLURM_PROCID=0 SLURM_NTASKS=8", "start the program with srun");
    refuses("SLURM_JOB_ID=8812 SLURM_NTASKS=8", "start the program with srun");
    refuses("SLURM_JOB_ID=8812 SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_ID=4294967290 SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 "
            "SLURM_LOCALID=0 SLURM_STEP_NODELIST=n1", "start the program with srun"); /* salloc's shell, as an interactive step */
}

/* Where rank 0 is not on the first host of the list, those who see it say so. */
static void slurm_puts_rank_0(void **state)
{
    (void)state;
    expect(find(SRUN(0, 8, 4, gpu07) "SLURM_GTIDS=0"), 0, 8, "gpu07", -1, false);
    expect(find(SRUN(3, 8, 4, gpu07) "SLURM_GTIDS=3,0"), 3, 8, "gpu07", -1, false);
    expect(find(SRUN(3, 8, 4, gpu07)), 3, 8, "gpu07", -1, false);
    expect(find(SRUN(5, 8, 4, gpu09) "SLURM_GTIDS=5,10,20"), 5, 8, "gpu07", -1, false);
    refuses(SRUN(0, 8, 4, gpu08), "rank 0 on this host, 'gpu08', not on the first one of its list, 'gpu07'");
    refuses(SRUN(0, 8, 4, gpu08) "SLURM_GTIDS=0,2", "set MASTER_ADDR to 'gpu08'");
    refuses(SRUN(2, 8, 4, gpu08) "SLURM_GTIDS=0,2", "rank 0 on this host, 'gpu08', not on the first one of its list, 'gpu07'");
    refuses(SRUN(1, 8, 4, gpu07) "SLURM_GTIDS=1,10,30", "rank 0 elsewhere than on the first host of its list, 'gpu07'");
    expect(find(SRUN(0, 8, 4, gpu08) "MASTER_ADDR=h"), 0, 8, "h", -1, false);
    expect(find(SRUN(1, 8, 4, gpu07) "SLURM_GTIDS=1,3 MASTER_ADDR=h"), 1, 8, "h", -1, false);
}

/* On a third host, where rank 0 is told by the file that ranks were dealt by, or by nobody. */
static void slurm_deals_by_a_file(void **state)
{
    char  path[] = "/tmp/tutti-scheduler-test-XXXXXX", third[512];
    int   fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    (void)state;
    assert_true(file != NULL && fputs("\n m1  \ngpu09\n", file) >= 0 && fclose(file) == 0);
    snprintf(third, sizeof third, SRUN(1, 8, 4, gpu09) "SLURM_GTIDS=1,5 SLURM_DISTRIBUTION=arbitrary SLURM_HOSTFILE=%s", path);
    refuses(third, "Slurm has put rank 0 on 'm1', as SLURM_HOSTFILE says, and not on the first host of its list, 'gpu07'");
    refuses(third, "set MASTER_ADDR to 'm1' for all ranks");
    snprintf(third, sizeof third, SRUN(1, 8, 4, gpu09) "SLURM_GTIDS=1,5 SLURM_DISTRIBUTION=cyclic SLURM_HOSTFILE=%s", path);
    expect(find(third), 1, 8, "gpu07", -1, false); /* it is another step's */
    file = fopen(path, "w");
    assert_true(file != NULL && fputs("gpu[07-08]*2\n", file) >= 0 && fclose(file) == 0);
    snprintf(third, sizeof third, SRUN(1, 8, 4, gpu09) "SLURM_GTIDS=1,5 SLURM_DISTRIBUTION=arbitrary SLURM_HOSTFILE=%s", path);
    expect(find(third), 1, 8, "gpu07", -1, false);
    assert_int_equal(unlink(path), 0);
    expect(find(third), 1, 8, "gpu07", -1, false);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(find(third), 1, 8, "gpu07", -1, false);
    assert_int_equal(unlink(path), 0);
}

/* What "srun -w gpu08 -n 1 : -w gpu07 -n 2" leaves: numbers of hosts are those of the parts as they were written. */
static void slurm_sorts_the_hosts(void **state)
{
    (void)state;
    refuses(SRUN(0, 3, 2, gpu08) "SLURM_NODEID=0 SLURM_GTIDS=0", "rank 0 on this host, 'gpu08'");
    refuses(SRUN(1, 3, 2, gpu07) "SLURM_NODEID=1 SLURM_GTIDS=1,2", "rank 0 elsewhere than on the first host of its list, 'gpu07'");
    expect(find(SRUN(0, 3, 2, gpu08) "SLURM_NODEID=0 SLURM_GTIDS=0 MASTER_ADDR=gpu08"), 0, 3, "gpu08", -1, false);
    expect(find(SRUN(1, 3, 2, gpu07) "SLURM_NODEID=1 SLURM_GTIDS=1,2 MASTER_ADDR=gpu08"), 1, 3, "gpu08", -1, false);
}

static void slurm_and_pmi(void **state)
{
    tti_who who;

    (void)state;
    who = find(SRUN(5, 8, 4, gpu09) "PMI_RANK=5 PMI_SIZE=8"); /* srun --mpi=pmi2 */
    assert_string_equal(who.scheduler.name, "Slurm");
    refuses(SRUN(5, 8, 4, gpu09) "PMI_RANK=4 PMI_SIZE=8", "PMI_RANK is 4 and SLURM_PROCID is 5");
    who = find(SRUN(0, 2, 2, gpu07) "PMI_RANK=3 PMI_SIZE=16 MASTER_ADDR=h MASTER_PORT=9"); /* mpiexec's daemons */
    assert_string_equal(who.scheduler.name, "PMI");
    assert_int_equal(who.rank, 3);
    /* The same inside of an allocation: its size is theirs, and srun counts the daemons. */
    who = find(SRUN(1, 4, 2, gpu08) "PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 MASTER_ADDR=h MASTER_PORT=9");
    assert_string_equal(who.scheduler.name, "PMI");
    assert_int_equal(who.rank, 3);
    assert_int_equal(who.scheduler.local_rank, 1);
    who = find(SRUN(0, 2, 2, gpu07) OMPI(3, 16, 8) "MASTER_ADDR=h MASTER_PORT=9");
    assert_string_equal(who.scheduler.name, "Open MPI");
}

static void first_hosts(void **state)
{
    static const char *const lists[][2] = {
        { "n1", "n1" },           { "n1,n2", "n1" },      { "n[1-4]", "n1" },
        { "n[007-100]", "n007" }, { "n[3,5],m1", "n3" },  { "r[1-2]n[05-06]-ib", "r1n05-ib" },
        { "n[9]", "n9" },         { "a-b[2-3].c", "a-b2.c" },
    };
    char   host[TTI_HOST_MAX] = "unchanged";
    char   longest[TTI_HOST_MAX + 1];
    size_t i;

    (void)state;
    assert_false(tti_first_host("", host));
    assert_false(tti_first_host(",a", host));
    assert_false(tti_first_host("n[1-2", host));
    memset(longest, 'a', sizeof longest);
    longest[TTI_HOST_MAX] = '\0';
    assert_false(tti_first_host(longest, host));
    assert_string_equal(host, "unchanged");
    for (i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        assert_true(tti_first_host(lists[i][0], host));
        assert_string_equal(host, lists[i][1]);
    }
}

/* MPICH names no job: the process at the other end of PMI_FD does. */
static void pmi(void **state)
{
    char    text[160];
    int     fds[2];
    tti_who who;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    snprintf(text, sizeof text, "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 PMI_FD=%d", fds[0]);
    who = find(text);
    expect(who, 1, 2, "127.0.0.1", 0, true);
    snprintf(text, sizeof text, "pmi-%ld-", (long)getpid());
    assert_memory_equal(who.scheduler.job_name, text, strlen(text));
    assert_true(strlen(who.scheduler.job_name) > strlen(text)); /* and when it began */
    close(fds[0]);
    close(fds[1]);
    refuses("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2 PMI_FD=999", "gives this job no name");
    refuses("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", "mpiexec -genv MASTER_ADDR HOST");
    refuses("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=1", "tells neither that all are on this host nor where rank 0 is");
    expect(find("PMI_RANK=0 PMI_SIZE=1 MPI_LOCALNRANKS=1"), 0, 1, "127.0.0.1", 0, false);
}

static void names_differ(void **state)
{
    (void)state;
    assert_true(tti_job_hash("slurm-1.0") != tti_job_hash("slurm-1.1"));
    assert_true(tti_job_hash("slurm-1.0") % 10000 != tti_job_hash("slurm-2.0") % 10000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, no_variables, no_variables)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(open_mpi), TEST(half_of_a_job), TEST(rank_wins), TEST(slurm), TEST(slurm_puts_rank_0), TEST(slurm_deals_by_a_file),
        TEST(slurm_sorts_the_hosts), TEST(slurm_and_pmi), TEST(first_hosts), TEST(pmi), TEST(names_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
