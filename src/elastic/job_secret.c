/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_secret.c - makes and removes the file with a job's secret.
 *
 * How     XDG_RUNTIME_DIR, /run/user/UID, /dev/shm in this order, if they are file systems in memory: a
 *         secret should not get onto a disk. TMPDIR or /tmp is the last resort, and said to be.
 * Left    Should launcher and keeper be killed at once, nobody is there to remove the directory. So a launcher holds a lock on its
 *         own, which goes with it, and the next one of this user removes those that nobody has locked and that are older than
 *         YOUNG_S: a younger one may be about to be locked.
 * True    The directory's name is unpredictable and made new, so nobody can have prepared it. The
 *         value is in this process's memory only while the file is written. */
#include "elastic/job_secret.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <tutti/private.h>
#include "base/port.h"

#define PREFIX "tutti-job-"

enum { SECRET_BYTES = 32, HEX_BYTES = 2 * SECRET_BYTES + 1, YOUNG_S = 60 };

static bool in_memory(const char *dir)
{
    struct statfs fs;

    return statfs(dir, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* ---- what others have left ---------------------------------------------------------------------- */

/* Whether dir is this user's, and its launcher is gone. */
static bool is_left_over(int dir)
{
    struct stat st;

    return fstat(dir, &st) == 0 && st.st_uid == geteuid() && time(NULL) - st.st_mtime > YOUNG_S &&
           flock(dir, LOCK_EX | LOCK_NB) == 0;
}

static void remove_left_over(int base, const char *name)
{
    const int dir = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return;
    if (is_left_over(dir)) {
        unlinkat(dir, "secret", 0);
        unlinkat(base, name, AT_REMOVEDIR);
    }
    close(dir);
}

static void sweep(const char *base)
{
    DIR *dir = opendir(base);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0)
            remove_left_over(dirfd(dir), entry->d_name);
    if (dir != NULL)
        closedir(dir);
}

/* ---- our own ------------------------------------------------------------------------------------ */

/* Without a lock, where the file system has none, it is only less certain to go. */
static void lock_dir(tti_job_secret *secret)
{
    const int dir = open(secret->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir > 0)
        (void)flock(dir, LOCK_EX | LOCK_NB);
    secret->lock = dir > 0 ? dir : 0;
}

static bool make_dir(const char *base, tti_job_secret *secret)
{
    int n;

    if (base == NULL)
        return false;
    n = snprintf(secret->dir, sizeof secret->dir, "%s/" PREFIX "XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof secret->dir - sizeof "/secret") {
        errno = ENAMETOOLONG;
        return false;
    }
    sweep(base);
    if (mkdtemp(secret->dir) == NULL)
        return false;
    lock_dir(secret);
    return true;
}

static tutti_status find_dir(tti_job_secret *secret)
{
    char run_user[64];
    const char *bases[] = { tti_env("XDG_RUNTIME_DIR"), run_user, "/dev/shm" };
    const char *last = tti_env("TMPDIR");
    size_t i;

    snprintf(run_user, sizeof run_user, "/run/user/%ld", (long)geteuid());
    for (i = 0; i < sizeof bases / sizeof bases[0]; i++)
        if (bases[i] != NULL && in_memory(bases[i]) && make_dir(bases[i], secret))
            return TUTTI_OK;
    if (!make_dir(last, secret)) {
        secret->dir[0] = '\0';
        return tti_fail_errno(errno, "cannot make a private directory in '%s' for the job's secret",
                              last);
    }
    if (!in_memory(last))
        tti_log(TTI_LOG_WARN,
                "no file system in memory can be written to: the job's secret lies in "
                "'%s', on a disk",
                last);
    return TUTTI_OK;
}

static void write_hex(const uint8_t *bytes, char text[HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    int i;

    for (i = 0; i < SECRET_BYTES; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[HEX_BYTES - 1] = '\n';
}

static tutti_status write_file(const char *path)
{
    tti_port *port = tti_port_system();
    uint8_t bytes[SECRET_BYTES];
    char text[HEX_BYTES];
    tutti_status st = TUTTI_OK;
    int fd;

    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return tti_fail_errno(errno, "cannot make the job's secret file '%s'", path);
    port->ops->random(port, bytes, sizeof bytes);
    write_hex(bytes, text);
    if (fchmod(fd, 0600) != 0 || write(fd, text, sizeof text) != (ssize_t)sizeof text)
        st = tti_fail_errno(errno, "cannot write the job's secret file '%s'", path);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(text, sizeof text);
    close(fd);
    return st;
}

tutti_status tti_job_secret_make(tti_job_secret *secret_out)
{
    tti_job_secret secret = { .dir = "" };
    tutti_status st = find_dir(&secret);

    if (st != TUTTI_OK)
        return st;
    snprintf(secret.file, sizeof secret.file, "%.*s/secret", TTI_JOB_PATH_MAX - 8, secret.dir);
    st = tti_keeper_start(secret.file, secret.dir, &secret.keeper);
    if (st == TUTTI_OK)
        st = write_file(secret.file);
    if (st == TUTTI_OK)
        *secret_out = secret;
    else
        tti_job_secret_remove(&secret);
    return st;
}

void tti_job_secret_remove(tti_job_secret *secret)
{
    tti_keeper_end(&secret->keeper);
    if (secret->file[0] != '\0') /* the keeper may have been killed, too */
        unlink(secret->file);
    if (secret->dir[0] != '\0')
        rmdir(secret->dir);
    if (secret->lock > 0)
        close(secret->lock);
    *secret = (tti_job_secret){ .dir = "" };
}
