/* SPDX-License-Identifier: BSD-3-Clause
 *
 * load.c - from a plug-in's file to a table that is driven.
 *
 * How     1. search.c finds the file, trust.c says whether it may be loaded, whole.c that none of it is missing.
 *         2. dlopen(), and the one symbol of its kind (backends here, transports in transport.c, devices in device.c). It is data: nothing of the
 *            plug-in's but what its object runs by itself has run before versions and sizes were looked at, what is smaller and in front first.
 *         3. its init gets the host; then the table is copied (table.c), and known from there on.
 *         Whatever fails on the way unloads the object and says so; the next who asks tries again.
 * True    One thread at a time loads: `busy`, under the lock. The lock itself is held for a moment only,
 *         since what is loaded may take long, and may fork. Who comes meanwhile sleeps on `changed`, and looks again: the
 *         backend may be there then. A child of fork() has nobody who is busy: it has one thread, and if that is the one that loads,
 *         it goes on.
 *         Who registers a table never waits for that: a thread may do so in a constructor of an object, with the lock of
 *         dlopen() held that the one who loads waits for. Who comes first with a name has it (table.c).
 *         A plug-in that is known is never unloaded: tables of it are in groups, and its code on stacks. Nor is one that may have
 *         registered something itself while it was loaded. */
#include "backend/plugin/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "base/thread.h"

enum { WHOSE_BYTES = PATH_MAX + 16, ALL_DEVICES = 1 << TUTTI_CPU | 1 << TUTTI_CUDA };

/* Bytes of tutti_plugin in each version that is taken, the oldest first. */
static const uint32_t version_bytes[] = { sizeof(tutti_plugin), sizeof(tutti_plugin), sizeof(tutti_plugin),
                                          sizeof(tutti_plugin) }; /* later ones: the host has more */

enum { N_VERSIONS = sizeof version_bytes / sizeof version_bytes[0] };

/* Of the process, as what dlopen() does is. */
static struct {
    tti_mutex lock;
    tti_event changed; /* signalled after busy was cleared */
    bool      busy;    /* guarded by lock */
} loading = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER } };

static void before_fork(void)
{
    tti_lock(&loading.lock);
}

static void after_fork(bool in_child)
{
    if (in_child)
        loading.busy = false;
    tti_unlock(&loading.lock);
}

static tti_fork_part fork_part = { .before = before_fork, .after = after_fork };

static void begin(void)
{
    uint32_t seen;

    tti_fork_guard(&fork_part);
    tti_lock(&loading.lock);
    while (loading.busy) {
        seen = tti_event_now(&loading.changed);
        tti_unlock(&loading.lock);
        tti_event_wait(tti_port_system(), &loading.changed, seen, TTI_FOREVER);
        tti_lock(&loading.lock);
    }
    loading.busy = true;
    tti_unlock(&loading.lock);
}

static void end(void)
{
    tti_lock(&loading.lock);
    loading.busy = false;
    tti_unlock(&loading.lock);
    tti_event_signal(tti_port_system(), &loading.changed);
}

/* ---- what a file shows ---- */

tutti_status tti_plugin_check_version(const char *path, uint32_t api, uint32_t size, const tti_plugin_versions *taken)
{
    const uint32_t oldest = taken->newest - taken->n + 1;

    if (api < oldest || api > taken->newest)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "the plug-in '%s' is too %s: it is of version %u, and this library takes versions %u to %u\n  next: build "
                        "it with the headers of this library",
                        path, api < oldest ? "old" : "new", api, oldest, taken->newest);
    if (size != taken->bytes[api - oldest])
        return tti_fail(TUTTI_E_BACKEND,
                        "the plug-in '%s' is broken: what it shows has %u bytes, and version %u has %u\n  next: build it again, "
                        "with headers of one release only",
                        path, size, api, taken->bytes[api - oldest]);
    return TUTTI_OK;
}

tutti_status tti_plugin_check_name(const char *path, const char *name, const char *called)
{
    if (called != NULL && strcmp(called, name) == 0)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: it is called '%.64s'\n  next: give file and plug-in one name",
                    path, called != NULL ? called : "");
}

tutti_status tti_plugin_fail_bare(const char *path, const char *what)
{
    return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: it has no %s\n  next: set that in what it shows, and build it again", path,
                    what);
}

tutti_status tti_plugin_check_entries(const char *path, const tti_plugin_entry *required, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (!required[i].there)
            return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: its table has no entry '%s'\n"
                                             "  next: fill that in, and build it again", path, required[i].name);
    return TUTTI_OK;
}

/* Its init has failed with number, which need not be a status, and these words. */
static tutti_status fail_init(const char *path, int number, const char *words)
{
    const bool  is_status = number >= TUTTI_OK && number <= TUTTI_E_EMPTY;
    const char *next = strstr(words, "\n  next: ") != NULL ? "" : "\n  next: see what that plug-in needs, or ask who made it";

    if (!is_status)
        return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' cannot be used: its init gave %d, which is no status, and %s%s%s", path,
                        number, words[0] != '\0' ? "said: " : "no words", words, next);
    if (words[0] == '\0')
        return tti_fail((tutti_status)number, "the plug-in '%s' cannot be used: its init failed with %s and no words%s", path,
                        tutti_status_name((tutti_status)number), next);
    return tti_fail((tutti_status)number, "the plug-in '%s' cannot be used: %s%s", path, words, next);
}

tutti_status tti_plugin_start(const char *path, tutti_status (*init)(const tutti_plugin_host *host))
{
    char         before[2048], words[1024];
    tutti_status st;

    snprintf(before, sizeof before, "%s", tutti_last_error());
    (void)tti_fail(TUTTI_OK, "%s", ""); /* what is there afterwards is of this init */
    st = init(&tti_plugin_host);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (st == TUTTI_OK)
        return tti_fail(TUTTI_OK, "%s", before); /* a call that succeeds leaves the words of the last one that failed */
    return fail_init(path, (int)st, words);
}

