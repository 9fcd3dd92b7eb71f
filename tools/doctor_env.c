/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor_env.c - `tutti doctor env`: the variables that are set, each and together.
 *
 * How     What a variable may be is decided by the code that reads it (tutti/host.h). Here stands what no reader can see
 *         alone: names that nobody reads, two names of one setting, places that contradict each other. */
#include "doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <tutti/backends.h>
#include <tutti/host.h>
#include <unistd.h>
#include "doctor_names.h"
#include "tool.h"

enum { NAME_BYTES = 128 };

static const char *get(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A variable's number, or -1. */
static long number_of(const char *name)
{
    const char *value = get(name);
    char *end = NULL;
    const long number = value != NULL ? strtol(value, &end, 10) : -1;

    return value != NULL && *end == '\0' ? number : -1;
}

static bool says(const char *name, const char *word)
{
    const char *value = get(name);

    return value != NULL && strcasecmp(value, word) == 0;
}

/* ---- each variable ----------------------------------------------------------------------------- */

static int tell_known(report *r)
{
    tutti_env_variable v;
    char words[DOCTOR_WORDS_MAX];
    const char *next;
    int n = 0;
    size_t i;

    for (i = 0; tutti_env_variable_at(i, &v); i++) {
        if (get(v.name) == NULL || strcmp(v.name, "PATH") == 0)
            continue;
        n++;
        if (tutti_env_check(v.name) == TUTTI_OK) {
            report_add(r, FINE, v.name, NULL, "= %.100s\n%s", get(v.name), v.what);
            continue;
        }
        next = doctor_split_error(words);
        report_add(r, FAILS, v.name, next, "= %.100s\n%s%s", get(v.name), words,
                   strcmp(v.name, "TUTTI_BACKEND") == 0 ? "\n(one that the program itself registers is not seen from here)" : "");
    }
    return n;
}

/* ---- backends and where they are ---------------------------------------------------------------- */

/* With a backend for each device one that is missing is told when memory of its device comes. */
static void tell_missing_backends(report *r)
{
    const char *backend = get("TUTTI_BACKEND"), *next;
    char words[DOCTOR_WORDS_MAX];

    if (backend == NULL || tutti_env_check("TUTTI_BACKEND") != TUTTI_OK || tutti_is_backend_available(backend))
        return;
    next = doctor_split_error(words);
    report_add(r, WARN, "TUTTI_BACKEND", next, "a call on memory of one of its devices will fail: %s", words);
}

/* The search goes on behind a directory that is not there. */
static void tell_missing_places(report *r)
{
    const char *paths = get("TUTTI_PLUGIN_PATH");
    char directory[PATH_MAX];
    struct stat st;
    size_t n;

    for (; paths != NULL && *paths != '\0'; paths += n + (paths[n] == ':')) {
        n = strcspn(paths, ":");
        if (n == 0 || paths[0] != '/' || n >= sizeof directory)
            continue;
        snprintf(directory, sizeof directory, "%.*s", (int)n, paths);
        if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode))
            report_add(r, WARN, "TUTTI_PLUGIN_PATH", NULL, "has '%.200s', which is no directory here", directory);
    }
}

/* ---- where dumps are to go ---------------------------------------------------------------------- */

/* Of the variables that name them the first that is set counts. It is the beginning of names, so its folder has to be there; a rank
 * would find that out when it has something to write. */
static void tell_missing_folder(report *r)
{
    static const char *const names[] = { "TUTTI_TRACE_FILE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE" };
    char folder[PATH_MAX];
    const char *prefix, *slash;
    struct stat st;
    size_t i = 0;

    while (i < sizeof names / sizeof names[0] - 1 && get(names[i]) == NULL)
        i++;
    prefix = get(names[i]);
    slash = prefix != NULL ? strrchr(prefix, '/') : NULL;
    if (prefix == NULL || (slash != NULL && (size_t)(slash - prefix) >= sizeof folder))
        return;
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - prefix) + 1 : 1, slash != NULL ? prefix : ".");
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
        report_add(r, WARN, names[i], "make it on all hosts, before the job starts", "'%.200s' is no directory here: nothing can be dumped",
                   folder);
    else if (access(folder, W_OK | X_OK) != 0)
        report_add(r, WARN, names[i], "name another one, or chmod u+wx", "'%.200s' may not be written to: nothing can be dumped", folder);
}

/* ---- names that nobody reads -------------------------------------------------------------------- */

