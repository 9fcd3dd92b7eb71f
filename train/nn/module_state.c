/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_state.c - the state of a module, and going on from one.
 *
 * How     Loading looks at the module's own state dict, whose tensors share the module's memory: names and shapes are
 *         compared on both sides, then values are copied from one to the other.
 * True    Nothing is copied before everything has been compared. */
#include "nn/nn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct gathering {
    tutti_state_dict *sd;
    tutti_status status;
} gathering;

static bool gather(void *ctx, const char *name, tutti_tensor *t, tti_entry_kind kind)
{
    gathering *g = ctx;

    if (kind != TTI_PASSING_BUFFER)
        g->status = tutti_state_dict_set(g->sd, name, t);
    return g->status == TUTTI_OK;
}

tutti_status tutti_module_state_dict(tutti_module *m, tutti_state_dict **sd_out)
{
    gathering g = { .status = TUTTI_OK };
    tutti_status st;

    if (m == NULL)
        return tti_fail(TUTTI_E_ARG, "state_dict: the module is NULL");
    st = tutti_state_dict_create(&g.sd);
    if (st == TUTTI_OK && !tti_module_walk(m, gather, &g))
        st = g.status != TUTTI_OK ? g.status
                                  : tti_fail(TUTTI_E_NOMEM, "state_dict: no memory for a name");
    if (st == TUTTI_OK)
        *sd_out = g.sd;
    else
        tutti_state_dict_free(g.sd);
    return st;
}

/* ---- comparing -------------------------------------------------------------------------------- */

/* Names of a that b has not, copied into names. -1: no memory. */
static int names_without(const tutti_state_dict *a, const tutti_state_dict *b, char **names)
{
    int n = 0;

    for (int64_t i = 0; i < tutti_state_dict_length(a); i++) {
        const char *name = tutti_state_dict_name(a, i);

        if (tutti_state_dict_get(b, name) != NULL)
            continue;
        names[n] = strdup(name);
        if (names[n++] == NULL)
            return -1;
    }
    return n;
}

/* Names of both sides in one block of pointers behind the struct. */
static tutti_status compare_names(const tutti_state_dict *mine, const tutti_state_dict *sd,
                                  tutti_incompatible_keys **keys_out)
{
    const size_t most = (size_t)(tutti_state_dict_length(mine) + tutti_state_dict_length(sd));
    tutti_incompatible_keys *keys = calloc(1, sizeof *keys + (most + 1) * sizeof(char *));
    char **names = (char **)(keys + 1);

    if (keys == NULL)
        return tti_fail(TUTTI_E_NOMEM, "load_state_dict: no memory for %zu names", most);
    keys->missing = keys->unexpected = (const char *const *)names;
    keys->n_missing = names_without(mine, sd, names);
    if (keys->n_missing >= 0) {
        keys->unexpected += keys->n_missing;
        keys->n_unexpected = names_without(sd, mine, names + keys->n_missing);
    }
    if (keys->n_missing >= 0 && keys->n_unexpected >= 0) {
        *keys_out = keys;
        return TUTTI_OK;
    }
    for (size_t i = 0; names[i] != NULL; i++)
        free(names[i]);
    free(keys);
    return tti_fail(TUTTI_E_NOMEM, "load_state_dict: no memory for %zu names", most);
}

void tutti_incompatible_keys_free(tutti_incompatible_keys *keys)
{
    char **names;

    if (keys == NULL)
        return;
    names = (char **)(keys + 1);
    for (int i = 0; i < keys->n_missing + keys->n_unexpected; i++)
        free(names[i]);
    free(keys);
}

/* ---- words ------------------------------------------------------------------------------------ */

enum { WORDS = 700, SHOWN = 4 };

/* A text that grows to the end of its room, and is cut there. */
typedef struct words {
    char s[WORDS];
    size_t n;
} words;

#define SAY(w, ...)                                                               \
    do {                                                                          \
        const int said_ = snprintf((w)->s + (w)->n, WORDS - (w)->n, __VA_ARGS__); \
        (w)->n += said_ < 0 ? 0 : (size_t)said_;                                  \
        (w)->n = (w)->n < WORDS ? (w)->n : WORDS - 1;                             \
    } while (0)