/* ---- backends ---- */

static tutti_status check_head(const char *path, const tutti_plugin *plugin)
{
    const char *what = NULL;

    if (plugin->devices == 0 || (plugin->devices & ~(uint32_t)ALL_DEVICES) != 0)
        return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: it takes memory of devices 0x%x, and there are 0x%x\n"
                                         "  next: set its 'devices' to 1 << TUTTI_CPU, 1 << TUTTI_CUDA or both",
                        path, plugin->devices, (unsigned)ALL_DEVICES);
    if (plugin->backend == NULL)
        what = "table";
    else if (plugin->init == NULL)
        what = "init";
    return what == NULL ? TUTTI_OK : tti_plugin_fail_bare(path, what);
}

/* A table that a program hands over is an argument; that of a file is the file's. */
static tutti_status check_table(const char *path, const tutti_plugin *plugin)
{
    char         whose[WHOSE_BYTES];
    tutti_status st;

    snprintf(whose, sizeof whose, "the plug-in '%s'", path);
    st = tti_backend_check(whose, plugin->backend);
    return st == TUTTI_E_ARG ? TUTTI_E_BACKEND : st;
}

static tutti_status take_in_backend(const char *path, const char *name, const void *shown)
{
    const tutti_plugin       *plugin = shown;
    const tti_plugin_versions taken = { TUTTI_PLUGIN_API, version_bytes, N_VERSIONS };
    tutti_status              st = tti_plugin_check_version(path, plugin->api, plugin->size, &taken);

    if (st == TUTTI_OK)
        st = tti_plugin_check_name(path, name, plugin->name);
    if (st == TUTTI_OK)
        st = check_head(path, plugin);
    if (st == TUTTI_OK)
        st = check_table(path, plugin);
    if (st == TUTTI_OK)
        st = tti_plugin_start(path, plugin->init);
    return st == TUTTI_OK ? tti_adopt(name, plugin->devices, plugin->backend) : st;
}

static const void *known_backend(const char *name)
{
    return tti_adopted_find(name);
}

static const tti_plugin_kind backends = { .what = "backend", .symbol = "tutti_plugin_entry", .known = known_backend,
                                          .take_in = take_in_backend };

/* ---- any kind ---- */

static tutti_status take_in(const tti_plugin_kind *kind, const char *path, const char *name, void *object)
{
    const void *shown = dlsym(object, kind->symbol);

    if (shown == NULL)
        return tti_fail(TUTTI_E_BACKEND, "'%s' is no plug-in: it does not show '%s'\n"
                                         "  next: name another file; or define that in it, as tutti/plugin/plugin.h says, not hidden",
                        path, kind->symbol);
    return kind->take_in(path, name, shown);
}

static tutti_status load(const tti_plugin_kind *kind, const char *found, const char *name)
{
    char               path[PATH_MAX];
    tutti_status       st = tti_plugin_trust(found, path);
    const tti_adopted *before = tti_adopted_all();
    void              *object;

    if (st == TUTTI_OK)
        st = tti_plugin_whole(path);
    if (st != TUTTI_OK)
        return st;
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        const char *why = dlerror();

        return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' cannot be loaded: %s\n"
                                         "  next: see with 'ldd' what it needs and does not find; LD_LIBRARY_PATH says where to look",
                        path, why != NULL ? why : "no reason given");
    }
    st = take_in(kind, path, name, object);
    if (st == TUTTI_OK)
        tti_log(TTI_LOG_INFO, "%s '%s' is the plug-in '%s'", kind->what, name, path);
    else if (tti_adopted_all() == before)
        dlclose(object);
    return st;
}

/* ---- what others ask for ---- */

static tutti_status search_and_load(const tti_plugin_kind *kind, const char *name, char places_out[TTI_PLACES_TEXT])
{
    char         path[PATH_MAX];
    tutti_status st = tti_plugin_search(kind->what, name, path, places_out);

    return st == TUTTI_OK && path[0] != '\0' ? load(kind, path, name) : st;
}

tutti_status tti_plugin_find_of(const tti_plugin_kind *kind, const char *name, const void **found_out,
                                char places_out[TTI_PLACES_TEXT])
{
    const void  *found = kind->known(name);
    tutti_status st = TUTTI_OK;

    if (found == NULL) {
        begin();
        found = kind->known(name); /* since somebody else was busy */
        if (found == NULL) {
            st = search_and_load(kind, name, places_out);
            found = kind->known(name); /* or somebody has registered it meanwhile */
        }
        end();
    }
    if (found == NULL && st != TUTTI_OK)
        return st;
    *found_out = found;
    return TUTTI_OK;
}

tutti_status tti_plugin_find(const char *name, const tti_adopted **adopted_out, char places_out[TTI_PLACES_TEXT])
{
    const void  *found = NULL;
    tutti_status st = tti_plugin_find_of(&backends, name, &found, places_out);

    if (st == TUTTI_OK)
        *adopted_out = found;
    return st;
}

tutti_status tti_plugin_register(const char *name, unsigned devices, const tutti_backend_ops *ops)
{
    char         whose[TTI_ADOPTED_NAME_MAX + 16];
    tutti_status st;

    snprintf(whose, sizeof whose, "backend '%s'", name);
    st = tti_backend_check(whose, ops);
    if (st != TUTTI_OK)
        return st;
    st = tti_adopt(name, devices, ops);
    return st == TUTTI_E_STATE ? tti_fail(st, "tutti_register_backend: there is a backend '%s' already\n"
                                                   "  next: give it another name; a process registers each once", name) : st;
}
