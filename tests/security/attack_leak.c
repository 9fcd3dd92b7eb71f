/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attack_leak.c - the secret is looked for where others may come to look: arguments, environment, log, and all memory that
 * a core of a rank or of the launcher would have, as bytes and as digits. That it is found in the file shows that the
 * search finds. */
#include "attacks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEX = 2 * TTI_SECRET_BYTES, BLOCK = 1 << 20, SOME_BYTES = 12 /* of the key: less may be there by chance */ };

typedef struct wanted {
    uint8_t key[TTI_SECRET_BYTES];
    char    hex[HEX + 1];
} wanted;

static wanted wanted_of(const job *j)
{
    wanted w;
    int    i;

    memcpy(w.key, j->key, sizeof w.key);
    for (i = 0; i < TTI_SECRET_BYTES; i++)
        snprintf(w.hex + 2 * i, 3, "%02x", j->key[i]);
    return w;
}

/* Parts of it count: a block may end in the middle. */
static bool is_in(const wanted *w, const void *data, size_t bytes)
{
    int at;

    for (at = 0; at + SOME_BYTES <= TTI_SECRET_BYTES; at += SOME_BYTES / 2)
        if (memmem(data, bytes, w->key + at, SOME_BYTES) != NULL || memmem(data, bytes, w->hex + 2 * at, 2 * SOME_BYTES) != NULL)
            return true;
    return false;
}

static bool is_in_file(const wanted *w, const char *path, size_t *bytes_out)
{
    char  *block = malloc(BLOCK);
    int    fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t have = 0;
    bool   found = false;
    ssize_t n;

    while (block != NULL && fd >= 0 && !found && (n = read(fd, block + have, BLOCK - have)) > 0) {
        *bytes_out += (size_t)n;
        have += (size_t)n;
        found = is_in(w, block, have);
        if (have == BLOCK) {
            memmove(block, block + BLOCK - HEX, HEX);
            have = HEX;
        }
    }
    if (fd >= 0)
        close(fd);
    free(block);
    return found;
}

/* What cannot be read is not searched, and not shown to be free of it: *bytes_out grows, or that is a failure. */
static bool is_free_of_it(const wanted *w, const char *path, size_t *bytes_out, outcome *why_out)
{
    const size_t before = *bytes_out;

    if (is_in_file(w, path, bytes_out))
        *why_out = failed("it is in %.100s", path);
    else if (*bytes_out == before)
        *why_out = failed("nothing could be read of %.100s", path);
    else
        return true;
    return false;
}

static outcome arguments_and_logs(const job *j, bool at_length)
{
    static const char *const places[] = { "cmdline", "environ" };
    const wanted             w = wanted_of(j);
    char                     path[PATH_BYTES];
    size_t                   bytes = 0;
    outcome                  why;
    int                      i, k;

    (void)at_length;
    if (!is_in_file(&w, j->secret_file, &bytes))
        return failed("the search does not find it in its own file");
    bytes = 0;
    for (i = -1; i < RANKS; i++)
        for (k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "/proc/%ld/%s", (long)(i < 0 ? j->launcher : j->ranks[i]), places[k]);
            if (!is_free_of_it(&w, path, &bytes, &why))
                return why;
        }
    snprintf(path, sizeof path, "%.200s/log", j->dir);
    return is_free_of_it(&w, path, &bytes, &why) ? held("not in %zu bytes of them", bytes) : why;
}

/* Whether a core has this mapping; the lines of smaps behind its first one. */
static bool is_dumped(FILE *maps, char *line, size_t bytes)
{
    bool dumped = true;

    while (fgets(line, (int)bytes, maps) != NULL)
        if (strncmp(line, "VmFlags:", 8) == 0) {
            dumped = strstr(line, " dd") == NULL && strstr(line, " io") == NULL;
            break;
        }
    return dumped;
}

static bool is_in_range(const wanted *w, int memory, uint64_t begin, uint64_t end, char *block, size_t *bytes_out)
{
    uint64_t at;
    ssize_t  n;

    for (at = begin; at < end; at += BLOCK - HEX) {
        n = pread(memory, block, end - at < BLOCK ? end - at : BLOCK, (off_t)at);
        if (n <= 0)
            return false;
        *bytes_out += (size_t)n;
        if (is_in(w, block, (size_t)n))
            return true;
    }
    return false;
}

