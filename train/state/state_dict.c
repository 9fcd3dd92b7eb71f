/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state_dict.c - names and tensors, in the order of putting in.
 *
 * True    Tensors are views that nothing else refers to, so that a state dict neither requires gradients nor keeps a
 *         graph alive; two names of one tensor have views of the same memory and layout. */
#include "state/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct entry {
    char *name;
    tutti_tensor *tensor; /* counted */
} entry;

struct tutti_state_dict {
    entry *entries;
    int64_t n, room;
    tti_names names;
    tti_words metadata;
};

static const char *name_at(const void *of, int64_t position)
{
    return ((const tutti_state_dict *)of)->entries[position].name;
}

tutti_status tutti_state_dict_create(tutti_state_dict **sd_out)
{
    tutti_state_dict *sd = calloc(1, sizeof *sd);

    if (sd == NULL)
        return tti_fail(TUTTI_E_NOMEM, "state dict: no memory for an empty one");
    *sd_out = sd;
    return TUTTI_OK;
}

void tutti_state_dict_free(tutti_state_dict *sd)
{
    if (sd == NULL)
        return;
    for (int64_t i = 0; i < sd->n; i++) {
        free(sd->entries[i].name);
        tutti_tensor_release(sd->entries[i].tensor);
    }
    free(sd->entries);
    tti_names_clear(&sd->names);
    tti_words_clear(&sd->metadata);
    free(sd);
}

/* ---- tensors ---------------------------------------------------------------------------------- */

static tutti_status no_memory(const char *name)
{
    return tti_fail(TUTTI_E_NOMEM, "state dict: no memory for '%s'", name);
}

/* A new name, at the place of the index where it belongs. t is handed over if that succeeds. */
static tutti_status add(tutti_state_dict *sd, const char *name, int64_t where, tutti_tensor *t)
{
    const int64_t room = sd->room == 0 ? 16 : 2 * sd->room;
    char *copy;

    if (sd->n == sd->room) {
        entry *entries = realloc(sd->entries, (size_t)room * sizeof *entries);

        if (entries == NULL)
            return no_memory(name);
        sd->entries = entries;
        sd->room = room;
    }
    copy = strdup(name);
    if (copy == NULL || !tti_names_insert(&sd->names, where)) {
        free(copy);
        return no_memory(name);
    }
    sd->entries[sd->n++] = (entry){ .name = copy, .tensor = t };
    return TUTTI_OK;
}

