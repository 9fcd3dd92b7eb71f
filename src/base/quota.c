/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quota.c - processor time that control groups leave to a process.
 *
 * How     A quota is so much time of all cores in each period. Version 2 has "max 100000" or "150000 100000" in
 *         cpu.max of each group, version 1 two files in the tree of its cpu controller. A group is also bound by
 *         those around it, so the walk goes up to the mount. In a container the path may not be there: then
 *         only the groups above it that are. */
#include "base/quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_PATH_MAX = 1024 };

/* Up to n numbers of the file at dir/name; "max" is one that ends them. */
static int read_numbers(const char *dir, const char *name, long long *out, int n)
{
    char  path[FILE_PATH_MAX + 64];
    FILE *file;
    int   got = 0;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (got < n && fscanf(file, "%lld", &out[got]) == 1)
        got++;
    fclose(file);
    return got;
}

static uint64_t whole_cores(long long quota, long long period)
{
    return quota <= 0 || period <= 0 ? 0 : (uint64_t)((quota + period - 1) / period);
}

static uint64_t tighter(uint64_t a, uint64_t b)
{
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

/* Of the group that dir is, either version. */
static uint64_t quota_at(const char *dir)
{
    long long v2[2], quota, period;
    uint64_t  cores = 0;

    if (read_numbers(dir, "cpu.max", v2, 2) == 2)
        cores = whole_cores(v2[0], v2[1]);
    if (read_numbers(dir, "cpu.cfs_quota_us", &quota, 1) == 1 &&
        read_numbers(dir, "cpu.cfs_period_us", &period, 1) == 1)
        cores = tighter(cores, whole_cores(quota, period));
    return cores;
}

/* Of the group at path below root and of those around it. */
static uint64_t quota_above(const char *root, const char *path)
{
    char     dir[FILE_PATH_MAX];
    size_t   at_root;
    uint64_t cores = 0;
    char    *slash;

    if (snprintf(dir, sizeof dir, "%s%s", root, path) >= (int)sizeof dir)
        return 0;
    at_root = strlen(root);
    for (;;) {
        cores = tighter(cores, quota_at(dir));
        slash = strrchr(dir + at_root, '/');
        if (slash == NULL)
            return cores;
        *slash = '\0';
    }
}

/* Whether the comma-separated list has word. */
static bool has(const char *list, const char *word)
{
    const size_t length = strlen(word);
    const char  *at = list;

    while ((at = strstr(at, word)) != NULL) {
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
        at += length;
    }
    return false;
}

/* One line: "number:controllers:path"; version 2 has no controllers. */
static uint64_t quota_of_line(char *line, const char *mount)
{
    char     root[FILE_PATH_MAX];
    char    *list = strchr(line, ':');
    char    *path = list == NULL ? NULL : strchr(list + 1, ':');
    uint64_t cores;

    if (path == NULL)
        return 0;
    list++;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (*list == '\0') {
        cores = quota_above(mount, path);
        snprintf(root, sizeof root, "%s/unified", mount); /* beside version 1 */
        return tighter(cores, quota_above(root, path));
    }
    if (!has(list, "cpu"))
        return 0;
    snprintf(root, sizeof root, "%s/%s", mount, list);
    cores = quota_above(root, path);
    snprintf(root, sizeof root, "%s/cpu", mount);
    return tighter(cores, quota_above(root, path));
}

uint64_t tti_cpu_quota(const char *membership, const char *mount)
{
    char     line[FILE_PATH_MAX];
    FILE    *file = fopen(membership, "re");
    uint64_t cores = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        cores = tighter(cores, quota_of_line(line, mount));
    fclose(file);
    return cores;
}
