/* SPDX-License-Identifier: BSD-3-Clause
 *
 * own_file.c - opening files that nobody else may have put in our way.
 *
 * True    What is checked is what was opened: owner, kind and mode are asked of the descriptor. Only whose a link is can be
 *         asked of its name alone; in a folder where others cannot replace it that is enough, and elsewhere the checks of
 *         the descriptor are left. */
#include "wire/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>

static bool is_own_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0);
}

static tutti_status check(int fd, const char *path, tti_own_rule rule, const char *what)
{
    const unsigned closed = rule == TTI_OWN_PRIVATE ? 077 : 022;
    struct stat    st;

    if (fstat(fd, &st) != 0)
        return tti_fail_errno_as(TUTTI_E_IO, errno, "cannot look at %s '%s'", what, path);
    if (!S_ISREG(st.st_mode))
        return tti_fail(rule == TTI_OWN_PRIVATE ? TUTTI_E_AUTH : TUTTI_E_IO, "%s '%s' is %s\n  next: %s", what, path,
                        S_ISDIR(st.st_mode) ? "a folder" : "not a regular file",
                        S_ISDIR(st.st_mode) ? "name a file in it" : "name a file on a disk, or in memory");
    if (rule == TTI_OWN_ANYBODY)
        return TUTTI_OK;
    if (st.st_uid != geteuid() && !(rule == TTI_OWN_GIVEN && st.st_uid == 0))
        return tti_fail(TUTTI_E_AUTH, "%s '%s' belongs to user %ld, not to user %ld\n  next: use a copy that is this user's own",
                        what, path, (long)st.st_uid, (long)geteuid());
    if ((st.st_mode & closed) != 0)
        return tti_fail(TUTTI_E_AUTH, "%s '%s' has mode %04o: others may %s it\n  next: chmod 600 '%s'", what, path,
                        (unsigned)(st.st_mode & 07777), rule == TTI_OWN_PRIVATE ? "touch" : "write to", path);
    return TUTTI_OK;
}

static const char *step_for(int err, int flags)
{
    switch (err) {
    case ENOENT:
    case ENOTDIR: return (flags & O_CREAT) != 0 ? "make the folder that it is to lie in, or name another one"
                                                : "check its path; each host needs the file, or a copy";
    case EISDIR: return "name a file in it";
    case EACCES:
    case EPERM: return "let this user open it, and enter the folders above it, or name another file";
    default: return "see whether this user can open it elsewhere, as with 'cat'";
    }
}

static tutti_status fail_to_open(int err, int flags, const char *what, const char *path)
{
    char text[128];

    return tti_fail(TUTTI_E_IO, "cannot open %s '%s': %s\n  next: %s", what, path, strerror_r(err, text, sizeof text),
                    step_for(err, flags));
}

tutti_status tti_own_file_open(const char *path, int flags, unsigned mode, tti_own_rule rule, const char *what,
                               int *fd_out)
{
    /* Without O_NONBLOCK the open of a fifo would wait for the other end. */
    const int    with = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int          fd = open(path, with | O_NOFOLLOW, mode);
    tutti_status st;

    if (fd < 0 && errno == ELOOP) {
        if (rule != TTI_OWN_ANYBODY && !is_own_link(path))
            return tti_fail(TUTTI_E_AUTH, "%s '%s' is a symbolic link of somebody else's\n  next: name the file itself",
                            what, path);
        fd = open(path, with, mode);
    }
    if (fd < 0)
        return fail_to_open(errno, flags, what, path);
    st = check(fd, path, rule, what);
    if (st != TUTTI_OK)
        close(fd);
    else
        *fd_out = fd;
    return st;
}
