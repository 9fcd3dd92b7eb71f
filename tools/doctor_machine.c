/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_machine.c - `tutti doctor host`: cores, memory, limits, and what the kernel lets ranks do with each other.
 *
 * How     What can be tried is tried: memory without a name is made and sealed, one child reads another's memory, as ranks
 *         do. The rest is read from where the kernel tells it. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <tutti/host.h>
#include <unistd.h>
#include "proc.h"

#define MIB (1024 * 1024.0)

/* ---- kernel and cores -------------------------------------------------------------------------- */

static void look_kernel(report *r)
{
    struct utsname u;
    int major = 0, minor = 0;

    if (uname(&u) != 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2)
        report_add(r, WARN, "kernel", NULL, "cannot tell which version this is");
    else if (major < 5 || (major == 5 && minor < 4))
        report_add(r, FAILS, "kernel", "use a kernel from 5.4 on", "Linux %s on %s: too old, ranks need pidfds", u.release,
                   u.machine);
    else
        report_add(r, FINE, "kernel", NULL, "Linux %s on %s", u.release, u.machine);
}

static void look_cores(report *r)
{
    tutti_host host = TUTTI_HOST;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    double load = 0;
    verdict v;

    if (tutti_host_look(&host) != TUTTI_OK)
        return;
    v = host.cores_allowed < online || host.cores_running < online ? NOTE : FINE;
    report_add(r, v, "cores", v == NOTE ? "start no more ranks here than cores that they get" : NULL,
               "%ld online, this process may run on %d, its control group's quota is worth %d; arithmetic uses %s", online,
               host.cores_allowed, host.cores_running, host.isa);
    if (getloadavg(&load, 1) == 1 && load > 1.0 * (double)online)
        report_add(r, WARN, "load", "see what runs with top; a rank that waits for a core makes all ranks wait",
                   "%.1f processes want to run at a time, and there are %ld cores", load, online);
}

static void look_clock(report *r)
{
    char source[64];

    if (!proc_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source))
        report_add(r, NOTE, "clock", NULL, "the kernel does not tell its source");
    else if (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 || strcmp(source, "jiffies") == 0)
        report_add(r, WARN, "clock", "see dmesg for why the time stamp counter was given up",
                   "%s: reading the time takes a microsecond and more, for every operation", source);
    else
        report_add(r, FINE, "clock", NULL, "%s", source);
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* The limit of this process's control group, version 2 or 1, as far as it is mounted; -1: none. */
static long long group_limit(void)
{
    long long limit = -1;

    if (proc_numbers("/sys/fs/cgroup/memory.max", &limit, 1) != 1 &&
        proc_numbers("/sys/fs/cgroup/memory/memory.limit_in_bytes", &limit, 1) != 1)
        return -1;
    return limit > 0 && limit < INT64_C(1) << 60 ? limit : -1;
}

static void look_memory(report *r)
{
    const double all = (double)proc_value("/proc/meminfo", "MemTotal") / 1024;
    const double left = (double)proc_value("/proc/meminfo", "MemAvailable") / 1024;
    const long long limit = group_limit();
    struct rlimit space;

    report_add(r, left < 64 ? FAILS : left < 512 ? WARN : FINE, "memory",
               left < 512 ? "end something, or start fewer ranks" : NULL,
               "%.0f MiB, %.0f of them available%s", all, left, limit < 0 ? "" : ", and a control group has a limit");
    if (limit >= 0)
        report_add(r, limit < 256 * MIB ? WARN : NOTE, "memory limit", NULL,
                   "%.0f MiB for all processes of the control group; who goes beyond is killed (exit code 137)",
                   (double)limit / MIB);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        report_add(r, (double)space.rlim_cur < 4096 * MIB ? FAILS : WARN, "address space", "ulimit -v unlimited",
                   "limited to %.0f MiB: each rank of this host takes 1024 MiB of it in every other one (of space, not of memory)",
                   (double)space.rlim_cur / MIB);
}

static void look_pages(report *r)
{
    char shared[128], own[128];

    if (!proc_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shared, sizeof shared) ||
        !proc_line("/sys/kernel/mm/transparent_hugepage/enabled", own, sizeof own))
        report_add(r, NOTE, "huge pages", NULL, "this kernel has none that are transparent");
    else
        report_add(r, FINE, "huge pages", NULL, "for memory that ranks share: %s; for a program's own: %s", shared, own);
}

