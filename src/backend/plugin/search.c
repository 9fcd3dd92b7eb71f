/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search.c - where plug-ins are.
 *
 * How     The directories of TUTTI_PLUGIN_PATH in their order, then "tutti" beside libtutti.so. Where the library is part of a
 *         program it has no directory of its own: that of the build's prefix is taken.
 * True    A program with another user's rights (set-user-ID) does not read the variable: whoever starts it would choose
 *         what runs with those rights. */
#include "backend/plugin/search.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <tutti/private.h>

static const char here; /* lies in whatever the library is part of */

typedef struct search {
    const char *what, *name;
    char       *path; /* [PATH_MAX] */
    char       *places;
    size_t      used;  /* of places */
    bool        below; /* look at the folders of each directory, and note those that have the file; none is taken */
} search;

static void note(search *s, const char *directory, size_t length)
{
    if (s->used < TTI_PLACES_TEXT)
        s->used += (size_t)snprintf(s->places + s->used, TTI_PLACES_TEXT - s->used, "%s'%.*s'", s->used > 0 ? ", " : "",
                                    (int)length, directory);
}

/* Note the directory's folders that have the file, in the order of their names. One that cannot be looked at has none. */
static void look_below(search *s, const char *directory, size_t length)
{
    char            folder[PATH_MAX];
    struct dirent **entries = NULL;
    struct stat     st;
    int             n, i, used;

    snprintf(folder, sizeof folder, "%.*s", (int)length, directory);
    n = scandir(folder, &entries, NULL, alphasort);
    for (i = 0; i < n; i++) {
        used = snprintf(folder, sizeof folder, "%.*s/%s", (int)length, directory, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && used < PATH_MAX &&
            snprintf(s->path, PATH_MAX, "%s/tutti-%s-%s.so", folder, s->what, s->name) < PATH_MAX && stat(s->path, &st) == 0)
            note(s, folder, (size_t)used);
        free(entries[i]);
    }
    free(entries);
}

static tutti_status too_long(const char *directory, size_t length)
{
    return tti_fail(TUTTI_E_ARG, "a directory of plug-ins has a path of %zu bytes, %.32s...\n  next: give one that is shorter", length,
                    directory);
}

/* Whether the directory, of which length bytes count, has the file; it is noted where it was looked for. */
static tutti_status look(search *s, const char *directory, size_t length, bool *found_out)
{
    struct stat st;
    int         n = snprintf(s->path, PATH_MAX, "%.*s/tutti-%s-%s.so", (int)length, directory, s->what, s->name);

    if (n < 0 || n >= PATH_MAX)
        return too_long(directory, length);
    *found_out = !s->below && stat(s->path, &st) == 0;
    if (s->below)
        look_below(s, directory, length);
    else if (!*found_out)
        note(s, directory, length);
    return TUTTI_OK;
}

/* The directory at the beginning of paths; *length_out is 0 where there is none. */
static tutti_status read_directory(const char *paths, size_t *length_out)
{
    const size_t length = strcspn(paths, ":");

    if (length > 0 && paths[0] != '/')
        return tti_fail(TUTTI_E_ARG, "TUTTI_PLUGIN_PATH has '%.*s', which is not absolute\n  next: give directories that "
                        "begin with '/', with ':' between them", (int)(length < 256 ? length : 256), paths);
    *length_out = length;
    return TUTTI_OK;
}

static tutti_status look_in_variable(search *s, const char *paths, bool *found_out)
{
    tutti_status st = TUTTI_OK;
    size_t       length = 0;

    for (; *paths != '\0' && !*found_out && st == TUTTI_OK; paths += length + (paths[length] == ':')) {
        st = read_directory(paths, &length);
        if (st == TUTTI_OK && length > 0)
            st = look(s, paths, length, found_out);
    }
    return st;
}

/* "tutti" beside the shared library; false: the library is part of a program. */
static bool beside_library(char out[PATH_MAX])
{
    static const char library[] = "libtutti.so";
    Dl_info           info;
    char             *slash;

    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, out) == NULL)
        return false;
    slash = strrchr(out, '/');
    if (slash == NULL || strncmp(slash + 1, library, sizeof library - 1) != 0 ||
        (size_t)(slash - out) + sizeof "/tutti" > PATH_MAX)
        return false;
    strcpy(slash, "/tutti");
    return true;
}

/* All directories in their order, until one has it. */
static tutti_status walk(search *s, bool *found_out)
{
    const char  *paths = getauxval(AT_SECURE) == 0 ? tti_env("TUTTI_PLUGIN_PATH") : NULL;
    char         beside[PATH_MAX];
    const char  *last = beside_library(beside) ? beside : TUTTI_PLUGIN_DIR;
    tutti_status st = TUTTI_OK;

    *found_out = false;
    s->places[0] = '\0';
    if (paths != NULL)
        st = look_in_variable(s, paths, found_out);
    return st == TUTTI_OK && !*found_out ? look(s, last, strlen(last), found_out) : st;
}

tutti_status tti_plugin_search(const char *what, const char *name, char path_out[PATH_MAX], char places_out[TTI_PLACES_TEXT])
{
    search       s = { .what = what, .name = name, .path = path_out, .places = places_out };
    bool         found;
    tutti_status st = walk(&s, &found);

    if (st == TUTTI_OK && !found)
        path_out[0] = '\0';
    return st;
}

bool tti_plugin_below(const char *what, const char *name, char folders_out[TTI_PLACES_TEXT])
{
    char   path[PATH_MAX];
    search s = { .what = what, .name = name, .path = path, .places = folders_out, .below = true };
    bool   found;

    return walk(&s, &found) == TUTTI_OK && s.used > 0;
}

static tutti_status check_directory(const char *paths, size_t length)
{
    char directory[PATH_MAX];

    if (length >= sizeof directory)
        return too_long(paths, length);
    memcpy(directory, paths, length);
    directory[length] = '\0';
    return tti_plugin_trust_directory(directory);
}

tutti_status tti_plugin_check_path(void)
{
    const char  *paths = tti_env("TUTTI_PLUGIN_PATH");
    tutti_status st = TUTTI_OK;
    size_t       length = 0;

    for (; paths != NULL && *paths != '\0' && st == TUTTI_OK; paths += length + (paths[length] == ':')) {
        st = read_directory(paths, &length);
        if (st == TUTTI_OK && length > 0)
            st = check_directory(paths, length);
    }
    return st;
}
