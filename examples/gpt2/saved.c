/* SPDX-License-Identifier: BSD-3-Clause
 *
 * saved.c - checkpoints as safetensors.
 *
 * How     model.*    the network's state dict
 *         optim.*    the optimizer's
 *         random     where each rank's generator stands, u8 [ranks, bytes]
 *         place      step, planned steps, epoch, step of the epoch, i64 [4]
 *         seconds    spent so far, f64
 *         metadata   what the curve depends on: shape, batch, rates, seed, ranks, text
 *         Rank 0 writes and reads, so that one file is enough for many hosts; the others send it their random
 *         state, and get theirs, and the optimizer's tensors, from it.
 * True    The file appears under its name when it is whole (tutti_safetensors_save). A file that was written with other
 *         settings is refused: the curve could not go on.
 * Fails   On rank 0 with words, on the others without: they learn that it went wrong, and end, too. */
#include "saved.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/group.h>
#include <tutti/state.h>

#include "examples/common/say.h"
#include "examples/common/world.h"

enum { PLACES = 4 };

/* ---- settings ---------------------------------------------------------------------------------- */

static tutti_status put_whole(tutti_state_dict *sd, const char *key, int64_t value)
{
    char word[32];

    snprintf(word, sizeof word, "%" PRId64, value);
    return tutti_state_dict_set_metadata(sd, key, word);
}

static tutti_status put_real(tutti_state_dict *sd, const char *key, double value)
{
    char word[40];

    snprintf(word, sizeof word, "%.17g", value);
    return tutti_state_dict_set_metadata(sd, key, word);
}

static tutti_status put_text(tutti_state_dict *sd, const text *t)
{
    char word[80];

    snprintf(word, sizeof word, "%" PRId64 " bytes, checksum %016" PRIx64, t->n, t->sum);
    return tutti_state_dict_set_metadata(sd, "text", word);
}

/* The options as keys: those that the curve depends on. */
static bool put_settings(tutti_state_dict *sd, const saved *s)
{
    const options *o = s->opts;

    TRY(put_whole(sd, "layers", o->shape.layers));
    TRY(put_whole(sd, "heads", o->shape.heads));
    TRY(put_whole(sd, "width", o->shape.width));
    TRY(put_whole(sd, "context", o->shape.context));
    TRY(put_real(sd, "dropout", o->shape.dropout));
    TRY(put_whole(sd, "batch", o->batch));
    TRY(put_real(sd, "lr", o->lr));
    TRY(put_whole(sd, "warmup", o->warmup));
    TRY(put_real(sd, "weight-decay", o->weight_decay));
    TRY(put_real(sd, "clip", o->clip));
    TRY(put_whole(sd, "steps", o->steps));
    TRY(put_whole(sd, "seed", (int64_t)o->seed));
    TRY(put_whole(sd, "ranks", s->size));
    TRY(put_text(sd, s->text));
    return true;
}

static bool same_settings(const saved *s, const tutti_state_dict *theirs, const tutti_state_dict *ours)
{
    const char *key;

    for (int i = 0; (key = tutti_state_dict_metadata_key(ours, i)) != NULL; i++) {
        const char *have = tutti_state_dict_metadata(theirs, key), *want = tutti_state_dict_metadata(ours, key);

        if (have == NULL)
            return say("'%s' is no checkpoint of gpt2_train: it does not say what '%s' is", s->path, key);
        if (strcmp(have, want) != 0)
            return say("'%s' cannot be gone on from: its %s is %s, and here it is %s\n  next: the options, ranks and "
                       "text that it was written with", s->path, key, have, want);
    }
    return true;
}

