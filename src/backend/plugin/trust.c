/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trust.c - whose plug-ins are loaded: what is loaded runs with all that this user may do.
 *
 * True    The path that is looked at has no links left, and is the one that is loaded; if the file was named by a link, that is
 *         root's or this user's, too. Nobody but root and this user can
 *         change what it leads to: the file and each directory on its way belong to one of the two, and others may
 *         not write to them. A directory like /tmp, in which each may replace only what is his, is fine on the way.
 *         Root can do anything anyway, so between the look and the load nobody can come who could not before. */
#include "backend/plugin/search.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tutti/private.h>

enum {
    TEXT_BYTES = 4096, /* of what is known of a user or a group; more members than that are not one */
    WHOSE_BYTES = PATH_MAX + 16
};

/* Whether a group is this user's own, as many systems make one for each user: the user's primary group, with the user's name,
 * and nobody else is in it. What cannot be found out counts as no. */
static bool is_private_group(gid_t gid)
{
    char           user_text[TEXT_BYTES], group_text[TEXT_BYTES];
    struct passwd  user, *found_user = NULL;
    struct group   group, *found_group = NULL;
    char         **member;

    if (getpwuid_r(geteuid(), &user, user_text, sizeof user_text, &found_user) != 0 || found_user == NULL || user.pw_gid != gid)
        return false;
    if (getgrgid_r(gid, &group, group_text, sizeof group_text, &found_group) != 0 || found_group == NULL)
        return false;
    for (member = group.gr_mem; *member != NULL; member++)
        if (strcmp(*member, user.pw_name) != 0)
            return false;
    return strcmp(group.gr_name, user.pw_name) == 0;
}

/* Root's group is root's. */
static bool others_may_write(const struct stat *st)
{
    if (S_ISLNK(st->st_mode) || (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0))
        return false;
    if ((st->st_mode & S_IWOTH) != 0)
        return true;
    return (st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 && !is_private_group(st->st_gid);
}

/* whose: of what path is a part, for words. */
static tutti_status check(const char *whose, const char *path)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return tti_fail_errno_as(TUTTI_E_BACKEND, errno, "%s is not loaded: cannot look at '%s'", whose, path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return tti_fail(TUTTI_E_AUTH,
                        "%s is not loaded: '%s' belongs to user %ld, neither to user %ld nor to root\n  next: copy "
                        "the plug-in to a directory of your own",
                        whose, path, (long)st.st_uid, (long)geteuid());
    if (others_may_write(&st))
        return tti_fail(TUTTI_E_AUTH, "%s is not loaded: '%s' has mode %04o, so others may write to it\n  next: chmod go-w '%s'",
                        whose, path, (unsigned)(st.st_mode & 07777), path);
    return TUTTI_OK;
}

/* path itself, which may be a link, and then what it leads to, without links, with each directory on its way. */
static tutti_status check_way(const char *whose, const char *path, const char *real)
{
    char         part[PATH_MAX];
    size_t       end;
    tutti_status st = check(whose, path);

    if (st == TUTTI_OK)
        st = check(whose, "/");
    for (end = 1; st == TUTTI_OK && real[end - 1] != '\0'; end++) {
        if (real[end] != '/' && real[end] != '\0')
            continue;
        memcpy(part, real, end);
        part[end] = '\0';
        st = check(whose, part);
    }
    return st;
}

static tutti_status check_kind(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return tti_fail(TUTTI_E_AUTH, "the plug-in '%s' is not loaded: it is not a regular file\n"
                                      "  next: put the plug-in itself there", path);
    return TUTTI_OK;
}

tutti_status tti_plugin_trust(const char *path, char real_out[PATH_MAX])
{
    char         whose[WHOSE_BYTES];
    tutti_status st;

    if (realpath(path, real_out) == NULL)
        return tti_fail_errno_as(TUTTI_E_BACKEND, errno, "cannot look at the plug-in '%s'", path);
    snprintf(whose, sizeof whose, "the plug-in '%s'", real_out);
    st = check_way(whose, path, real_out);
    return st == TUTTI_OK ? check_kind(real_out) : st;
}

tutti_status tti_plugin_trust_directory(const char *path)
{
    char real[PATH_MAX], whose[WHOSE_BYTES];

    if (realpath(path, real) == NULL)
        return TUTTI_OK;
    snprintf(whose, sizeof whose, "a plug-in of '%s'", real);
    return check_way(whose, path, real);
}
