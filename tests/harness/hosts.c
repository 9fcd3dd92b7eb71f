/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts.c - makes the namespaces, and has the ip program join and address them. */
#include "harness/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINK_TRIES = 5000, LINK_PAUSE_MS = 1 };

const char *tt_hosts_addr(int host)
{
    static const char *const addr[TT_HOSTS] = { "10.77.0.1", "10.77.0.2" };

    return addr[host];
}

bool tt_hosts_enter(const tt_hosts *hosts, int host)
{
    return setns(hosts->fd[host], CLONE_NEWNET) == 0;
}

bool tt_hosts_show_devices(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("sysfs", "/sys", "sysfs", MS_RDONLY, NULL) == 0;
}

bool tt_hosts_can_show_devices(const tt_hosts *hosts)
{
    const pid_t child = fork();
    int         status = 0;

    if (child == 0)
        _exit(tt_hosts_enter(hosts, 0) && tt_hosts_show_devices() ? 0 : errno);
    if (child < 0)
        return false;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    return errno == 0;
}

void tt_hosts_close(tt_hosts *hosts)
{
    int i;

    if (hosts->relay > 0) {
        close(hosts->life_fd);
        while (waitpid(hosts->relay, NULL, 0) < 0 && errno == EINTR)
            ;
        hosts->relay = 0;
    }
    for (i = 0; i < hosts->n; i++)
        close(hosts->fd[i]);
    hosts->n = 0;
}

/* A fresh namespace; the caller stays where it is. -1: errno tells. */
static int namespace_create(int home)
{
    int fd = -1;
    int err;

    if (unshare(CLONE_NEWNET) != 0)
        return -1;
    fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    err = errno;
    if (setns(home, CLONE_NEWNET) != 0)
        _exit(1); /* tests must not go on in a world without interfaces */
    errno = err;
    return fd;
}

/* Become the program inside a host, reading from fd, its words going to words_fd. */
static _Noreturn void become(const tt_hosts *hosts, int host, const char *program, int batch_fd, int words_fd)
{
    static const char *const folders[] = { "/sbin", "/usr/sbin", "/bin", "/usr/bin" };
    const char *const        option = strcmp(program, "ip") == 0 ? "-batch" : "-f";
    char                     path[64];
    size_t                   i;

    if (!tt_hosts_enter(hosts, host) || dup2(batch_fd, 0) < 0 || dup2(words_fd, 1) < 0 ||
        dup2(words_fd, 2) < 0)
        _exit(126);
    for (i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], program);
        execl(path, program, option, "-", (char *)NULL);
    }
    dprintf(2, "there is no %s program (package %s)", program,
            strcmp(program, "ip") == 0 ? "iproute2" : "nftables");
    _exit(127);
}