/* Names that others read, and a user of torch may expect to be read. */
static bool is_others(const char *entry)
{
    static const char *const starts[] = { "TORCH_NCCL_", "NCCL_", "GLOO_", "TORCH_GLOO_", "TORCH_FR_", "UCX_" };
    size_t i;

    for (i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncmp(entry, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static bool is_known(const char *name)
{
    tutti_env_variable v;
    size_t i;

    for (i = 0; tutti_env_variable_at(i, &v); i++)
        if (strcmp(v.name, name) == 0)
            return true;
    return false;
}

static void tell_unknown(report *r)
{
    char name[NAME_BYTES], next[NAME_BYTES + 32];
    const char *near;
    char **entry;

    for (entry = environ; entry != NULL && *entry != NULL; entry++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
        if (is_known(name))
            continue;
        near = tutti_env_nearest(name);
        snprintf(next, sizeof next, "did you mean %s?", near != NULL ? near : "");
        if (strncmp(name, "TUTTI_", 6) == 0 && strncmp(name, "TUTTI_TEST_", 11) != 0)
            report_add(r, WARN, name, near != NULL ? next : "docs/env.md has all names", "is unknown and changes nothing");
        else if (is_others(name))
            report_add(r, NOTE, name, NULL, "is not read by tutti");
    }
}

/* ---- two names of one setting ------------------------------------------------------------------ */

static void tell_aliases(report *r)
{
    static const struct {
        const char *first, *second;
    } pairs[] = {
        { "TUTTI_LOG", "TORCH_CPP_LOG_LEVEL" },
        { "TUTTI_DEBUG", "TORCH_DISTRIBUTED_DEBUG" },
        { "TUTTI_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME" },
        { "TUTTI_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE" },
        { "TUTTI_TRACE_FILE", "TORCH_FR_DUMP_TEMP_FILE" },
    };
    size_t i;

    for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *a = get(pairs[i].first), *b = get(pairs[i].second);

        if (a != NULL && b != NULL && strcasecmp(a, b) != 0)
            report_add(r, WARN, pairs[i].first, "keep one of the two", "is %.60s and %s is %.60s: the first is taken", a,
                       pairs[i].second, b);
    }
    if (get("TUTTI_TRACE_SIGNAL") != NULL && get("TUTTI_TRACE_FILE") == NULL && get("TORCH_FR_DUMP_TEMP_FILE") == NULL &&
        get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE") == NULL)
        report_add(r, FAILS, "TUTTI_TRACE_SIGNAL", "set TUTTI_TRACE_FILE", "is set, and no file is named to save the recorder to");
    if (get("TUTTI_ALGO") != NULL && get("TUTTI_TUNE") != NULL)
        report_add(r, NOTE, "TUTTI_ALGO", NULL, "goes before TUTTI_TUNE for the operations that it names");
}

/* ---- who and where ----------------------------------------------------------------------------- */

static bool is_launched(void)
{
    static const char *const names[] = { "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK",
                                         "SLURM_PROCID", "PMI_RANK" };
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (get(names[i]) != NULL)
            return true;
    return false;
}

static bool launcher_serves(void)
{
    const char *agent = get("TORCHELASTIC_USE_AGENT_STORE");

    return agent != NULL && strcmp(agent, "True") == 0;
}

/* On rank 0 of a job that serves its own store: is the port free now? */
static void try_port(report *r, long number)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)number) };
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 && errno == EADDRINUSE)
        report_add(r, FAILS, "MASTER_PORT", "end who has it (ss -ltnp), or take another port",
                   "port %ld is taken now, and rank 0 is to serve the store there", number);
    close(fd);
}

