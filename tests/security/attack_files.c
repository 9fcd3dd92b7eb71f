/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attack_files.c - another user of the host: files and links in our way, connections through loopback, memory without a
 * name. What needs another user is tried by root only. */
#include "attacks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/store.h>

enum { SOMEBODY = 12345, REFUSED_MS = 1500, TAKEN_MS = 20000 };

static const char victim_text[] = "not a store\n";

typedef struct place {
    char dir[PATH_BYTES], file[PATH_BYTES], link[PATH_BYTES];
} place;

static bool make_place(const job *j, place *p)
{
    int fd;

    snprintf(p->dir, sizeof p->dir, "%.200s/files", j->dir);
    snprintf(p->file, sizeof p->file, "%.200s/files/file", j->dir);
    snprintf(p->link, sizeof p->link, "%.200s/files/link", j->dir);
    if (mkdir(p->dir, 0700) != 0)
        return false;
    fd = open(p->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, victim_text, strlen(victim_text)) != (ssize_t)strlen(victim_text))
        return false;
    close(fd);
    return symlink("file", p->link) == 0;
}

static void remove_place(const place *p)
{
    unlink(p->file);
    unlink(p->link);
    rmdir(p->dir);
}

static bool is_untouched(const place *p)
{
    char  text[64] = "";
    FILE *file = fopen(p->file, "re");
    bool  same = file != NULL && fgets(text, sizeof text, file) != NULL && strcmp(text, victim_text) == 0;

    if (file != NULL)
        fclose(file);
    return same;
}

static bool store_is_refused(const char *path)
{
    tutti_store *store = NULL;
    tutti_status st = tutti_file_store_open(path, 2, &store);

    tutti_store_close(store);
    return st == TUTTI_E_AUTH;
}

static bool secret_is_refused(const char *path)
{
    tti_secret   secret = { .present = false };
    tutti_status st = tti_secret_load(path, &secret);

    return st == TUTTI_E_AUTH && !secret.present;
}

static outcome links(const job *j, bool at_length)
{
    place p;
    bool  store, secret, untouched;

    (void)at_length;
    if (geteuid() != 0)
        return skipped("needs root, to be two users");
    if (!make_place(j, &p) || lchown(p.link, SOMEBODY, SOMEBODY) != 0)
        return failed("cannot make the link");
    store = store_is_refused(p.link);
    secret = secret_is_refused(p.link);
    untouched = is_untouched(&p);
    remove_place(&p);
    return store && secret && untouched ? held("refused; the file behind the link is as it was")
                                        : failed("store %d, secret %d, untouched %d", store, secret, untouched);
}

static outcome owners(const job *j, bool at_length)
{
    place p;
    bool  store, secret, open_store, open_secret;

    (void)at_length;
    if (geteuid() != 0)
        return skipped("needs root, to be two users");
    if (!make_place(j, &p))
        return failed("cannot make the file");
    open_store = chmod(p.file, 0662) == 0 && store_is_refused(p.file);
    open_secret = chmod(p.file, 0640) == 0 && secret_is_refused(p.file);
    store = chmod(p.file, 0600) == 0 && chown(p.file, SOMEBODY, SOMEBODY) == 0 && store_is_refused(p.file);
    secret = secret_is_refused(p.file);
    remove_place(&p);
    return store && secret && open_store && open_secret
               ? held("another's, and those that others may touch, are refused")
               : failed("another's: %d %d, open ones: %d %d", store, secret, open_store, open_secret);
}

/* ---- loopback --------------------------------------------------------------------------------------------- */

static bool open_plain(int tcp_port, int64_t patience_ms)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    bool                    in;

    options.host = "127.0.0.1";
    options.port = tcp_port;
    options.timeout_ms = patience_ms;
    in = tutti_tcp_store_open(&options, &store) == TUTTI_OK;
    tutti_store_close(store);
    return in;
}

/* A server without a secret in a process of user, until its parent ends it: its port, 0: none. */
static int serve_as(uid_t user, pid_t *child_out)
{
    tutti_store_server *server = NULL;
    int                 ends[2], tcp_port = 0;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return 0;
    *child_out = fork();
    if (*child_out == 0) {
        if (setuid(user) == 0 && tutti_store_server_start(NULL, &server) == TUTTI_OK)
            tcp_port = tutti_store_server_port(server);
        if (write(ends[1], &tcp_port, sizeof tcp_port) == sizeof tcp_port)
            pause();
        _exit(0);
    }
    close(ends[1]);
    if (*child_out < 0 || read(ends[0], &tcp_port, sizeof tcp_port) != sizeof tcp_port)
        tcp_port = 0;
    close(ends[0]);
    return tcp_port;
}

