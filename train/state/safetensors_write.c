/* SPDX-License-Identifier: BSD-3-Clause
 *
 * safetensors_write.c - a state dict as a file.
 *
 * How     Tensors are sorted: the largest alignment first, then by name, as the format's own writer does, so that every
 *         tensor begins at a multiple of its element's size. The header is JSON of one line; spaces bring its length
 *         to a multiple of 8. Strided tensors are copied on their way out, one at a time.
 * True    The same state gives the same bytes. A tensor that stands under several names is written once: under its
 *         first name in the state dict; the others are words of the metadata. */
#include "state/state.h"

#include <endian.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct item {
    const char *name;
    tutti_tensor *tensor;
    int64_t place; /* in the state dict */
    int type;      /* of the format */
    uint64_t begin, end;
} item;

typedef struct plan {
    const tutti_state_dict *sd;
    const char *path;
    item *items;
    int64_t n;
    tti_words words; /* metadata, and names of tied tensors */
} plan;

/* ---- which tensors ---------------------------------------------------------------------------- */

static bool same_tensor(const tutti_tensor *a, const tutti_tensor *b)
{
    return a->st == b->st && a->offset == b->offset && a->dtype == b->dtype &&
           tti_same_shape(a, b) && tti_same_layout(a, b) && a->numel > 0;
}

/* Tensors of one memory side by side, those that are the same in the order of the state dict. */
static int by_memory(const void *va, const void *vb)
{
    const item *a = va, *b = vb;
    const uintptr_t ma = (uintptr_t)a->tensor->st, mb = (uintptr_t)b->tensor->st;

    if (ma != mb)
        return ma < mb ? -1 : 1;
    if (a->tensor->offset != b->tensor->offset)
        return a->tensor->offset < b->tensor->offset ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int by_format(const void *va, const void *vb)
{
    const item *a = va, *b = vb;

    return a->type != b->type ? b->type - a->type : strcmp(a->name, b->name);
}

static tutti_status collect(plan *p)
{
    p->n = tutti_state_dict_length(p->sd);
    p->items = calloc((size_t)p->n + 1, sizeof *p->items);
    if (p->items == NULL)
        return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for %lld tensors", p->path,
                        (long long)p->n);
    for (int64_t i = 0; i < p->n; i++) {
        item *it = &p->items[i];

        *it = (item){ .name = tutti_state_dict_name(p->sd, i),
                      .tensor = tutti_state_dict_tensor(p->sd, i),
                      .place = i };
        it->type = tti_format_of(it->tensor->dtype);
        if (it->type < 0)
            return tti_fail(TUTTI_E_UNSUPPORTED, "'%s': the format has no %s, of tensor '%s'",
                            p->path, tutti_dtype_name(it->tensor->dtype), it->name);
        if (strcmp(it->name, "__metadata__") == 0)
            return tti_fail(TUTTI_E_ARG, "'%s': no tensor may have the name '__metadata__'",
                            p->path);
    }
    return TUTTI_OK;
}

/* Of tensors that are the same keep the first, and note the names of the others. */
static tutti_status tie(plan *p)
{
    int64_t kept = 0;

    if (p->n > 0)
        qsort(p->items, (size_t)p->n, sizeof *p->items, by_memory);
    for (int64_t i = 0; i < p->n; i++) {
        const item it = p->items[i];
        int64_t k = kept;

        while (k > 0 && p->items[k - 1].tensor->st == it.tensor->st &&
               p->items[k - 1].tensor->offset == it.tensor->offset &&
               !same_tensor(p->items[k - 1].tensor, it.tensor))
            k--;
        if (k > 0 && same_tensor(p->items[k - 1].tensor, it.tensor)) {
            if (tti_words_get(&p->words, it.name) != NULL)
                return tti_fail(
                    TUTTI_E_ARG,
                    "'%s': metadata has the key '%s', which is the name of a tied tensor", p->path,
                    it.name);
            if (!tti_words_set(&p->words, it.name, p->items[k - 1].name))
                return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for metadata", p->path);
        } else {
            p->items[kept++] = it;
        }
    }
    p->n = kept;
    return TUTTI_OK;
}

static tutti_status take_metadata(plan *p)
{
    const char *key;

    for (int i = 0; (key = tutti_state_dict_metadata_key(p->sd, i)) != NULL; i++)
        if (!tti_words_append(&p->words, key, tutti_state_dict_metadata(p->sd, key)))
            return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for metadata", p->path);
    return TUTTI_OK;
}

/* ---- the header ------------------------------------------------------------------------------- */