/* An address, written as tutti_listen_address() does, that only this host's own processes reach. */
static bool is_loopback_text(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

/* A rank that listens where nobody else comes to, in a job whose store, or some of whose ranks, are elsewhere. */
static void check_listening(report *r, const char *master, const name_found *f)
{
    const char *variable = get("TUTTI_SOCKET_IFNAME") != NULL ? "TUTTI_SOCKET_IFNAME" : "GLOO_SOCKET_IFNAME";
    const long size = number_of("WORLD_SIZE"), local = number_of("LOCAL_WORLD_SIZE");
    char address[TUTTI_ADDRESS_MAX];

    if (get(variable) == NULL || get("TUTTI_ADVERTISE") != NULL || (f->own && !(local > 0 && size > local)))
        return;
    if (tutti_listen_address(master, address) == TUTTI_OK && is_loopback_text(address))
        report_add(r, FAILS, variable, "name the interface that leads to the other hosts, or unset it",
                   "= %.100s: this rank would listen at %s, and ranks of other hosts cannot reach that", get(variable), address);
}

static void check_master(report *r)
{
    const char *master = get("MASTER_ADDR");
    const long rank = number_of("RANK"), size = number_of("WORLD_SIZE"), local = number_of("LOCAL_WORLD_SIZE");
    name_found f;

    if (master == NULL)
        return;
    f = name_look(master);
    if (f.error != NULL)
        return; /* said of the variable itself */
    check_listening(r, master, &f);
    if (rank == 0 && !launcher_serves() && !f.own)
        report_add(r, FAILS, "MASTER_ADDR", "start rank 0 on that host, or name this one",
                   "'%.100s' means %s, which is no address of this host, and rank 0 is to serve the store there", master, f.first);
    else if (f.loopback && local > 0 && size > local && get("TUTTI_SECRET_FILE") == NULL)
        report_add(r, FAILS, "MASTER_ADDR", "name the host of rank 0 as the others reach it",
                   "'%.100s' means %s here, and ranks of other hosts cannot reach that", master, f.first);
    if (rank == 0 && !launcher_serves() && number_of("MASTER_PORT") > 0)
        try_port(r, number_of("MASTER_PORT"));
}

static void check_places(report *r)
{
    const long rank = number_of("RANK"), size = number_of("WORLD_SIZE");
    const long local = number_of("LOCAL_RANK"), locals = number_of("LOCAL_WORLD_SIZE");

    if (locals > 0 && local >= locals)
        report_add(r, FAILS, "LOCAL_RANK", "ranks of a host are 0 .. LOCAL_WORLD_SIZE-1", "is %ld, and LOCAL_WORLD_SIZE is %ld", local,
                   locals);
    if (size > 0 && locals > size)
        report_add(r, FAILS, "LOCAL_WORLD_SIZE", NULL, "is %ld, and WORLD_SIZE is only %ld", locals, size);
    if (local >= 0 && rank >= 0 && local > rank)
        report_add(r, WARN, "LOCAL_RANK", NULL, "is %ld, above RANK %ld: ranks of a host are counted from its lowest", local, rank);
    if (size > 0 && locals > 0 && size > locals && get("TUTTI_SECRET_FILE") == NULL && !says("TUTTI_AUTH", "none") &&
        (!launcher_serves() || says("TUTTI_AGENT_STORE", "1")))
        report_add(r, FAILS, "TUTTI_SECRET_FILE", "make a file of mode 0600 with 'openssl rand -hex 32', the same on all hosts",
                   "is not set, and the job has ranks on other hosts: nobody gets in beyond loopback without a secret");
    if (locals > 1 && get("OMP_NUM_THREADS") == NULL)
        report_add(r, NOTE, "OMP_NUM_THREADS", NULL, "is not set: the BLAS of each of %ld ranks starts a thread for each core", locals);
}

static void tell_who(report *r)
{
    char words[DOCTOR_WORDS_MAX];
    const char *next;

    if (!is_launched()) {
        report_add(r, NOTE, "who", "start it with tutti run", "nothing says which rank this process is");
        return;
    }
    if (tutti_env_check(NULL) != TUTTI_OK) {
        next = doctor_split_error(words);
        report_add(r, FAILS, "who", next, "%s", words);
    } else if (get("RANK") != NULL) {
        report_add(r, FINE, "who", NULL, "rank %s of %s, store at %s port %s%s", get("RANK"), get("WORLD_SIZE"),
                   get("MASTER_ADDR") != NULL ? get("MASTER_ADDR") : "?", get("MASTER_PORT") != NULL ? get("MASTER_PORT") : "?",
                   launcher_serves() ? ", which the launcher serves" : "");
    } else {
        report_add(r, FINE, "who", NULL, "a scheduler tells rank, size and place");
    }
    check_places(r);
    check_master(r);
}

int doctor_env(int argc, char **argv)
{
    bool json = false, help = false;
    report r;

    if (!doctor_read_options("tutti doctor env", argc, argv, &json, &help))
        return TOOL_USAGE;
    if (help) {
        printf("usage: tutti doctor env [--json]\n\n"
               "Looks at the variables of its own environment: run it as the program would be run, also\n"
               "    tutti run --nproc-per-node 2 tutti doctor env\n");
        return EXIT_SUCCESS;
    }
    r = report_begin("env", json);
    if (tell_known(&r) == 0)
        report_add(&r, NOTE, "variables", NULL, "none that tutti reads is set");
    tell_missing_backends(&r);
    tell_missing_places(&r);
    tell_missing_folder(&r);
    tell_unknown(&r);
    tell_aliases(&r);
    tell_who(&r);
    return report_end(&r);
}