/* Whether a process of user gets into what is served at a port. */
static bool gets_in_as(uid_t user, int tcp_port, int64_t patience_ms)
{
    int   status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(setuid(user) == 0 && open_plain(tcp_port, patience_ms) ? 1 : 0);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static outcome other_users(const job *j, bool at_length)
{
    pid_t servers[2] = { 0, 0 };
    int   ours, theirs, i;
    bool  own, other, trap;

    (void)j, (void)at_length;
    if (geteuid() != 0)
        return skipped("needs root, to be two users");
    ours = serve_as(SOMEBODY, &servers[0]);
    theirs = serve_as(SOMEBODY + 1, &servers[1]);
    own = ours != 0 && gets_in_as(SOMEBODY, ours, TAKEN_MS);
    other = ours != 0 && gets_in_as(SOMEBODY + 1, ours, REFUSED_MS);
    trap = theirs != 0 && gets_in_as(SOMEBODY, theirs, REFUSED_MS);
    for (i = 0; i < 2; i++)
        if (servers[i] > 0) {
            kill(servers[i], SIGKILL);
            waitpid(servers[i], NULL, 0);
        }
    return own && !other && !trap ? held("its own user gets in; others do not, and nobody enters theirs")
                                  : failed("own %d, other %d, theirs %d", own, other, trap);
}

/* ---- memory ----------------------------------------------------------------------------------------------- */

/* What a process may do to memory of another one of the same user that it gets hold of: not make it smaller. */
static outcome shrink(const job *j, bool at_length)
{
    char           folder[64], path[128], target[128];
    struct dirent *entry;
    ssize_t        bytes;
    int            fd, n = 0, shrunk = 0;
    DIR           *dir;

    (void)at_length;
    snprintf(folder, sizeof folder, "/proc/%ld/fd", (long)j->ranks[0]);
    dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%.32s", folder, entry->d_name);
        bytes = readlink(path, target, sizeof target - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        if (strstr(target, "memfd:tutti") == NULL)
            continue;
        fd = open(path, O_RDWR | O_CLOEXEC);
        n++;
        shrunk += fd >= 0 && ftruncate(fd, 0) == 0;
        if (fd >= 0)
            close(fd);
    }
    if (dir != NULL)
        closedir(dir);
    return n > 0 && shrunk == 0 ? held("%d memories of a rank, none could be made smaller", n)
                                : failed("%d of %d memories were made smaller", shrunk, n);
}

/* Jobs of its own, for their numbers are spoiled; each run has other words, which SEED brings back. */
static outcome scribble(const job *j, bool at_length)
{
    char  self[PATH_BYTES] = "", path[PATH_BYTES + 32], worlds[16], seed[24];
    pid_t child;
    int   status = -1, null;

    (void)at_length;
    snprintf(worlds, sizeof worlds, "%d", j->n_worlds);
    snprintf(seed, sizeof seed, "%lld", (long long)now_ms());
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || strrchr(self, '/') == NULL)
        return failed("cannot find the program beside this one");
    strrchr(self, '/')[1] = '\0';
    snprintf(path, sizeof path, "%shostile_memory_test", self);
    child = fork();
    if (child == 0) {
        null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        setenv("SEED", seed, 1);
        execl(path, path, "--rounds", worlds, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return failed("cannot run %.100s", path);
    return status == 0 ? held("no rank died or hung, in %s worlds", worlds)
                       : failed("it ended with status %x: SEED=%s hostile_memory_test --rounds %s", (unsigned)status, seed, worlds);
}

const attack file_attacks[] = {
    { "links in our way", "another user's link to a file of ours", "refused", links, false },
    { "files of others", "store and secret files of another user, or open to others", "refused", owners, false },
    { "another user on loopback", "a job without a secret: its store, and one that waits for it", "refused", other_users, false },
    { "memory made smaller", "ftruncate() on all memory that a rank shares", "refused by the kernel", shrink, false },
    { "hostile shared memory", "random words in heaps of a job of its own", "no rank dies or hangs", scribble, false },
};
const size_t n_file_attacks = sizeof file_attacks / sizeof file_attacks[0];