static bool check_settings(const saved *s, const tutti_state_dict *sd)
{
    tutti_state_dict *ours;
    bool ok;

    TRY(tutti_state_dict_create(&ours));
    ok = put_settings(ours, s) && same_settings(s, sd, ours);
    tutti_state_dict_free(ours);
    return ok;
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* part, under names that begin with prefix; part is freed. */
static bool put_part(tutti_state_dict *sd, tutti_status made, tutti_state_dict *part, const char *prefix)
{
    TRY(made);
    made = tutti_state_dict_merge(sd, part, prefix);
    tutti_state_dict_free(part);
    TRY(made);
    return true;
}

static bool put_place(tutti_state_dict *sd, const place *at)
{
    const int64_t places[PLACES] = { at->step, at->planned, at->epoch, at->window }, n = PLACES;

    TRY(tutti_state_dict_set(sd, "place", tutti_tensor_from_data(places, TUTTI_I64, 1, &n)));
    TRY(tutti_state_dict_set(sd, "seconds", tutti_tensor_scalar(TUTTI_F64, at->seconds)));
    return true;
}

static bool put_all(tutti_state_dict *sd, const saved *s, const place *at, const uint8_t *random)
{
    const int64_t shape[2] = { s->size, (int64_t)tutti_generator_state_bytes() };
    tutti_state_dict *part = NULL;
    tutti_status st = tutti_module_state_dict(s->net, &part);

    if (!put_part(sd, st, part, "model."))
        return false;
    st = tutti_optim_state_dict(s->optim, &part);
    if (!put_part(sd, st, part, "optim."))
        return false;
    TRY(tutti_state_dict_set(sd, "random", tutti_tensor_from_data(random, TUTTI_U8, 2, shape)));
    return put_place(sd, at) && put_settings(sd, s);
}

static bool write_file(const saved *s, const place *at, const uint8_t *random)
{
    tutti_state_dict *sd;
    tutti_status st = TUTTI_OK;
    bool ok;

    TRY(tutti_state_dict_create(&sd));
    tutti_scope_begin();
    ok = put_all(sd, s, at, random);
    if (ok)
        st = tutti_safetensors_save(sd, s->path);
    tutti_scope_end();
    tutti_state_dict_free(sd);
    TRY(st);
    return ok;
}

/* Every rank's random state, on all of them; freed by the caller. */
static bool gather_random(int size, uint8_t **random_out)
{
    const size_t bytes = tutti_generator_state_bytes();
    uint8_t *all = calloc((size_t)size + 1, bytes), *own;
    tutti_status st;

    if (all == NULL)
        return say("no memory for the random states of %d ranks", size);
    own = all + (size_t)size * bytes;
    tutti_generator_get_state(NULL, own);
    st = tutti_all_gather_into_tensor(TUTTI_SPAN(all, size * (int64_t)bytes), TUTTI_SPAN(own, (int64_t)bytes), NULL);
    if (st != TUTTI_OK)
        free(all);
    TRY(st);
    *random_out = all;
    return true;
}

bool saved_write(const saved *s, const place *at)
{
    uint8_t *random = NULL;
    bool ok;

    if (!gather_random(s->size, &random))
        return false;
    ok = s->rank != 0 || write_file(s, at, random);
    free(random);
    return world_agrees(ok);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* Elements of a tensor that must be there in this type and number. */
static bool take(const saved *s, const tutti_state_dict *sd, const char *name, tutti_dtype dtype, void *to, int64_t n)
{
    const tutti_tensor *t = tutti_state_dict_get(sd, name);

    if (t == NULL || tutti_tensor_dtype(t) != dtype || tutti_tensor_numel(t) != n)
        return say("'%s' is no checkpoint of gpt2_train: '%s' is not there, or not %" PRId64 " of %s", s->path, name, n,
                   tutti_dtype_name(dtype));
    memcpy(to, tutti_tensor_data(t), (size_t)n * tutti_dtype_size(dtype));
    return true;
}

static bool load_part(const tutti_state_dict *sd, const saved *s, const char *prefix, bool is_model)
{
    tutti_state_dict *part;
    tutti_status st;

    TRY(tutti_state_dict_extract(sd, prefix, &part));
    st = is_model ? tutti_module_load_state_dict(s->net, part, true, NULL)
                  : tutti_optim_load_state_dict(s->optim, part);
    tutti_state_dict_free(part);
    return st == TUTTI_OK || say("'%s': %s", s->path, tutti_last_error());
}

static bool take_place(const saved *s, const tutti_state_dict *sd, place *at)
{
    int64_t places[PLACES];

    if (!take(s, sd, "place", TUTTI_I64, places, PLACES) || !take(s, sd, "seconds", TUTTI_F64, &at->seconds, 1))
        return false;
    if (places[0] < 0 || places[1] < 0 || places[2] < 0 || places[3] < 0)
        return say("'%s' is no checkpoint of gpt2_train: its place is negative", s->path);
    at->step = places[0];
    at->planned = places[1];
    at->epoch = places[2];
    at->window = places[3];
    return true;
}

/* On rank 0. */
static bool read_file(const saved *s, place *at, uint8_t *random)
{
    tutti_state_dict *sd;
    bool ok;

    TRY(tutti_safetensors_load(s->path, &sd));
    ok = check_settings(s, sd) && take_place(s, sd, at) &&
         take(s, sd, "random", TUTTI_U8, random, s->size * (int64_t)tutti_generator_state_bytes()) &&
         load_part(sd, s, "model.", true) && load_part(sd, s, "optim.", false);
    tutti_state_dict_free(sd);
    return ok;
}

/* What rank 0's optimizer remembers, for all. The options of groups are everybody's own. */
static bool hand_on_optim(const saved *s)
{
    static const char *const names[] = { "step", "exp_avg", "exp_avg_sq" };
    int n;
    tutti_tensor *const *params = tutti_optim_parameters(s->optim, -1, &n);

    TRY(tutti_optim_init_state(s->optim)); /* before the first step a file has none */
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            TRY(tutti_broadcast(tutti_tensor_span(tutti_optim_state(s->optim, params[i], names[k])), 0, NULL));
    return true;
}

static bool hand_on(const saved *s, place *at, uint8_t *random)
{
    const size_t bytes = tutti_generator_state_bytes();
    int64_t places[PLACES] = { at->step, at->planned, at->epoch, at->window };

    TRY(tutti_broadcast(TUTTI_SPAN(places, PLACES), 0, NULL));
    TRY(tutti_broadcast(TUTTI_SPAN(&at->seconds, 1), 0, NULL));
    *at = (place){ places[0], places[1], places[2], places[3], at->seconds };
    TRY(tutti_broadcast(TUTTI_SPAN(random, s->size * (int64_t)bytes), 0, NULL));
    TRY(tutti_generator_set_state(NULL, random + (size_t)s->rank * bytes, bytes));
    return hand_on_optim(s);
}

bool saved_read(const saved *s, place *at_out)
{
    uint8_t *random = calloc((size_t)s->size, tutti_generator_state_bytes());
    place at = { 0 };
    bool ok = s->rank != 0 || random != NULL;

    if (ok && s->rank == 0)
        ok = read_file(s, &at, random);
    ok = world_agrees(ok) && (random != NULL || say("no memory for the random states of %d ranks", s->size)) &&
         hand_on(s, &at, random);
    free(random);
    if (ok)
        *at_out = at;
    return ok;
}