static void say_names(words *w, int n, const char *const *names, const char *what)
{
    for (int i = 0; i < n && i < SHOWN; i++)
        SAY(w, i == 0 ? "\n  %s: '%.60s'" : "%s'%.60s'", i == 0 ? what : ", ", names[i]);
    if (n > SHOWN)
        SAY(w, " and %d more", n - SHOWN);
}

/* Shapes that differ. Returns how many. */
static int say_shapes(words *w, const tutti_state_dict *mine, const tutti_state_dict *sd)
{
    int n = 0;

    for (int64_t i = 0; i < tutti_state_dict_length(mine); i++) {
        const tutti_tensor *to = tutti_state_dict_tensor(mine, i);
        const tutti_tensor *from = tutti_state_dict_get(sd, tutti_state_dict_name(mine, i));

        if (from == NULL || tti_same_shape(to, from))
            continue;
        if (n++ < SHOWN)
            SAY(w, "\n  '%.60s' has shape %s in the state, %s in the module",
                tutti_state_dict_name(mine, i), tti_shape_str(from->nd, from->shape).s,
                tti_shape_str(to->nd, to->shape).s);
    }
    if (n > SHOWN)
        SAY(w, "\n  and %d other shapes", n - SHOWN);
    return n;
}

/* ---- loading ---------------------------------------------------------------------------------- */

static tutti_status compare(const tutti_state_dict *mine, const tutti_state_dict *sd, bool strict,
                            const tutti_incompatible_keys *keys)
{
    words w = { .n = 0 };
    int shapes;

    if (strict) {
        say_names(&w, keys->n_missing, keys->missing, "not in the state");
        say_names(&w, keys->n_unexpected, keys->unexpected, "not in the module");
    }
    shapes = say_shapes(&w, mine, sd);
    if (w.n == 0)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_MISMATCH,
                    "load_state_dict: %d names are missing, %d unexpected, %d shapes differ%s",
                    keys->n_missing, keys->n_unexpected, shapes, w.s);
}

/* Whatever is still under way is there. */
static tutti_status settle(const tutti_state_dict *mine, const tutti_state_dict *sd)
{
    tutti_status st = TUTTI_OK;

    for (int64_t i = 0; i < tutti_state_dict_length(mine) && st == TUTTI_OK; i++) {
        const tutti_tensor *from = tutti_state_dict_get(sd, tutti_state_dict_name(mine, i));

        if (from != NULL)
            st = tti_ready(from);
        if (from != NULL && st == TUTTI_OK)
            st = tti_ready(tutti_state_dict_tensor(mine, i));
    }
    return st;
}

static tutti_status copy(const tutti_state_dict *mine, const tutti_state_dict *sd)
{
    tutti_status st = TUTTI_OK;

    for (int64_t i = 0; i < tutti_state_dict_length(mine) && st == TUTTI_OK; i++) {
        const tutti_tensor *from = tutti_state_dict_get(sd, tutti_state_dict_name(mine, i));

        if (from != NULL)
            st = tti_raw_copy_(tutti_state_dict_tensor(mine, i), from);
    }
    return st;
}

tutti_status tutti_module_load_state_dict(tutti_module *m, const tutti_state_dict *sd, bool strict,
                                          tutti_incompatible_keys **keys_out)
{
    tutti_incompatible_keys *keys = NULL;
    const tutti_status before = tti_kept();
    tutti_state_dict *mine = NULL;
    tutti_status st;

    if (m == NULL || sd == NULL)
        return tti_fail(TUTTI_E_ARG, "load_state_dict: the %s is NULL",
                        m == NULL ? "module" : "state");
    st = tutti_module_state_dict(m, &mine);
    if (st == TUTTI_OK)
        st = compare_names(mine, sd, &keys);
    if (st == TUTTI_OK)
        st = compare(mine, sd, strict, keys);
    if (st == TUTTI_OK)
        st = settle(mine, sd);
    if (st == TUTTI_OK)
        st = copy(mine, sd);
    if (st != TUTTI_OK && before == TUTTI_OK)
        (void)tti_take_kept(); /* this call returns a status: nothing is kept */
    if (st == TUTTI_OK && keys_out != NULL)
        *keys_out = keys;
    else
        tutti_incompatible_keys_free(keys);
    tutti_state_dict_free(mine);
    return st;
}
