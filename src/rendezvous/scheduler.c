/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scheduler.c - the variables of Slurm, Open MPI and PMI.
 *
 * Why     A program that srun or mpirun has started finds no RANK. Each launcher says the same under names
 *         of its own, and none says everything: mpirun tells nobody where rank 0 runs, MPICH's gives the
 *         job no name.
 * How     One table of families; the first whose rank and size are set is who started us. A rank without
 *         a size, or a size without a rank, is an error: half of a job must not become a world of one.
 *         A job's name is what keeps two jobs on one host apart. Where the launcher gives none, the
 *         name is its daemon: the process at the other end of the socket PMI_FD, by pid and time of start.
 * True    RANK, where set, is the only one who speaks: callers look here only without it. */
#include "rendezvous/scheduler.h"

#include "base/env.h"
#include "base/fnv.h"
#include "rendezvous/url.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>

typedef struct family {
    const char *name;
    const char *rank;
    const char *world_size;
    const char *local_rank;
    const char *local_size; /* NULL: found by details() */
    const char *pass;
    tutti_status (*details)(tti_port *port, tti_scheduler *s); /* name of the job, whether one host has it */
} family;

/* ---- Open MPI: mpirun of 3 to 5, prterun, jsrun ---- */

static tutti_status openmpi_details(tti_port *port, tti_scheduler *s)
{
    const char *id = tti_env("PMIX_NAMESPACE");

    (void)port;
    if (id == NULL)
        id = tti_env("OMPI_MCA_ess_base_jobid");
    if (id != NULL)
        snprintf(s->job_name, sizeof s->job_name, "openmpi-%.100s", id);
    s->named_everywhere = id != NULL;
    return TUTTI_OK;
}

/* ---- Slurm: srun ---- */

bool tti_first_host(const char *list, char host_out[TTI_HOST_MAX])
{
    char   host[TTI_HOST_MAX];
    size_t used = 0;

    for (; *list != '\0' && *list != ','; list++) {
        const bool   range = *list == '[';
        const size_t n = range ? strcspn(list + 1, "-,]") : 1;

        if (used + n >= sizeof host)
            return false;
        memcpy(host + used, list + (range ? 1 : 0), n);
        used += n;
        if (range && (list = strchr(list, ']')) == NULL)
            return false;
    }
    if (used == 0)
        return false;
    host[used] = '\0';
    memcpy(host_out, host, used + 1);
    return true;
}

static const char *either(const char *first, const char *second)
{
    return tti_env(first) != NULL ? tti_env(first) : tti_env(second);
}

enum rank_0_place { NOT_TOLD, HERE, ELSEWHERE };

/* SLURM_GTIDS has the ranks of this host, "0,2". */
static enum rank_0_place place_of_rank_0(const tti_scheduler *s)
{
    const char *ranks = tti_env("SLURM_GTIDS");

    if (s->rank == 0)
        return HERE;
    if (ranks == NULL)
        return NOT_TOLD;
    for (; ranks != NULL; ranks = strchr(ranks, ',')) {
        ranks += *ranks == ',';
        if (ranks[0] == '0' && (ranks[1] == ',' || ranks[1] == '\0'))
            return HERE;
    }
    return ELSEWHERE;
}

/* The first line of SLURM_HOSTFILE, by which "-m arbitrary" deals ranks to hosts in order; false: it is not told here. */
static bool host_by_file(char host_out[TTI_HOST_MAX])
{
    const char *how = tti_env("SLURM_DISTRIBUTION"), *path = tti_env("SLURM_HOSTFILE");
    char        text[2 * TTI_HOST_MAX], *line;
    struct stat st;
    ssize_t     n = -1;
    int         fd;

    if (how == NULL || path == NULL || strcmp(how, "arbitrary") != 0)
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a fifo is not waited for */
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    line = text + strspn(text, " \t\r\n");
    line[strcspn(line, " \t\r\n*#")] = '\0';
    return tti_first_host(line, host_out);
}

/* The others look for rank 0 on the first host. Whoever sees that it is elsewhere says so: those of its host, and those of the first
 * one. On a third host nobody can know, but who can read the file by which the ranks were dealt. Hosts are compared by their
 * names, and not by SLURM_NODEID: that one counts the parts of a heterogeneous step as they were written ("srun -w n2 : -w n1"), the
 * list is in the order of the names. No host has two parts. */
