/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scratch.c - directories, ports, secrets, variables and tails for runs.
 *
 * Ports come from below the range that the kernel hands out by itself, so nobody gets one by accident;
 * an abstract Unix socket named after the port keeps other runs away and vanishes with the process. They end below 29500, which
 * launchers take by default, and with it tests that say nothing of a port. */
#include "harness/scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PORT_FIRST = 20000, PORTS = 9500, PORT_STEP = 7919, TAIL_BYTES = 16384 };

extern char **environ;

bool tt_dir_make(char *path_out, size_t bytes)
{
    const char *base = getenv("TMPDIR");
    int         n;

    if (base == NULL || base[0] != '/')
        base = "/tmp";
    n = snprintf(path_out, bytes, "%s/tutti-test-XXXXXX", base);
    return n > 0 && (size_t)n < bytes && mkdtemp(path_out) != NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

void tt_dir_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Whether a listener could have the port on every address. */
static bool port_is_free(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool               is_free;

    if (fd < 0)
        return false;
    is_free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return is_free;
}

/* The socket that says "this run has the port", or -1. */
static int port_lock(int port)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int                n;

    if (fd < 0)
        return -1;
    n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "tutti-test-port-%d", port);
    if (bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                                     (size_t)n)) == 0)
        return fd;
    close(fd);
    return -1;
}

int tt_port_take(int *lock_out)
{
    unsigned slot = (unsigned)getpid() * PORT_STEP;
    int      tries;

    for (tries = 0; tries < PORTS; tries++, slot += PORT_STEP) {
        const int port = PORT_FIRST + (int)(slot % PORTS);
        const int lock = port_lock(port);

        if (lock < 0)
            continue;
        if (port_is_free(port)) {
            *lock_out = lock;
            return port;
        }
        close(lock);
    }
    return 0;
}

void tt_port_give_back(int lock)
{
    if (lock >= 0)
        close(lock);
}

bool tt_secret_write(const char *path)
{
    uint8_t key[32];
    size_t  i;
    int     fd;

    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return false;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    for (i = 0; i < sizeof key; i++)
        dprintf(fd, "%02x", key[i]);
    return close(fd) == 0;
}

static bool is_of_a_job(const char *entry)
{
    static const char *const starts[] = {
        "RANK=", "WORLD_SIZE=", "LOCAL_", "GROUP_RANK=", "ROLE_", "MASTER_", "TORCHELASTIC_",
        "TORCH_", "TUTTI_", "SLURM_", "OMPI_", "PMI", "PMIX_",
        "MPI_", "GLOO_SOCKET_IFNAME=",
    };
    /* What is to be seen, and where libraries are, is said by whoever runs the tests. */
    static const char *const kept[] = { "TUTTI_LOG=", "TUTTI_NCCL_LIBRARY=", "TUTTI_CUDART_LIBRARY=" };
    size_t i;

    for (i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
            return false;
    for (i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (strncmp(entry, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

void tt_env_clear(void)
{
    char   name[256];
    size_t i = 0;

    while (environ != NULL && environ[i] != NULL) {
        const size_t length = strcspn(environ[i], "=");

        if (!is_of_a_job(environ[i]) || length >= sizeof name) {
            i++;
            continue;
        }
        memcpy(name, environ[i], length);
        name[length] = '\0';
        unsetenv(name); /* closes the gap: the same place holds the next one */
    }
}

/* The start of the last lines of text, which ends at end. */
static const char *last_lines(const char *text, const char *end, int lines)
{
    const char *at = end;

    if (at > text && at[-1] == '\n')
        at--;
    while (at > text) {
        if (at[-1] == '\n' && --lines == 0)
            break;
        at--;
    }
    return at;
}

void tt_tail(const char *path, const char *prefix, int lines)
{
    static char text[TAIL_BYTES + 1];
    const char *at;
    ssize_t     got;
    off_t       size;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    size = lseek(fd, 0, SEEK_END);
    got = pread(fd, text, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
    close(fd);
    if (got <= 0)
        return;
    text[got] = '\0';
    for (at = last_lines(text, text + got, lines); *at != '\0';) {
        const int length = (int)strcspn(at, "\n");

        fprintf(stderr, "%s%.*s\n", prefix, length, at);
        at += length + (at[length] == '\n');
    }
}