static bool is_in_core(const wanted *w, pid_t pid, size_t *bytes_out)
{
    char          path[64], line[512];
    char         *block = malloc(BLOCK);
    FILE         *maps;
    unsigned long begin, end;
    char          rights[8];
    bool          found = false;
    int           memory;

    snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%ld/smaps", (long)pid);
    maps = fopen(path, "re");
    while (block != NULL && memory >= 0 && maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        const bool shared = strstr(line, "memfd:") != NULL; /* sparse, and large */

        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3)
            continue;
        if (is_dumped(maps, line, sizeof line) && rights[0] == 'r' && rights[1] == 'w' && !shared)
            found = is_in_range(w, memory, begin, end, block, bytes_out);
    }
    if (maps != NULL)
        fclose(maps);
    if (memory >= 0)
        close(memory);
    free(block);
    return found;
}

static outcome cores(const job *j, bool at_length)
{
    const wanted w = wanted_of(j);
    size_t       bytes = 0, own = 0, before;
    int          i;

    (void)at_length;
    if (!is_in_core(&w, getpid(), &own))
        return failed("the search does not find it in this process, which has it");
    for (i = -1; i < RANKS; i++) {
        before = bytes;
        if (is_in_core(&w, i < 0 ? j->launcher : j->ranks[i], &bytes))
            return failed("it is in the memory of %s that a core would have", i < 0 ? "the launcher" : "a rank");
        if (bytes == before)
            return failed("nothing could be read of the memory of %s", i < 0 ? "the launcher" : "a rank");
    }
    return held("not in %zu MiB of a launcher and %d ranks", bytes >> 20, RANKS);
}

/* ---- what the kernel writes ---------------------------------------------------------------------------- */

/* All that there is of a core: most of its memory was never touched. */
static bool is_in_core_file(const wanted *w, const char *path, size_t *bytes_out)
{
    char *block = malloc(BLOCK);
    int   fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t at = 0, end;
    bool  found = false;

    while (block != NULL && fd >= 0 && !found && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
        end = lseek(fd, at, SEEK_HOLE);
        if (end <= at)
            break;
        found = is_in_range(w, fd, (uint64_t)at, (uint64_t)end, block, bytes_out);
        at = end;
    }
    if (fd >= 0)
        close(fd);
    free(block);
    return found;
}

/* Whether the kernel writes cores into the folder of who ends. */
static bool are_cores_here(void)
{
    FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
    char  pattern[256] = "|";

    if (file != NULL && fgets(pattern, sizeof pattern, file) == NULL)
        pattern[0] = '|';
    if (file != NULL)
        fclose(file);
    return strncmp(pattern, "core", 4) == 0 && strchr(pattern, '/') == NULL;
}

/* Of a process that has the secret as it is. */
static bool is_found_in_own_core(const wanted *w, const char *dir)
{
    const struct rlimit whole = { RLIM_INFINITY, RLIM_INFINITY };
    char                path[PATH_BYTES];
    size_t              bytes = 0;
    bool                found;
    pid_t               pid = fork();

    if (pid == 0) {
        if (chdir(dir) == 0 && setrlimit(RLIMIT_CORE, &whole) == 0)
            abort();
        _exit(1);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid || !find_core(dir, path))
        return false;
    found = is_in_core_file(w, path, &bytes);
    unlink(path);
    return found;
}

/* Another job, a rank of which crashes. */
static outcome kernels_core(const job *j, bool at_length)
{
    job     other = { .tutti = j->tutti, .self = j->self, .dumps = true };
    char    core[PATH_BYTES] = "";
    size_t  bytes = 0;
    bool    control, found;
    wanted  w;

    (void)at_length;
    if (!are_cores_here())
        return skipped("the kernel sends cores elsewhere (core_pattern)");
    if (!job_start(&other, 0))
        return failed("a job for it does not start");
    w = wanted_of(&other);
    control = is_found_in_own_core(&w, other.dir);
    job_crash(&other, 1, core);
    found = core[0] != '\0' && is_in_core_file(&w, core, &bytes);
    job_remove(&other);
    if (!control || core[0] == '\0' || bytes == 0)
        return skipped("no core was written, or none that could be searched");
    return found ? failed("it is in the core") : held("not in the %zu MiB of a rank's core; found in that of a process which has it", bytes >> 20);
}

const attack leak_attacks[] = {
    { "secret in arguments, logs", "/proc/*/cmdline and environ, and the log at level debug", "not found", arguments_and_logs, false },
    { "secret in a kernel's core", "a rank of another job is ended by SIGABRT, and its core searched", "not found", kernels_core, true },
    { "secret in a core", "all memory of launcher and ranks that a core would have", "not found", cores, false },
};
const size_t n_leak_attacks = sizeof leak_attacks / sizeof leak_attacks[0];