static tutti_status slurm_first(const tti_scheduler *s, const char *first)
{
    const char *here = tti_env("SLURMD_NODENAME");
    char        told[TTI_HOST_MAX];
    bool        is_first;

    if (here == NULL)
        return TUTTI_OK;
    is_first = strcmp(here, first) == 0;
    if (!is_first && place_of_rank_0(s) == HERE)
        return tti_fail(TUTTI_E_ARG,
                        "Slurm has put rank 0 on this host, '%.255s', not on the first one of its list, '%s', where the others would "
                        "look for it\n  next: set MASTER_ADDR to '%.255s' for all ranks",
                        here, first, here);
    if (is_first && place_of_rank_0(s) == ELSEWHERE)
        return tti_fail(TUTTI_E_ARG,
                        "Slurm has put rank 0 elsewhere than on the first host of its list, '%s', where the others would look for it\n"
                        "  next: set MASTER_ADDR to the host of rank 0 for all ranks",
                        first);
    if (!is_first && place_of_rank_0(s) == ELSEWHERE && host_by_file(told) && strcmp(told, first) != 0)
        return tti_fail(TUTTI_E_ARG,
                        "Slurm has put rank 0 on '%.255s', as SLURM_HOSTFILE says, and not on the first host of its list, '%s', where "
                        "the others would look for it\n  next: set MASTER_ADDR to '%.255s' for all ranks",
                        told, first, told);
    return TUTTI_OK;
}

static tutti_status slurm_master(const tti_scheduler *s, char host_out[TTI_HOST_MAX])
{
    const char  *hosts = either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
    char         first[TTI_HOST_MAX] = "";
    tutti_status st = TUTTI_OK;

    if (hosts != NULL && !tti_first_host(hosts, first))
        return tti_fail(TUTTI_E_ARG,
                        "SLURM_STEP_NODELIST is '%.64s', which names no first host\n"
                        "  next: set MASTER_ADDR to the host of rank 0",
                        hosts);
    if (hosts != NULL)
        st = slurm_first(s, first);
    if (st == TUTTI_OK)
        memcpy(host_out, first, sizeof first);
    return st;
}

static tutti_status slurm_details(tti_port *port, tti_scheduler *s)
{
    int64_t      nodes = 0;
    tutti_status st;

    (void)port;
    if (tti_env("SLURM_STEP_NUM_NODES") != NULL) {
        st = tti_env_int("SLURM_STEP_NUM_NODES", 1, TTI_WORLD_MAX, &nodes);
        if (st != TUTTI_OK)
            return st;
    }
    s->one_host = nodes == 1;
    if (tti_env("SLURM_JOB_ID") != NULL) {
        snprintf(s->job_name, sizeof s->job_name, "slurm-%.32s.%.32s", tti_env("SLURM_JOB_ID"),
                 tti_env("SLURM_STEP_ID"));
        s->named_everywhere = true;
    }
    return TUTTI_OK;
}

/* ---- PMI: mpiexec of MPICH and Intel MPI ---- */

/* When a process began, in the kernel's ticks. false: it is not to be seen. */
static bool began_at(int64_t pid, unsigned long long *ticks_out)
{
    char   path[48], text[1024];
    char  *at;
    FILE  *file;
    size_t n;
    int    field;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    at = strrchr(text, ')'); /* the end of field 2, which may hold anything */
    for (field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, "%llu", ticks_out) == 1;
}

static tutti_status pmi_details(tti_port *port, tti_scheduler *s)
{
    tti_peer_cred      daemon;
    unsigned long long ticks;
    int64_t            fd = 0;

    if (tti_env("PMI_FD") == NULL || tti_env_int("PMI_FD", 0, INT32_MAX, &fd) != TUTTI_OK)
        return TUTTI_OK;
    if (port->ops->peer_cred(port, (tti_handle)fd, &daemon) != 0 || daemon.pid <= 0 ||
        daemon.uid != (int64_t)geteuid() || !began_at(daemon.pid, &ticks))
        return TUTTI_OK; /* not that socket any more: the job has no name */
    snprintf(s->job_name, sizeof s->job_name, "pmi-%lld-%llu", (long long)daemon.pid, ticks);
    return TUTTI_OK;
}

/* ---- all ---- */

enum { OPENMPI, SLURM, PMI, FAMILIES };

static const family families[FAMILIES] = {
    [OPENMPI] = { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                  "mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=PORT", openmpi_details },
    [SLURM] = { "Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL,
                "export MASTER_ADDR and MASTER_PORT before srun", slurm_details },
    [PMI] = { "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
              "mpiexec -genv MASTER_ADDR HOST -genv MASTER_PORT PORT", pmi_details },
};

/* A process of Slurm's own beside the tasks has a step, too, with a number from up here: an interactive shell of salloc (-6),
 * sbatch's script (-5) where that is told. */
enum { SLURM_STEPS_OF_ITS_OWN = 16 }; /* the last ones of 32 bits */

/* srun's: sbatch's script and salloc's shell have some of the variables, too, but are no ranks. */
static bool is_slurm_step(void)
{
    const char *step = tti_env("SLURM_STEP_ID");

    return step != NULL && tti_env("SLURM_PROCID") != NULL && strtoull(step, NULL, 10) <= UINT32_MAX - SLURM_STEPS_OF_ITS_OWN;
}