/* Memory as ranks share it: without a name, its pages reserved, its size sealed. */
static void try_memfd(report *r)
{
    const size_t bytes = 4 << 20;
    int fd = memfd_create("tutti-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    void *map = err == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (err == 0 && map == MAP_FAILED)
        err = errno;
    if (err == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        err = errno;
    if (err == 0)
        report_add(r, FINE, "shared memory", NULL, "can be made without a name, reserved and sealed (memfd)");
    else
        report_add(r, FAILS, "shared memory", "let the container make memfds, or set TUTTI_TRANSPORT=tcp",
                   "cannot be made: %s", strerror(err));
    if (map != MAP_FAILED)
        munmap(map, bytes);
    if (fd >= 0)
        close(fd);
}

static void look_dev_shm(report *r)
{
    struct statvfs fs;

    if (access("/dev/shm", W_OK | X_OK) != 0)
        report_add(r, WARN, "/dev/shm", "mount a tmpfs there",
                   "cannot be written to: without XDG_RUNTIME_DIR the job's secret goes to a disk. Ranks do not need it");
    else if (statvfs("/dev/shm", &fs) == 0)
        report_add(r, FINE, "/dev/shm", NULL, "%.0f of %.0f MiB are free; only the job's secret goes there",
                   (double)fs.f_bavail * (double)fs.f_frsize / MIB, (double)fs.f_blocks * (double)fs.f_frsize / MIB);
}

/* ---- what ranks do with each other ------------------------------------------------------------- */

/* In a child: 0 if the sibling's word can be read, else an errno. */
static _Noreturn void read_sibling(pid_t pid, const uint64_t *word)
{
    uint64_t got = 0;
    const struct iovec to = { &got, sizeof got }, from = { (void *)(uintptr_t)word, sizeof *word };
    const ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

    _exit(n == (ssize_t)sizeof got && got == *word ? 0 : n < 0 ? errno : EIO);
}

/* Whether of two children one may read the other's memory, as two ranks of a launcher: 0, or an errno. */
static int siblings_may_read(void)
{
    static const uint64_t word = UINT64_C(0x7475747469);
    pid_t sleeper = fork(), reader;
    int status = -1;

    if (sleeper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    if (sleeper < 0)
        return errno;
    reader = fork();
    if (reader == 0)
        read_sibling(sleeper, &word);
    if (reader > 0)
        waitpid(reader, &status, 0);
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
    return reader > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

static void try_reading(report *r)
{
    const int err = siblings_may_read();
    long long yama = -1;

    proc_numbers("/proc/sys/kernel/yama/ptrace_scope", &yama, 1);
    if (err == 0)
        report_add(r, FINE, "copies", NULL, "one process may read another's memory (process_vm_readv)");
    else
        report_add(r, WARN, "copies",
                   yama > 0 ? "sysctl kernel.yama.ptrace_scope=0, or give the container CAP_SYS_PTRACE"
                            : "let the container call process_vm_readv (its seccomp profile)",
                   "no process may read another's memory (%s%s): large messages inside the host are copied twice", strerror(err),
                   yama > 0 ? ", yama" : "");
}

static void try_calls(report *r)
{
    const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    const long barriers = syscall(SYS_membarrier, 0, 0, 0);

    if (pidfd < 0)
        report_add(r, FAILS, "deaths", "let the container call pidfd_open (its seccomp profile)",
                   "ranks cannot watch each other: pidfd_open: %s", strerror(errno));
    else
        report_add(r, FINE, "deaths", NULL, "are seen at once (pidfd)");
    if (pidfd >= 0)
        close(pidfd);
    if (barriers < 0)
        report_add(r, NOTE, "barriers", NULL, "membarrier is not there: sleeping ranks are woken with a fence each");
}

/* ---- limits and surroundings ------------------------------------------------------------------- */

static void look_files(report *r)
{
    struct rlimit files;
    const char *next = "ulimit -n 65536 before tutti run: host 0 holds a connection to every rank of the job";

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    if (files.rlim_max < 256)
        report_add(r, FAILS, "open files", next, "at most %llu", (unsigned long long)files.rlim_max);
    else
        report_add(r, files.rlim_max < 4096 ? WARN : FINE, "open files", files.rlim_max < 4096 ? next : NULL,
                   "%llu, and %llu for who asks, as the launcher does", (unsigned long long)files.rlim_cur,
                   (unsigned long long)files.rlim_max);
}

static void look_processes(report *r)
{
    struct rlimit processes;
    long long group = -1;

    if (getrlimit(RLIMIT_NPROC, &processes) != 0)
        return;
    proc_numbers("/sys/fs/cgroup/pids.max", &group, 1);
    if (processes.rlim_cur == RLIM_INFINITY && group < 0)
        report_add(r, FINE, "processes", NULL, "no limit");
    else
        report_add(r, processes.rlim_cur < 64 || (group >= 0 && group < 64) ? WARN : FINE, "processes", NULL,
                   "at most %lld for this user, %lld in the control group (-1: any); threads count, and a rank has several",
                   processes.rlim_cur == RLIM_INFINITY ? -1LL : (long long)processes.rlim_cur, group);
}

static void look_locked(report *r)
{
    struct rlimit locked;

    if (getrlimit(RLIMIT_MEMLOCK, &locked) != 0)
        return;
    if (locked.rlim_cur == RLIM_INFINITY)
        report_add(r, FINE, "locked memory", NULL, "no limit");
    else
        report_add(r, NOTE, "locked memory", NULL, "at most %.1f MiB: enough here, too little for network cards that write into memory",
                   (double)locked.rlim_cur / MIB);
}

/* Who else decides what may be done. */
static void look_container(report *r)
{
    char kind[64] = "", map[128] = "";
    const char *told = getenv("container");
    long long seccomp = proc_value("/proc/self/status", "Seccomp");

    if (access("/.dockerenv", F_OK) == 0)
        snprintf(kind, sizeof kind, "Docker");
    else if (access("/run/.containerenv", F_OK) == 0)
        snprintf(kind, sizeof kind, "Podman");
    else if (getenv("KUBERNETES_SERVICE_HOST") != NULL)
        snprintf(kind, sizeof kind, "Kubernetes");
    else if (told != NULL)
        snprintf(kind, sizeof kind, "%.40s", told);
    proc_line("/proc/self/uid_map", map, sizeof map);
    report_add(r, kind[0] != '\0' ? NOTE : FINE, "container", NULL, "%s; %s; %s", kind[0] != '\0' ? kind : "none seen",
               strstr(map, "4294967295") != NULL ? "users are the host's" : "a user namespace",
               seccomp > 0 ? "system calls are filtered" : "system calls are not filtered");
}

void doctor_machine(report *r)
{
    look_kernel(r);
    look_cores(r);
    look_clock(r);
    look_memory(r);
    look_pages(r);
    try_memfd(r);
    look_dev_shm(r);
    try_reading(r);
    try_calls(r);
    look_files(r);
    look_processes(r);
    look_locked(r);
    look_container(r);
}
