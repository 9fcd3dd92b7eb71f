/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env.c - every environment variable that tutti reads, in one table. docs/env.md is made from it. */
#include "base/env.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>

static const tti_env_entry table[] = {
    { "RANK", NULL, "this process's rank, 0 .. WORLD_SIZE-1" },
    { "WORLD_SIZE", NULL, "number of processes of the job" },
    { "LOCAL_RANK", NULL, "rank among the processes of this host" },
    { "GROUP_RANK", NULL, "number of this host among those of the job" },
    { "LOCAL_WORLD_SIZE", NULL, "processes of the job on this host" },
    { "MASTER_ADDR", NULL, "host of the store" },
    { "MASTER_PORT", NULL, "TCP port of the store" },
    { "TORCHELASTIC_USE_AGENT_STORE", NULL, "True: the launcher hosts the store, every rank is a client (set by torchrun and tutti run)" },
    { "TORCHELASTIC_RESTART_COUNT", "0", "which attempt this is; keeps the keys of attempts apart" },
    { "TORCHELASTIC_RUN_ID", NULL, "set by launchers: the name of the job" },
    { "OMPI_COMM_WORLD_RANK", NULL, "without RANK: the rank, under Open MPI's mpirun" },
    { "OMPI_COMM_WORLD_SIZE", NULL, "the same: ranks of the job" },
    { "OMPI_COMM_WORLD_LOCAL_RANK", NULL, "the same: rank among those of this host" },
    { "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, "the same: ranks on this host" },
    { "OMPI_MCA_ess_base_jobid", NULL, "the same: the job's name, where PMIX_NAMESPACE is not set" },
    { "PMIX_NAMESPACE", NULL, "the same: the job's name" },
    { "PMIX_RANK", NULL, "no rank by itself, as no size comes with it; looked at for an error's words" },
    { "SLURM_PROCID", NULL, "without RANK: the rank, under srun" },
    { "SLURM_NTASKS", NULL, "the same: ranks of the step" },
    { "SLURM_LOCALID", NULL, "the same: rank among those of this host" },
    { "SLURMD_NODENAME", NULL, "the same: name of this host; rank 0 has to be on the first, where MASTER_ADDR is not set" },
    { "SLURM_GTIDS", NULL, "the same: the ranks of this host; whether rank 0 is one of them" },
    { "SLURM_DISTRIBUTION", NULL, "the same: how ranks were dealt to hosts; \"arbitrary\": by SLURM_HOSTFILE" },
    { "SLURM_HOSTFILE", NULL, "the same: the host of rank 0 in its first line has to be the first one, where MASTER_ADDR is not set" },
    { "SLURM_STEP_NUM_NODES", NULL, "the same: hosts of the step" },
    { "SLURM_STEP_NODELIST", NULL, "the same: its first host is MASTER_ADDR, where that is not set" },
    { "SLURM_JOB_NODELIST", NULL, "the same, where SLURM_STEP_NODELIST is not set" },
    { "SLURM_JOB_ID", NULL, "the same: with SLURM_STEP_ID the job's name" },
    { "SLURM_STEP_ID", NULL, "tells ranks of srun from sbatch's script and salloc's shell" },
    { "PMI_RANK", NULL, "without RANK: the rank, under mpiexec of MPICH or Intel MPI" },
    { "PMI_SIZE", NULL, "the same: ranks of the job" },
    { "PMI_FD", NULL, "the same: socket to the launcher, whose pid is the job's name" },
    { "MPI_LOCALRANKID", NULL, "the same: rank among those of this host" },
    { "MPI_LOCALNRANKS", NULL, "the same: ranks on this host" },
    { "TUTTI_AGENT_STORE", NULL, "1: the launcher's store speaks tutti's protocol (set by tutti run)" },
    { "TUTTI_SECRET_FILE", NULL, "file with the job's secret, mode 0600 (set by tutti run)" },
    { "TUTTI_AUTH", "secret", "secret: beyond loopback nobody gets in without the job's secret; none: whoever reaches a port does" },
    { "TUTTI_TLS", "0", "1: every TCP connection is encrypted, by TLS 1.3 with keys made from the job's secret; the same in all processes of the job" },
    { "TUTTI_TLS_CERT", NULL, "file with this process's certificate (PEM, with those between it and the authority's): both ends show one then, and no key is made from the secret; with the next two" },
    { "TUTTI_TLS_KEY", NULL, "the same: file with its private key, mode 0600" },
    { "TUTTI_TLS_CA", NULL, "the same: file with the certificates of the authorities that are believed; whoever has a certificate from them is let in" },
    { "TUTTI_LAUNCHER_FD", NULL, "set by launchers: the descriptor of the memory in which the launcher says which processes of the job have ended" },
    { "TUTTI_REPLACEMENT", NULL, "set by tutti run --replace: this process is the Nth that was started in the place of a rank that failed" },
    { "TUTTI_SPAWN_NAME", NULL, "set by tutti_spawn: the function that this process is to run" },
    { "TUTTI_SPAWN_ARG", "", "set by tutti_spawn: the function's argument" },
    { "TUTTI_LOG", NULL, "error, warn, info, debug or trace: the most that is logged; unset: TORCH_CPP_LOG_LEVEL" },
    { "TORCH_CPP_LOG_LEVEL", "WARNING", "ERROR, WARNING or INFO: the same" },
    { "TUTTI_DEBUG", NULL, "off, info or detail: raises what TUTTI_LOG=info logs, detail to every operation; unset: TORCH_DISTRIBUTED_DEBUG" },
    { "TUTTI_DEBUGGER", "gdb", "what tutti_breakpoint() starts, with -p and the number of the process" },
    { "TORCH_DISTRIBUTED_DEBUG", "OFF", "OFF, INFO or DETAIL: the same" },
    { "TUTTI_RECORDER", "1", "0: no flight recorder; tutti/recorder.h" },
    { "TUTTI_RECORDER_FD", NULL, "set by launchers: the descriptor of the memory that the recorder is to have, so that the launcher can read it when the process is dead" },
    { "TUTTI_TRACE_BUFFER_SIZE", NULL, "operations that the recorder keeps, rounded up to a power of two; 0: no recorder; unset: TORCH_FR_BUFFER_SIZE, else 2048" },
    { "TORCH_FR_BUFFER_SIZE", NULL, "the same where TUTTI_TRACE_BUFFER_SIZE is not set" },
    { "TORCH_NCCL_TRACE_BUFFER_SIZE", NULL, "the same where neither is set" },
    { "TUTTI_TRACE_FILE", NULL, "beginning of the names of dumps, the rank follows: the recorder is dumped there as JSON, and as it is with '.rec' behind the name, when an operation runs out of time or loses a peer; after the first time when one of a group does that was made later, to names with '.2', '.3', ... '.8' behind the rank. Only regular files are written to, no pipes; unset: TORCH_FR_DUMP_TEMP_FILE" },
    { "TORCH_FR_DUMP_TEMP_FILE", NULL, "the same where TUTTI_TRACE_FILE is not set" },
    { "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", NULL, "the same where neither is set" },
    { "TUTTI_TRACE_SIGNAL", NULL, "USR1, USR2, HUP, QUIT or PROF: the signal that has a process save its recorder, as TUTTI_TRACE_FILE, rank, '.rec'" },
    { "TUTTI_BACKEND", NULL, "backend string of worlds whose program names none, as `tutti/backends.h` tells; unset: native" },
    { "TUTTI_TIMEOUT_MS", "1800000", "default time-out of groups, ms" },
    { "TUTTI_HEARTBEAT_MS", "1000", "how often each rank gives a sign of life, ms; one that gives none for three times as long is called silent" },
    { "TUTTI_SILENT_MS", NULL, "after how long a silent rank is given up, ms, as if it were dead; unset: never, what waits for it ends with its own time-out" },
    { "TUTTI_OBJECT_MAX", "268435456", "bytes of the largest object that tutti/object.h sends or takes" },
    { "TUTTI_OBJECTS_MAX", "1073741824", "bytes of all objects of one such call" },
    { "TUTTI_HELD_MAX", NULL, "bytes that other ranks may have a process hold: messages that nobody has asked for yet, and what they get from windows, on its way; unset: half of the memory that there is" },
    { "TUTTI_TRANSPORT", "auto", "auto: shared memory inside a host, TCP between; tcp: TCP everywhere; NAME, as 'ucx': shared memory inside a host, the plug-in of that name between; only:NAME: the plug-in everywhere; docs/ucx.md" },
    { "TUTTI_SOCKET_IFNAME", NULL, "where to listen instead of on the address that routes to the master: addresses, or beginnings of interface names ('eth,ib'); =: whole names ('=eth0'), ^: not these ('^docker,lo'). Several whole names ('=eth0,=ib0') are all used: connections between two ranks are dealt to them, as many on all hosts" },
    { "GLOO_SOCKET_IFNAME", NULL, "the same where TUTTI_SOCKET_IFNAME is not set: whole names of interfaces; several are all used" },
    { "TUTTI_PORT_RANGE", NULL, "ports for everything that listens, 'FIRST-LAST'; unset: any free one" },
    { "TUTTI_LISTEN", "route", "route: never the wildcard; any: on all addresses, for a service or NAT in front of rank 0's host; the store is looked for on loopback, too" },
    { "TUTTI_ADVERTISE", NULL, "host or address under which other ranks reach this one, where that is not the address listened on" },
    { "TUTTI_TCP_CONGESTION", NULL, "congestion control of connections between ranks, as the kernel calls it ('cubic', 'bbr'); unset: the system's, but 'reno' between near hosts if that is 'bbr'" },
    { "TUTTI_TCP_STRIPES", "1", "connections between two ranks of different hosts, by each interface that is used, 1 to 8 in all, for ways that one does not fill; the same on all ranks" },
    { "TUTTI_NCCL_LIBRARY", NULL, "backend nccl: the file of the NCCL library, instead of libnccl.so.2 where the loader finds it" },
    { "TUTTI_CUDART_LIBRARY", NULL, "backend nccl, and native on memory of GPUs: the file of the CUDA runtime, which has to be the one that the program uses" },
    { "TUTTI_PINNED_MAX", "67108864", "bytes of pinned host memory that a world keeps for later calls of native on memory of GPUs; what a call needs beyond that it pins for itself; docs/cuda.md" },
    { "TUTTI_PLUGIN_PATH", NULL, "directories, absolute, with ':' between, in which plug-ins, of backends, of transports and of devices, are looked for before the library's own 'tutti'; tutti/plugin/plugin.h" },
    { "TUTTI_FAKE_ERROR", "0", "1: every collective of the backend \"fake\" fails" },
    { "TUTTI_ALGO", NULL, "op=name,..., each operation once: take these algorithms where they apply, in the order of adding that each has; `tutti/tune.h`, docs/performance.md" },
    { "TUTTI_TUNE", NULL, "file with a table of algorithms, as `tutti bench --tune` writes it: where TUTTI_ALGO names none; tutti/tune.h tells the format" },
    { "TUTTI_LINK_MBIT", NULL, "Mb/s that the link of a host carries, where that is less than 8000: rank 0's goes into the choice of algorithms between hosts; 0: nothing is known of it; unset: what rank 0's kernel tells of the interface that is used; tutti/tune.h" },
    { "TUTTI_REPRODUCIBLE", "0", "1: sums are made in the order of ranks 0 .. P-1 wherever the ranks are, so that the same inputs give the same bits on any hosts" },
    { "TUTTI_ISA", "auto", "auto, portable, sse2, avx2, avx512 or neon: instructions of the arithmetic, for experiments; the bits are the same" },
    { "TUTTI_TORCH_PYTHON", NULL, "read by the comparisons with PyTorch only: the Python that has it" },
    { "OMP_NUM_THREADS", NULL, "threads of a rank's BLAS; the launcher sets 1 when it is unset" },
    { "PATH", "/usr/local/bin:/usr/bin:/bin", "where the launcher looks for programs" },
    { "XDG_RUNTIME_DIR", NULL, "where the launcher keeps a job's secret, if in memory" },
    { "TMPDIR", "/tmp", "the same, where nothing in memory can be written to" },
};

const tti_env_entry *tti_env_table(size_t *n_out)
{
    *n_out = sizeof table / sizeof table[0];
    return table;
}

const char *tti_env(const char *name)
{
    const char *value;
    size_t      i;

    for (i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            break;
    assert(i < sizeof table / sizeof table[0]);
    value = getenv(name);
    if (value == NULL || value[0] == '\0')
        return table[i].value;
    return value;
}

tutti_status tti_env_int(const char *name, int64_t min, int64_t max, int64_t *value_out)
{
    const char *text = tti_env(name);
    char       *end = NULL;
    long long   value;

    if (text == NULL)
        return tti_fail(TUTTI_E_ARG, "environment variable %s is not set", name);
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max)
        return tti_fail(TUTTI_E_ARG,
                        "environment variable %s is '%s', not a number between %lld and %lld\n"
                        "  next: set it to such a number",
                        name, text, (long long)min, (long long)max);
    *value_out = value;
    return TUTTI_OK;
}

tutti_status tti_env_timeout(int64_t *timeout_ms_out)
{
    int64_t      ms = 0;
    tutti_status st = tti_env_int("TUTTI_TIMEOUT_MS", -1, INT64_MAX / 1000000, &ms);

    if (st == TUTTI_OK && ms == 0)
        st = tti_fail(TUTTI_E_ARG, "environment variable TUTTI_TIMEOUT_MS is 0\n"
                                   "  next: a number of ms, or -1 for none");
    if (st == TUTTI_OK)
        *timeout_ms_out = ms;
    return st;
}

/* Whether text is one of words, NULL behind the last. */
static bool one_of(const char *text, const char *const words[])
{
    for (; *words != NULL; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

tutti_status tti_env_flag(const char *name, bool *value_out)
{
    static const char *const yes[] = { "1", "true", "yes", "t", "y", NULL };
    static const char *const no[] = { "0", "false", "no", "f", "n", NULL };
    const char              *text = tti_env(name);
    const bool               on = text != NULL && one_of(text, yes);

    if (text != NULL && !on && !one_of(text, no))
        return tti_fail(TUTTI_E_ARG, "environment variable %s is '%s', neither yes nor no\n  next: give 1 or 0", name,
                        text);
    *value_out = on;
    return TUTTI_OK;
}

static int signal_number(const char *text)
{
    static const struct {
        const char *name;
        int         number;
    } known[] = { { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "PROF", SIGPROF } };
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i].name) == 0 || (strncmp(text, "SIG", 3) == 0 && strcmp(text + 3, known[i].name) == 0))
            return known[i].number;
    return 0;
}

tutti_status tti_env_signal(const char *name, int *number_out)
{
    const char *text = tti_env(name);

    *number_out = text != NULL ? signal_number(text) : 0;
    if (text != NULL && *number_out == 0)
        return tti_fail(TUTTI_E_ARG, "%s is '%.32s', not USR1, USR2, HUP, QUIT or PROF\n"
                                     "  next: set it to one of these, or unset it",
                        name, text);
    return TUTTI_OK;
}