/* Whether srun has started this process and speaks PMI besides: both then tell one size. mpiexec's daemons are tasks of srun's,
 * too, inside of an allocation, and hand their variables on to ranks of the allocation's size; but they count the ranks of a host,
 * which srun does not. */
static tutti_status slurm_speaks_pmi(bool *yes_out)
{
    const char *size = tti_env("PMI_SIZE"), *rank = tti_env("PMI_RANK");

    *yes_out = is_slurm_step() && size != NULL && tti_env("MPI_LOCALNRANKS") == NULL && tti_env("SLURM_NTASKS") != NULL &&
               strcmp(size, tti_env("SLURM_NTASKS")) == 0;
    if (*yes_out && rank != NULL && strcmp(rank, tti_env("SLURM_PROCID")) != 0)
        return tti_fail(TUTTI_E_ARG,
                        "PMI_RANK is %.16s and SLURM_PROCID is %.16s, in one world of %.16s\n"
                        "  next: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
                        rank, tti_env("SLURM_PROCID"), size);
    return TUTTI_OK;
}

static tutti_status find_family(const family **out)
{
    const family *openmpi = &families[OPENMPI], *pmi = &families[PMI];
    bool          both = false;
    tutti_status  st;

    *out = NULL;
    if (tti_env(openmpi->rank) != NULL || tti_env(openmpi->world_size) != NULL) {
        *out = openmpi;
        return TUTTI_OK;
    }
    st = slurm_speaks_pmi(&both);
    if (st != TUTTI_OK)
        return st;
    if (!both && (tti_env(pmi->rank) != NULL || tti_env(pmi->world_size) != NULL))
        *out = pmi;
    else if (is_slurm_step())
        *out = &families[SLURM];
    return TUTTI_OK;
}

static tutti_status read_number(const family *f, const char *name, const char *other, int64_t min, int64_t max,
                                int *out)
{
    int64_t      value = 0;
    tutti_status st;

    if (tti_env(name) == NULL)
        return tti_fail(TUTTI_E_ARG,
                        "%s's variable %s is set, %s is not: half of a job\n"
                        "  next: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or unset %s",
                        f->name, other, name, other);
    st = tti_env_int(name, min, max, &value);
    if (st == TUTTI_OK)
        *out = (int)value;
    return st;
}

static tutti_status read_family(tti_port *port, const family *f, tti_scheduler *s)
{
    int64_t      local = 0;
    tutti_status st;

    st = read_number(f, f->rank, f->world_size, 0, TTI_WORLD_MAX - 1, &s->rank);
    if (st == TUTTI_OK)
        st = read_number(f, f->world_size, f->rank, 1, TTI_WORLD_MAX, &s->world_size);
    if (st == TUTTI_OK && tti_env(f->local_rank) != NULL) {
        st = tti_env_int(f->local_rank, 0, TTI_WORLD_MAX - 1, &local);
        s->local_rank = (int)local;
    }
    if (st == TUTTI_OK && f->local_size != NULL && tti_env(f->local_size) != NULL) {
        st = tti_env_int(f->local_size, 1, TTI_WORLD_MAX, &local);
        s->one_host = local == s->world_size;
    }
    return st == TUTTI_OK ? f->details(port, s) : st;
}

tutti_status tti_scheduler_find(tti_port *port, tti_scheduler *out)
{
    tti_scheduler s = { .local_rank = -1 };
    const family *f = NULL;
    tutti_status  st = find_family(&f);

    if (st == TUTTI_OK && f != NULL) {
        s.name = f->name;
        s.pass = f->pass;
        st = read_family(port, f, &s);
    }
    if (st == TUTTI_OK)
        *out = s;
    return st;
}

tutti_status tti_scheduler_master(const tti_scheduler *s, char host_out[TTI_HOST_MAX])
{
    if (s->name != NULL && strcmp(s->name, families[SLURM].name) == 0)
        return slurm_master(s, host_out);
    host_out[0] = '\0';
    return TUTTI_OK;
}

const char *tti_scheduler_here(void)
{
    const family *f = NULL;

    return find_family(&f) == TUTTI_OK && f != NULL ? f->name : NULL;
}

const char *tti_scheduler_advice(void)
{
    if (tti_env("SLURM_JOB_ID") != NULL && !is_slurm_step())
        return "this is Slurm's own script or shell, not a task: start the program with srun";
    if (tti_env("PMIX_RANK") != NULL)
        return "PMIX_RANK alone tells no world size: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT";
    return "start the program with 'tutti run', srun or mpirun, or set RANK, WORLD_SIZE, MASTER_ADDR and "
           "MASTER_PORT";
}

uint64_t tti_job_hash(const char *name)
{
    const uint64_t hash = tti_fnv(TTI_FNV_BEGIN, name, strlen(name));

    return hash ^ hash >> 32;
}
