/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/plugin/search.h - where a plug-in is looked for, and which files are taken. */
#ifndef TTI_BACKEND_PLUGIN_SEARCH_H
#define TTI_BACKEND_PLUGIN_SEARCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <tutti/status.h>

enum { TTI_PLACES_TEXT = 1024 };

/** The file of the plug-in called name, which may be one, in the first directory that has it: tutti-WHAT-NAME.so. "" :
 * nowhere; then places_out names all directories, for words: "'/a', '/b'".
 * @errors TUTTI_E_ARG  TUTTI_PLUGIN_PATH has a path that is not absolute, or too long */
tutti_status tti_plugin_search(const char *what, const char *name, char path_out[PATH_MAX], char places_out[TTI_PLACES_TEXT]);

/** The folders below those directories that have the file, as "mpi" has one for each MPI: for words, as places_out above. false: none
 * has it. None is taken by itself: which one fits only the user knows. */
bool tti_plugin_below(const char *what, const char *name, char folders_out[TTI_PLACES_TEXT]);

/** Whether nobody but root and this user can have put the file there, or can replace it. real_out: the path without
 * links, which is what was looked at.
 * @errors TUTTI_E_AUTH     it, or a directory on its way, is another user's, or others may write to it; no regular file
 *         TUTTI_E_BACKEND  it cannot be looked at */
tutti_status tti_plugin_trust(const char *path, char real_out[PATH_MAX]);

/** The same of a directory in which plug-ins may be, whichever: none of one that others may write to is ever loaded. One that is not
 * there is fine, as it is for the search.
 * @errors TUTTI_E_AUTH, TUTTI_E_BACKEND  as above */
tutti_status tti_plugin_trust_directory(const char *path);

/** Whether TUTTI_PLUGIN_PATH says what can be meant: directories that are absolute, and of whose plug-ins any could be loaded.
 * @errors TUTTI_E_ARG      a path is not absolute, or too long
 *         TUTTI_E_AUTH     a directory is another user's, or others may write to it
 *         TUTTI_E_BACKEND  it cannot be looked at */
tutti_status tti_plugin_check_path(void);

/** Whether the file has all bytes that its program headers tell of: to load one that was cut off ends the process. A file without
 * such headers counts as whole; dlopen() refuses it.
 * @errors TUTTI_E_BACKEND  it is cut off, or cannot be read */
tutti_status tti_plugin_whole(const char *path);

#endif
