/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registry.c - the backends of this build; the only file that names them. Other names are those that a program has
 * registered, or plug-ins (backend/plugin). */
#include "backend/registry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tutti/backends.h>
#include <tutti/debug.h>
#include <tutti/private.h>
#include "backend/debug/debug.h"
#include "backend/device_map.h"
#include "backend/fake/fake.h"
#include "backend/native/native.h"
#include "backend/plugin/plugin.h"
#include "base/foreign.h"

/* Ends with NULL. */
static const tutti_backend_ops *const known[] = {
    &tti_native_backend_ops,
    &tti_fake_backend_ops,
    NULL,
};

enum { ON_CPU = 1u << TUTTI_CPU, ON_CUDA = 1u << TUTTI_CUDA };

/* Whose memory each backend takes: those of the build, and what is taken for granted of plug-ins whose names are
 * reserved, so that a program can name them where they are not there. 0: the plug-in has to say. */
static const struct {
    const char *name;
    unsigned    devices;
    bool        is_plugin;
} claims[] = {
    { "native", ON_CPU | ON_CUDA, false },
    { "fake", ON_CPU | ON_CUDA, false },
    { "nccl", ON_CUDA, true },
    { "mpi", ON_CPU | ON_CUDA, true },
    { "ucc", ON_CPU | ON_CUDA, true },
    { "xccl", 0, true },
};

enum { N_CLAIMS = sizeof claims / sizeof claims[0] };

static int claim_of(const char *name)
{
    int i;

    for (i = 0; i < N_CLAIMS; i++)
        if (strcasecmp(claims[i].name, name) == 0)
            return i;
    return -1;
}

const char *tti_backend_default_of(tutti_device_type device)
{
    return device == TUTTI_CUDA ? "nccl" : TTI_BACKEND_DEFAULT;
}

static size_t put_name(char *out, size_t bytes, size_t used, const char *name)
{
    if (used >= bytes)
        return used;
    return used + (size_t)snprintf(out + used, bytes - used, "%s'%s'", used == 0 ? "" : ", ", name);
}

/* Those of the build, and what has become known since. */
static void list_names(char *out, size_t bytes)
{
    const tti_adopted *a;
    size_t             used = 0;
    size_t             i;

    for (i = 0; known[i] != NULL; i++)
        used = put_name(out, bytes, used, known[i]->name);
    for (a = tti_adopted_all(); a != NULL; a = a->next)
        used = put_name(out, bytes, used, a->name);
}

/* places: directories without its plug-in; "": no plug-in can have that name. */
static tutti_status no_such_backend(const char *wanted, const char *places)
{
    char      names[256], file[96] = "", folders[TTI_PLACES_TEXT];
    const int claim = claim_of(wanted);

    if (places[0] != '\0')
        snprintf(file, sizeof file, "'tutti-backend-%s.so' is not in ", wanted);
    if (claim >= 0 && tti_plugin_below("backend", claims[claim].name, folders))
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "backend '%s' is a plug-in, and %s%s, but below, in %s\n  next: set TUTTI_PLUGIN_PATH to the one of these that "
                        "was built for the library that this program runs with, for 'mpi' its mpirun's",
                        claims[claim].name, file, places, folders);
    if (claim >= 0)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "backend '%s' is a plug-in, and %s%s\n  next: install it there, or name its directory in TUTTI_PLUGIN_PATH",
                        claims[claim].name, file, places);
    list_names(names, sizeof names);
    return tti_fail(TUTTI_E_ARG, "there is no backend '%.64s'%s%s%s\n  next: use one of this build: %s", wanted,
                    places[0] != '\0' ? ", and the plug-in " : "", file, places, names);
}

static const tutti_backend_ops *find_own(const char *name)
{
    size_t i;

    for (i = 0; known[i] != NULL; i++)
        if (strcasecmp(known[i]->name, name) == 0)
            return known[i];
    return NULL;
}

/* "debug-NAME": what is behind the prefix; else NULL. */
static const char *wrapped_name(const char *name)
{
    const size_t length = sizeof TTI_DEBUG_PREFIX - 1;

    return strncasecmp(name, TTI_DEBUG_PREFIX, length) == 0 ? name + length : NULL;
}

static tutti_status find_adopted(const char *wanted, const tti_adopted **adopted_out)
{
    char               name[TTI_ADOPTED_NAME_MAX], places[TTI_PLACES_TEXT] = "";
    const tti_adopted *adopted = NULL;
    tutti_status       st;
    size_t             i;

    for (i = 0; wanted[i] != '\0' && i + 1 < sizeof name; i++)
        name[i] = (char)tolower((unsigned char)wanted[i]);
    name[i] = '\0';
    if (wanted[i] != '\0' || !tti_backend_is_name(name))
        return no_such_backend(wanted, "");
    st = tti_plugin_find(name, &adopted, places);
    if (st != TUTTI_OK)
        return st;
    if (adopted == NULL)
        return no_such_backend(name, places);
    *adopted_out = adopted;
    return TUTTI_OK;
}

