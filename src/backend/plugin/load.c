/* SPDX-License-Identifier: BSD-3-Clause
 *
 * load.c - from a plug-in's file to a table that is driven.
 *
 * How     1. search.c finds the file, trust.c says whether it may be loaded.
 *         2. dlopen(), and the one symbol. It is data: nothing of the plug-in's but what its object runs by itself has
 *            run before versions and sizes were looked at, what is smaller and in front first.
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
#include "backend/plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>
#include "base/fork.h"
#include "base/thread.h"

enum { WHOSE_BYTES = PATH_MAX + 16, ALL_DEVICES = 1 << TUTTI_CPU | 1 << TUTTI_CUDA };

/* Bytes of tutti_plugin in each version that is taken, the oldest first. */
static const uint32_t version_bytes[] = { sizeof(tutti_plugin) };

enum {
    N_VERSIONS = sizeof version_bytes / sizeof version_bytes[0],
    OLDEST = TUTTI_PLUGIN_API - N_VERSIONS + 1
};

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

static tutti_status check_version(const char *path, const tutti_plugin *plugin)
{
    if (plugin->api < OLDEST || plugin->api > TUTTI_PLUGIN_API)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "the plug-in '%s' is too %s: it is of version %u, and this library takes versions %d to %d\n  next: build "
                        "it with the headers of this library",
                        path, plugin->api < OLDEST ? "old" : "new", plugin->api, (int)OLDEST, (int)TUTTI_PLUGIN_API);
    if (plugin->size != version_bytes[plugin->api - OLDEST])
        return tti_fail(TUTTI_E_BACKEND,
                        "the plug-in '%s' is broken: what it shows has %u bytes, and version %u has %u\n  next: build it again, "
                        "with headers of one release only",
                        path, plugin->size, plugin->api, version_bytes[plugin->api - OLDEST]);
    return TUTTI_OK;
}

static tutti_status check_head(const char *path, const char *name, const tutti_plugin *plugin)
{
    const char *what = NULL;

    if (plugin->name == NULL || strcmp(plugin->name, name) != 0)
        return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: it is called '%.64s'\n  next: give file and plug-in one name",
                        path, plugin->name != NULL ? plugin->name : "");
    if (plugin->devices == 0 || (plugin->devices & ~(uint32_t)ALL_DEVICES) != 0)
        return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: it takes memory of devices 0x%x, and there are 0x%x", path,
                        plugin->devices, (unsigned)ALL_DEVICES);
    if (plugin->backend == NULL)
        what = "table";
    else if (plugin->init == NULL)
        what = "init";
    return what == NULL ? TUTTI_OK : tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' is broken: it has no %s", path, what);
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

static tutti_status start(const char *path, const tutti_plugin *plugin)
{
    char         words[1024];
    tutti_status st = plugin->init(&tti_plugin_host);

    if (st == TUTTI_OK)
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    return tti_fail(st, "the plug-in '%s' cannot be used: %s", path, words);
}

static tutti_status take_in(const char *path, const char *name, void *object)
{
    const tutti_plugin *plugin = dlsym(object, "tutti_plugin_entry");
    tutti_status        st;

    if (plugin == NULL)
        return tti_fail(TUTTI_E_BACKEND, "'%s' is no plug-in: it does not show 'tutti_plugin_entry'", path);
    st = check_version(path, plugin);
    if (st == TUTTI_OK)
        st = check_head(path, name, plugin);
    if (st == TUTTI_OK)
        st = check_table(path, plugin);
    if (st == TUTTI_OK)
        st = start(path, plugin);
    return st == TUTTI_OK ? tti_adopt(name, plugin->devices, plugin->backend) : st;
}

static tutti_status load(const char *found, const char *name)
{
    char               path[PATH_MAX];
    tutti_status       st = tti_plugin_trust(found, path);
    const tti_adopted *before = tti_adopted_all();
    void              *object;

    if (st != TUTTI_OK)
        return st;
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        const char *why = dlerror();

        return tti_fail(TUTTI_E_BACKEND, "the plug-in '%s' cannot be loaded: %s", path, why != NULL ? why : "no reason given");
    }
    st = take_in(path, name, object);
    if (st == TUTTI_OK)
        tti_log(TTI_LOG_INFO, "backend '%s' is the plug-in '%s'", name, path);
    else if (tti_adopted_all() == before)
        dlclose(object);
    return st;
}

/* ---- what others ask for ---- */

static tutti_status search_and_load(const char *name, char places_out[TTI_PLACES_TEXT])
{
    char         path[PATH_MAX];
    tutti_status st = tti_plugin_search(name, path, places_out);

    return st == TUTTI_OK && path[0] != '\0' ? load(path, name) : st;
}

tutti_status tti_plugin_find(const char *name, const tti_adopted **adopted_out, char places_out[TTI_PLACES_TEXT])
{
    const tti_adopted *found = tti_adopted_find(name);
    tutti_status       st = TUTTI_OK;

    if (found == NULL) {
        begin();
        found = tti_adopted_find(name); /* since somebody else was busy */
        if (found == NULL) {
            st = search_and_load(name, places_out);
            found = tti_adopted_find(name); /* or somebody has registered it meanwhile */
        }
        end();
    }
    if (found == NULL && st != TUTTI_OK)
        return st;
    *adopted_out = found;
    return TUTTI_OK;
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
    return st == TUTTI_E_STATE ? tti_fail(st, "tutti_register_backend: there is a backend '%s' already", name) : st;
}