/* Read what was said, its first line only. */
static void first_line(int fd, char *out, size_t bytes)
{
    size_t  used = 0;
    ssize_t got;

    while (used + 1 < bytes && (got = read(fd, out + used, bytes - used - 1)) > 0)
        used += (size_t)got;
    out[used] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static bool run_script(const tt_hosts *hosts, int host, const char *program, const char *batch, char *words,
                       size_t bytes)
{
    int   in[2] = { -1, -1 };
    int   out[2] = { -1, -1 };
    bool  told = false;
    int   status = -1;
    pid_t pid = -1;

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        goto out;
    pid = fork();
    if (pid == 0)
        become(hosts, host, program, in[0], out[1]);
    if (pid < 0)
        goto out;
    close(out[1]);
    out[1] = -1;
    told = write(in[1], batch, strlen(batch)) == (ssize_t)strlen(batch); /* far less than a pipe holds */
    close(in[1]);
    in[1] = -1;
    first_line(out[0], words, bytes);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;

out:
    if (pid < 0)
        snprintf(words, bytes, "cannot run %s: %s", program, strerror(errno));
    if (in[0] >= 0)
        close(in[0]);
    if (in[1] >= 0)
        close(in[1]);
    if (out[0] >= 0)
        close(out[0]);
    if (out[1] >= 0)
        close(out[1]);
    return told && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool tt_hosts_script(const tt_hosts *hosts, int host, const char *program, const char *script, char *words,
                     size_t bytes)
{
    char   text[2048];
    size_t used = 0;

    for (; *script != '\0' && used + 64 < sizeof text; script++) {
        const int which = script[0] == '@' && script[1] >= '0' && script[2] == '/' ? script[1] - '0' : -1;

        if (which < 0 || which >= hosts->n) {
            text[used++] = *script;
            continue;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "/proc/%ld/fd/%d", (long)getpid(),
                                 hosts->fd[which]);
        script += 2;
    }
    text[used] = '\0';
    if (*script == '\0')
        return run_script(hosts, host, program, text, words, bytes);
    snprintf(words, bytes, "the script is too long");
    return false;
}

/* Join the two namespaces and give both ends their address. */
static bool join(const tt_hosts *hosts, char *words, size_t bytes)
{
    char batch[512];
    int  i;

    if (!tt_hosts_script(hosts, 0, "ip", "link add tt0 type veth peer name tt0 netns @1/\n", words, bytes))
        return false;
    for (i = 0; i < hosts->n; i++) {
        snprintf(batch, sizeof batch,
                 "link set lo up\nlink set tt0 up\naddr add %s/24 dev tt0\n", tt_hosts_addr(i));
        if (!tt_hosts_script(hosts, i, "ip", batch, words, bytes))
            return false;
    }
    return true;
}

/* A socket of that host; -1: errno tells. */
static int socket_of(const tt_hosts *hosts, int host)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int fd = -1;

    if (home < 0)
        return -1;
    if (tt_hosts_enter(hosts, host)) {
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (setns(home, CLONE_NEWNET) != 0)
            _exit(1);
    }
    close(home);
    return fd;
}

/* A link that has just been set up loses packets until the kernel has seen its carrier; of a lost SYN a
 * connection hears after a second. */
static bool carries(const tt_hosts *hosts, int host, const char *device)
{
    struct ifreq link = { .ifr_name = "" };
    int          fd = socket_of(hosts, host);
    int          tries;

    snprintf(link.ifr_name, sizeof link.ifr_name, "%s", device);
    for (tries = 0; fd >= 0 && tries < LINK_TRIES; tries++) {
        if (ioctl(fd, SIOCGIFFLAGS, &link) == 0 && (link.ifr_flags & IFF_RUNNING) != 0)
            break;
        poll(NULL, 0, LINK_PAUSE_MS);
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0 && tries < LINK_TRIES;
}

bool tt_hosts_bare(int n, tt_hosts *hosts_out, char *reason_out, size_t reason_bytes)
{
    tt_hosts hosts = { 0 };
    bool     made = true;
    int      home;

    home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0) {
        snprintf(reason_out, reason_bytes, "no /proc/self/ns/net: %s", strerror(errno));
        return false;
    }
    while (made && hosts.n < n) {
        hosts.fd[hosts.n] = namespace_create(home);
        made = hosts.fd[hosts.n] >= 0;
        if (made)
            hosts.n++;
        else
            snprintf(reason_out, reason_bytes, "no network namespace to be had: %s", strerror(errno));
    }
    if (made)
        *hosts_out = hosts;
    else
        tt_hosts_close(&hosts);
    close(home);
    return made;
}

bool tt_hosts_open(tt_hosts *hosts_out, char *reason_out, size_t reason_bytes)
{
    tt_hosts hosts;
    char     words[160] = "";

    if (!tt_hosts_bare(TT_HOSTS, &hosts, reason_out, reason_bytes))
        return false;
    if (!join(&hosts, words, sizeof words)) {
        snprintf(reason_out, reason_bytes, "cannot join namespaces by veth: %s", words);
        tt_hosts_close(&hosts);
        return false;
    }
    if (!carries(&hosts, 0, "tt0") || !carries(&hosts, 1, "tt0")) {
        snprintf(reason_out, reason_bytes, "the veth between namespaces did not come up");
        tt_hosts_close(&hosts);
        return false;
    }
    *hosts_out = hosts;
    return true;
}

bool tt_hosts_join_again(const tt_hosts *hosts, char *reason_out, size_t reason_bytes)
{
    char batch[128], words[160] = "";
    bool joined = tt_hosts_script(hosts, 0, "ip", "link add tt1 type veth peer name tt1 netns @1/\n", words, sizeof words);
    int  i;

    for (i = 0; joined && i < hosts->n; i++) {
        snprintf(batch, sizeof batch, "link set tt1 up\naddr add 10.78.0.%d/24 dev tt1\n", i + 1);
        joined = tt_hosts_script(hosts, i, "ip", batch, words, sizeof words);
    }
    if (joined && carries(hosts, 0, "tt1") && carries(hosts, 1, "tt1"))
        return true;
    snprintf(reason_out, reason_bytes, "cannot join namespaces by a second veth: %s", joined ? "it did not come up" : words);
    return false;
}