static tutti_status find_unwrapped(const char *wanted, const tutti_backend_ops **ops_out)
{
    const tutti_backend_ops *own = find_own(wanted);
    const tti_adopted       *adopted = NULL;
    tutti_status             st;

    if (own != NULL)
        st = tti_backend_check("a backend of this build", own);
    else
        st = find_adopted(wanted, &adopted);
    if (st == TUTTI_OK)
        *ops_out = own != NULL ? own : &adopted->ops;
    return st;
}

/* "native" compares calls always, and "fake" has nobody to compare with; of others the library does not know. */
static bool is_compared(const tutti_backend_ops *ops)
{
    return find_own(ops->name) != NULL;
}

tutti_status tti_backend_find(const char *name, const tutti_backend_ops **ops_out)
{
    const char              *wanted = name != NULL ? name : TTI_BACKEND_DEFAULT;
    const char              *inside = wrapped_name(wanted);
    const tutti_backend_ops *ops = NULL;
    tutti_status             st = find_unwrapped(inside != NULL ? inside : wanted, &ops);

    if (st == TUTTI_OK &&
        (inside != NULL || (!is_compared(ops) && tutti_get_debug_level() == TUTTI_DEBUG_DETAIL)))
        st = tti_debug_around(ops, &ops);
    if (st == TUTTI_OK)
        *ops_out = ops;
    return st;
}

tutti_status tti_backend_devices(const char *name, unsigned *devices_out)
{
    const char        *wanted = wrapped_name(name) != NULL ? wrapped_name(name) : name;
    const int          claim = claim_of(wanted);
    const tti_adopted *adopted = NULL;
    tutti_status       st = TUTTI_OK;

    if (claim < 0 || claims[claim].is_plugin)
        st = find_adopted(wanted, &adopted);
    if (adopted == NULL && (claim < 0 || claims[claim].devices == 0))
        return st;
    *devices_out = adopted != NULL ? adopted->devices : claims[claim].devices;
    return TUTTI_OK;
}

tutti_status tutti_register_backend(const char *name, const tutti_backend_ops *table, unsigned devices)
{
    if (name == NULL || table == NULL)
        return tti_fail(TUTTI_E_ARG, "tutti_register_backend: %s is NULL", name == NULL ? "name" : "table");
    if (!tti_backend_is_name(name))
        return tti_fail(TUTTI_E_ARG, "tutti_register_backend: '%.64s' is no name of a backend\n  next: give 1 to %d of a-z, 0-9, "
                        "'_' and '-'", name, TTI_ADOPTED_NAME_MAX - 1);
    if (wrapped_name(name) != NULL)
        return tti_fail(TUTTI_E_STATE, "tutti_register_backend: names that begin with '" TTI_DEBUG_PREFIX "' are those of wrappers\n  "
                        "next: choose another one than '%s'", name);
    if (claim_of(name) >= 0)
        return tti_fail(TUTTI_E_STATE, "tutti_register_backend: the name '%s' is %s\n  next: choose another one", name,
                        claims[claim_of(name)].is_plugin ? "kept for a plug-in" : "taken by a backend of this build");
    if (devices == 0 || (devices & ~(unsigned)(ON_CPU | ON_CUDA)) != 0)
        return tti_fail(TUTTI_E_ARG, "tutti_register_backend: backend '%s' takes memory of devices 0x%x, and there are 0x%x", name,
                        devices, (unsigned)(ON_CPU | ON_CUDA));
    return tti_plugin_register(name, devices, table);
}

const tutti_backend_ops *tti_backend_inside(const tutti_backend_ops *ops)
{
    return tti_debug_inside(ops);
}

tutti_backend *tti_backend_inner(const tutti_backend_ops *ops, tutti_backend *backend)
{
    return tti_debug_inner_backend(ops, backend);
}

bool tti_backend_is_own(const tutti_backend_ops *ops)
{
    return find_own(tti_debug_inside(ops)->name) != NULL;
}

bool tti_backend_has_messages(const tutti_backend_ops *ops)
{
    return tti_table_has_messages(tti_debug_inside(ops));
}

tutti_status tti_backend_check_env(const tutti_backend_ops *ops, tutti_store *store)
{
    const tutti_backend_ops *inside = tti_debug_inside(ops);
    const uint32_t           said = tti_words_said();

    if (inside == &tti_native_backend_ops)
        return tti_native_check_env(store);
    return inside->usable != NULL ? tti_foreign_status("backend", inside->name, "usable", inside->usable(), said) : TUTTI_OK;
}

bool tti_backend_is_fixed(const tutti_backend_ops *ops)
{
    return tti_debug_inside(ops)->fixed_world;
}

tutti_status tti_backend_check_text(const char *text)
{
    const tutti_backend_ops *ops;
    tti_device_map           map;
    tutti_status             st = tti_device_map_parse(text, &map);
    int                      i = 0;

    if (st != TUTTI_OK)
        return st;
    while (map.names[i][0] == '\0') /* of the others a group finds out when their memory comes */
        i++;
    return tti_backend_find(map.names[i], &ops);
}

tutti_status tti_backend_check_places(void)
{
    return tti_plugin_check_path();
}