tutti_status tutti_state_dict_set(tutti_state_dict *sd, const char *name, const tutti_tensor *t)
{
    tutti_status st = TUTTI_OK;
    tutti_tensor *view;
    int64_t where = 0;

    if (sd == NULL || name == NULL || name[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "state dict: %s",
                        sd == NULL ? "there is none, but NULL" : "a name must not be empty");
    if (t == NULL)
        return tti_refuse_null("state_dict_set");
    view = tti_raw_detach(t);
    if (view == NULL)
        return tti_refused();
    if (tti_names_find(&sd->names, name_at, sd, name, &where)) {
        entry *e = &sd->entries[sd->names.order[where]];

        tutti_tensor_release(e->tensor);
        e->tensor = view;
        return TUTTI_OK;
    }
    st = add(sd, name, where, view);
    if (st != TUTTI_OK)
        tutti_tensor_release(view);
    return st;
}

/* Of a name; -1 if it is not there. */
static int64_t position(const tutti_state_dict *sd, const char *name)
{
    int64_t where;

    if (sd == NULL || name == NULL || !tti_names_find(&sd->names, name_at, sd, name, &where))
        return -1;
    return sd->names.order[where];
}

tutti_tensor *tutti_state_dict_get(const tutti_state_dict *sd, const char *name)
{
    return tutti_state_dict_tensor(sd, position(sd, name));
}

bool tutti_state_dict_remove(tutti_state_dict *sd, const char *name)
{
    const int64_t at = position(sd, name);

    if (at < 0)
        return false;
    free(sd->entries[at].name);
    tutti_tensor_release(sd->entries[at].tensor);
    sd->n--;
    memmove(sd->entries + at, sd->entries + at + 1, (size_t)(sd->n - at) * sizeof *sd->entries);
    (void)tti_names_sort(&sd->names, name_at, sd, sd->n); /* has the room already */
    return true;
}

int64_t tutti_state_dict_length(const tutti_state_dict *sd)
{
    return sd != NULL ? sd->n : 0;
}

const char *tutti_state_dict_name(const tutti_state_dict *sd, int64_t i)
{
    return sd != NULL && i >= 0 && i < sd->n ? sd->entries[i].name : NULL;
}

tutti_tensor *tutti_state_dict_tensor(const tutti_state_dict *sd, int64_t i)
{
    return sd != NULL && i >= 0 && i < sd->n ? sd->entries[i].tensor : NULL;
}

/* ---- several of them -------------------------------------------------------------------------- */

static tutti_status merge_metadata(tutti_state_dict *sd, const tutti_state_dict *from)
{
    for (int i = 0; i < from->metadata.n; i++)
        if (!tti_words_set(&sd->metadata, from->metadata.word[i].key, from->metadata.word[i].value))
            return no_memory("__metadata__");
    return TUTTI_OK;
}

static tutti_status merge_one(tutti_state_dict *sd, const char *prefix, const entry *e)
{
    char *name = NULL;
    tutti_status st;

    if (asprintf(&name, "%s%s", prefix, e->name) < 0)
        return no_memory(e->name);
    st = tutti_state_dict_set(sd, name, e->tensor);
    free(name);
    return st;
}

tutti_status tutti_state_dict_merge(tutti_state_dict *sd, const tutti_state_dict *from,
                                    const char *prefix)
{
    tutti_status st = TUTTI_OK;

    if (sd == NULL || from == NULL || sd == from)
        return tti_fail(TUTTI_E_ARG, "state dict: merging %s",
                        sd == from ? "one with itself" : "with NULL");
    for (int64_t i = 0; i < from->n && st == TUTTI_OK; i++)
        st = merge_one(sd, prefix != NULL ? prefix : "", &from->entries[i]);
    return st == TUTTI_OK ? merge_metadata(sd, from) : st;
}

tutti_status tutti_state_dict_extract(const tutti_state_dict *sd, const char *prefix,
                                      tutti_state_dict **sd_out)
{
    const size_t length = prefix != NULL ? strlen(prefix) : 0;
    tutti_state_dict *part = NULL;
    tutti_status st;

    if (sd == NULL || prefix == NULL)
        return tti_fail(TUTTI_E_ARG, "state dict: the %s is NULL", sd == NULL ? "dict" : "prefix");
    st = tutti_state_dict_create(&part);
    for (int64_t i = 0; i < sd->n && st == TUTTI_OK; i++)
        if (strncmp(sd->entries[i].name, prefix, length) == 0 &&
            sd->entries[i].name[length] != '\0')
            st = tutti_state_dict_set(part, sd->entries[i].name + length, sd->entries[i].tensor);
    if (st == TUTTI_OK)
        st = merge_metadata(part, sd);
    if (st == TUTTI_OK)
        *sd_out = part;
    else
        tutti_state_dict_free(part);
    return st;
}

/* ---- metadata --------------------------------------------------------------------------------- */

tutti_status tutti_state_dict_set_metadata(tutti_state_dict *sd, const char *key, const char *value)
{
    if (sd == NULL || key == NULL)
        return tti_fail(TUTTI_E_ARG, "state dict: metadata of NULL");
    return tti_words_set(&sd->metadata, key, value) ? TUTTI_OK : no_memory(key);
}

const char *tutti_state_dict_metadata(const tutti_state_dict *sd, const char *key)
{
    return sd != NULL && key != NULL ? tti_words_get(&sd->metadata, key) : NULL;
}

const char *tutti_state_dict_metadata_key(const tutti_state_dict *sd, int i)
{
    return sd != NULL && i >= 0 && i < sd->metadata.n ? sd->metadata.word[i].key : NULL;
}
