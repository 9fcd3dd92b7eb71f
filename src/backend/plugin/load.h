/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/plugin/load.h - from a file to what it shows, for every kind of plug-in. */
#ifndef TTI_BACKEND_PLUGIN_LOAD_H
#define TTI_BACKEND_PLUGIN_LOAD_H

#include "backend/plugin/plugin.h"

/** What differs between backends, transports and devices. */
typedef struct tti_plugin_kind {
    const char *what;   /* "backend": in names of files, and for words */
    const char *symbol; /* the one that a file shows */
    /* The one of that name, if it is known; NULL: it is not. Any thread. */
    const void *(*known)(const char *name);
    /* Look at what the file shows, begin with what is smaller and in front, start it, and make it known. One thread at a time. */
    tutti_status (*take_in)(const char *path, const char *name, const void *shown);
} tti_plugin_kind;

/** The one called name: known already, or from its plug-in, which is loaded. NULL: there is none, as tti_plugin_find()
 * tells, whose errors these are. */
tutti_status tti_plugin_find_of(const tti_plugin_kind *kind, const char *name, const void **found_out,
                                char places_out[TTI_PLACES_TEXT]);

/** The versions that are taken: the newest, and how many bytes each has, the oldest first. */
typedef struct tti_plugin_versions {
    uint32_t        newest;
    const uint32_t *bytes; /* [n] */
    uint32_t        n;
} tti_plugin_versions;

/* Steps of take_in. */
tutti_status tti_plugin_check_version(const char *path, uint32_t api, uint32_t size, const tti_plugin_versions *taken);
tutti_status tti_plugin_check_name(const char *path, const char *name, const char *called);

/** An entry that a table has to have, and whether it has it. */
typedef struct tti_plugin_entry {
    const char *name;
    bool        there;
} tti_plugin_entry;

/** @errors TUTTI_E_BACKEND  always: what the plug-in at path shows has no table, or no init */
tutti_status tti_plugin_fail_bare(const char *path, const char *what);

/** @errors TUTTI_E_BACKEND  the table of the plug-in at path has not all n of them; the text names the first */
tutti_status tti_plugin_check_entries(const char *path, const tti_plugin_entry *required, size_t n);
tutti_status tti_plugin_start(const char *path, tutti_status (*init)(const tutti_plugin_host *host));

#endif