static json_t *describe(const item *it)
{
    json_t *shape = json_array();

    for (int d = 0; d < it->tensor->nd; d++)
        if (json_array_append_new(shape, json_integer(it->tensor->shape[d])) != 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tti_format_at(it->type)->name, "shape", shape,
                     "data_offsets", (json_int_t)it->begin, (json_int_t)it->end);
}

static json_t *describe_words(const tti_words *words)
{
    json_t *object = json_object();

    for (int i = 0; i < words->n; i++)
        if (json_object_set_new(object, words->word[i].key, json_string(words->word[i].value)) !=
            0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

/* jansson takes no word that is not UTF-8, and says no more than that. */
static tutti_status refuse_word(const plan *p, const char *name)
{
    return tti_fail(TUTTI_E_ARG, "'%s': no header with '%s': no UTF-8, or no memory", p->path,
                    name);
}

static tutti_status make_header(const plan *p, json_t *header)
{
    if (p->words.n > 0 &&
        json_object_set_new(header, "__metadata__", describe_words(&p->words)) != 0)
        return refuse_word(p, "__metadata__");
    for (int64_t i = 0; i < p->n; i++)
        if (json_object_set_new(header, p->items[i].name, describe(&p->items[i])) != 0)
            return refuse_word(p, p->items[i].name);
    return TUTTI_OK;
}

/* The length, the header, and spaces. */
static tutti_status write_header(const plan *p, tti_put *put)
{
    static const char spaces[8] = { ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ' };
    json_t *header = json_object();
    tutti_status st = make_header(p, header);
    char *text = st == TUTTI_OK ? json_dumps(header, JSON_COMPACT) : NULL;
    const size_t length = text != NULL ? strlen(text) : 0, fill = (8 - length % 8) % 8;
    const uint64_t bytes = htole64(length + fill);

    if (st == TUTTI_OK && text == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "'%s': no memory for the header", p->path);
    if (st == TUTTI_OK && length + fill > TUTTI_SAFETENSORS_HEADER_MAX)
        st = tti_fail(TUTTI_E_ARG, "'%s': a header of %zu bytes, of at most %d", p->path,
                      length + fill, TUTTI_SAFETENSORS_HEADER_MAX);
    if (st == TUTTI_OK)
        st = tti_put_write(put, &bytes, sizeof bytes);
    if (st == TUTTI_OK)
        st = tti_put_write(put, text, length);
    if (st == TUTTI_OK)
        st = tti_put_write(put, spaces, fill);
    free(text);
    json_decref(header);
    return st;
}

/* ---- the elements ----------------------------------------------------------------------------- */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files of elements are written and mapped as they lie in memory, which is little-endian here"
#endif

static tutti_status write_tensor(const item *it, tti_put *put)
{
    tutti_tensor *rows = tti_raw_contiguous(it->tensor);
    tutti_status st = rows != NULL ? tti_ready(rows) : tti_refused();

    if (st == TUTTI_OK)
        st = tti_put_write(put, tti_at(rows), (size_t)(it->end - it->begin));
    tutti_tensor_release(rows);
    return st;
}

static void lay_out(plan *p)
{
    uint64_t at = 0;

    if (p->n > 0)
        qsort(p->items, (size_t)p->n, sizeof *p->items, by_format);
    for (int64_t i = 0; i < p->n; i++) {
        item *it = &p->items[i];

        it->begin = at;
        at += (uint64_t)it->tensor->numel * tutti_dtype_size(it->tensor->dtype);
        it->end = at;
    }
}

static tutti_status write_file(const plan *p)
{
    tti_put put;
    tutti_status st = tti_put_begin(&put, p->path);

    if (st != TUTTI_OK)
        return st;
    st = write_header(p, &put);
    for (int64_t i = 0; i < p->n && st == TUTTI_OK; i++)
        st = write_tensor(&p->items[i], &put);
    return tti_put_end(&put, st);
}

tutti_status tutti_safetensors_save(const tutti_state_dict *sd, const char *path)
{
    plan p = { .sd = sd, .path = path };
    tutti_status st;

    if (sd == NULL || path == NULL || path[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "safetensors: no %s to save", sd == NULL ? "state" : "name");
    st = collect(&p);
    if (st == TUTTI_OK)
        st = take_metadata(&p);
    if (st == TUTTI_OK)
        st = tie(&p);
    if (st == TUTTI_OK)
        lay_out(&p);
    if (st == TUTTI_OK)
        st = write_file(&p);
    tti_words_clear(&p.words);
    free(p.items);
    return st;
}
