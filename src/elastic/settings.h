/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/settings.h - whether all launchers of a job were given the same. */
#ifndef TTI_ELASTIC_SETTINGS_H
#define TTI_ELASTIC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/store.h>

enum { TTI_SETTINGS_WORDS_MAX = 640, TTI_SETTINGS_TEXT_MAX = 512 };

/** What a launcher was given, as far as it has to be the same everywhere. */
typedef struct tti_settings {
    int         node;
    const char *host;
    const char *run_id; /* NULL: none was given */
    bool        keep;
    int         nproc, nnodes;
} tti_settings;

/** Compare own with what the first launcher that came to the job's store has left there, or be the first. True: they differ;
 * words_out says in what, on which hosts, and what to do. A store that does not answer by then says nothing. */
bool tti_settings_differ(tutti_store *store, const tti_settings *own, int64_t deadline_ns, char words_out[TTI_SETTINGS_WORDS_MAX]);

/** The settings as a text, for launchers that came before and cannot have compared them: how many bytes. No other launcher's is the
 * same, unless two were given one place on one host. */
size_t tti_settings_write(const tti_settings *own, char out[TTI_SETTINGS_TEXT_MAX]);

/** What was heard is the text of another launcher, and its settings differ from own: words_out as above. False: they do not, or it is
 * own's, or anything else. */
bool tti_settings_heard(const tti_settings *own, const void *data, size_t bytes, char words_out[TTI_SETTINGS_WORDS_MAX]);

#endif
