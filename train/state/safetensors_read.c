/* SPDX-License-Identifier: BSD-3-Clause
 *
 * safetensors_read.c - a file of tensors, mapped and checked.
 *
 * How     The header is parsed by jansson, which refuses names that come twice and what is no UTF-8; then each entry is
 *         checked for itself, all of them are sorted by where they begin, and must cover the data without a gap.
 *         The mapping is private: tensors may be written to, the file does not change.
 * True    After tutti_safetensors_open() every entry lies inside of the file and has the bytes of its shape. Limits
 *         come before memory: the header's length is compared with its limit and with the file before it is read.
 *         The mapping lives as long as the file's handle and each tensor over it.
 * Fails   With the file, the tensor or the byte of the header, and what is wrong there. Words out of a file are shown
 *         without control characters, and cut. */
#include "state/state.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tutti/private.h>
#include <unistd.h>

enum { LENGTH = 8, SHOWN = 60 };

/* What may be behind an error, where it can be told. */
static const char FOREIGN[] = ": this is no safetensors file\n  next: the path of one";
static const char CUT_OFF[] = ": the file is cut off\n  next: copy it again, all of it";

/* A mapped file; counted. */
typedef struct mapping {
    atomic_int refs;
    char *at;
    size_t bytes;
} mapping;

typedef struct entry {
    tutti_safetensors_entry public;
    uint64_t begin, end;
    int64_t *block; /* shape, then name */
} entry;

struct tutti_safetensors {
    char *path;
    mapping *map;
    const char *data; /* behind the header */
    size_t data_bytes;
    entry *entries;
    int64_t n;
    tti_names names;
    tti_words words;
};

/* A word of the file for a text about it. */
typedef struct shown {
    char s[SHOWN + 4];
} shown;

static shown show(const char *word)
{
    const size_t length = strlen(word);
    shown out = { "" };
    size_t n = 0;

    for (; n < length && n < SHOWN; n++)
        out.s[n] = (unsigned char)word[n] < ' ' || word[n] == 127 ? '?' : word[n];
    if (n < length)
        memcpy(out.s + n, "...", 4);
    return out;
}

/* ---- the mapping ------------------------------------------------------------------------------ */

static void map_release(mapping *map)
{
    if (map == NULL || atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (map->at != NULL)
        munmap(map->at, map->bytes);
    free(map);
}

static void map_dropped(void *data, void *ctx)
{
    (void)data;
    map_release(ctx);
}

static tutti_status map_fd(const char *path, int fd, mapping *map)
{
    struct stat info;
    void *at;

    if (fstat(fd, &info) != 0)
        return tti_fail_errno(errno, "cannot look at '%s'", path);
    if (!S_ISREG(info.st_mode))
        return tti_fail(TUTTI_E_IO, "'%s' is no regular file", path);
    if (info.st_size < LENGTH)
        return tti_fail(TUTTI_E_IO, "'%s': %lld bytes are too few for the length of a header", path,
                        (long long)info.st_size);
    map->bytes = (size_t)info.st_size;
    at = mmap(NULL, map->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map %zu bytes of '%s'", map->bytes, path);
    map->at = at;
    return TUTTI_OK;
}

static tutti_status map_file(const char *path, mapping **map_out)
{
    mapping *map = calloc(1, sizeof *map);
    tutti_status st;
    int fd;

    if (map == NULL)
        return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for a mapping", path);
    atomic_init(&map->refs, 1);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    st = fd < 0 ? tti_fail_errno(errno, "cannot open '%s'", path) : map_fd(path, fd, map);
    if (fd >= 0)
        close(fd);
    if (st == TUTTI_OK)
        *map_out = map;
    else
        map_release(map);
    return st;
}

/* ---- one entry of the header ------------------------------------------------------------------ */

static tutti_status broken(const tutti_safetensors *f, const char *name, const char *what)
{
    return tti_fail(TUTTI_E_IO, "'%s': tensor '%s': %s", f->path, show(name).s, what);
}

static bool whole_number(const json_t *value, int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = json_integer_value(value);
    return true;
}

/* Room for nd sizes and the name, in one block. */
static tutti_status make_block(const tutti_safetensors *f, entry *e, const char *name, size_t nd)
{
    const size_t length = strlen(name) + 1;
    char *copy;

    e->block = malloc(nd * sizeof *e->block + length);
    if (e->block == NULL)
        return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for an entry", f->path);
    copy = (char *)(e->block + nd);
    memcpy(copy, name, length);
    e->public.name = copy;
    e->public.shape = e->block;
    e->public.nd = (int)nd;
    return TUTTI_OK;
}

static tutti_status read_type(const tutti_safetensors *f, const char *name, const json_t *value,
                              entry *e, int *bits_out)
{
    const char *word = json_string_value(json_object_get(value, "dtype"));
    const int type = word != NULL ? tti_format_find(word) : -1;

    if (word == NULL)
        return broken(f, name, "no 'dtype' that is a word");
    if (type < 0)
        return tti_fail(TUTTI_E_IO, "'%s': tensor '%s': there is no dtype '%s'", f->path,
                        show(name).s, show(word).s);
    e->public.dtype_name = tti_format_at(type)->name;
    e->public.dtype = tti_format_at(type)->dtype;
    *bits_out = tti_format_at(type)->bits;
    return TUTTI_OK;
}

static tutti_status read_shape(const tutti_safetensors *f, const char *name, const json_t *value,
                               entry *e, int64_t *numel_out)
{
    const json_t *shape = json_object_get(value, "shape");
    const size_t nd = json_array_size(shape);
    int64_t numel = 1;
    tutti_status st;

    if (!json_is_array(shape))
        return broken(f, name, "no 'shape' that is a list");
    st = make_block(f, e, name, nd);
    for (size_t d = 0; d < nd && st == TUTTI_OK; d++) {
        if (!whole_number(json_array_get(shape, d), &e->block[d]))
            st = broken(f, name, "a size in 'shape' that is no whole number from 0 on");
        else if (__builtin_mul_overflow(numel, e->block[d], &numel))
            st = broken(f, name, "more elements than can be counted");
    }
    *numel_out = numel;
    return st;
}

static tutti_status read_range(const tutti_safetensors *f, const char *name, const json_t *value,
                               entry *e)
{
    const json_t *range = json_object_get(value, "data_offsets");
    int64_t begin, end;

    if (!json_is_array(range) || json_array_size(range) != 2 ||
        !whole_number(json_array_get(range, 0), &begin) ||
        !whole_number(json_array_get(range, 1), &end))
        return broken(f, name, "no 'data_offsets' of two whole numbers from 0 on");
    if (end < begin || (uint64_t)end > f->data_bytes)
        return tti_fail(TUTTI_E_IO,
                        "'%s': tensor '%s': data_offsets %lld to %lld, of %zu bytes of data%s",
                        f->path, show(name).s, (long long)begin, (long long)end, f->data_bytes,
                        end < begin ? "" : CUT_OFF);
    e->begin = (uint64_t)begin;
    e->end = (uint64_t)end;
    e->public.data = f->data + begin;
    e->public.bytes = (size_t)(end - begin);
    return TUTTI_OK;
}

static tutti_status read_entry(const tutti_safetensors *f, const char *name, const json_t *value,
                               entry *e)
{
    int64_t numel = 0, bits_all;
    tutti_status st;
    int bits = 0;

    if (!json_is_object(value))
        return broken(f, name, "its description is no object");
    st = read_type(f, name, value, e, &bits);
    if (st == TUTTI_OK)
        st = read_shape(f, name, value, e, &numel);
    if (st == TUTTI_OK)
        st = read_range(f, name, value, e);
    if (st != TUTTI_OK)
        return st;
    if (__builtin_mul_overflow(numel, (int64_t)bits, &bits_all) || bits_all % 8 != 0 ||
        (uint64_t)bits_all / 8 != e->end - e->begin)
        return tti_fail(TUTTI_E_IO,
                        "'%s': tensor '%s': %lld elements of %s are not the %llu bytes of its "
                        "data_offsets",
                        f->path, show(name).s, (long long)numel, e->public.dtype_name,
                        (unsigned long long)(e->end - e->begin));
    return TUTTI_OK;
}

static tutti_status read_words(tutti_safetensors *f, json_t *words)
{
    const char *key;
    json_t *value;

    if (!json_is_object(words))
        return tti_fail(TUTTI_E_IO, "'%s': '__metadata__' is no object", f->path);
    json_object_foreach(words, key, value)
    {
        if (!json_is_string(value))
            return tti_fail(TUTTI_E_IO, "'%s': metadata '%s' is no word", f->path, show(key).s);
        if (!tti_words_append(&f->words, key, json_string_value(value)))
            return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for metadata", f->path);
    }
    tti_words_sort(&f->words);
    return TUTTI_OK;
}

/* ---- all of them ------------------------------------------------------------------------------ */

static int by_place(const void *va, const void *vb)
{
    const entry *a = va, *b = vb;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->public.name, b->public.name);
}

static tutti_status check_cover(const tutti_safetensors *f)
{
    uint64_t at = 0;

    for (int64_t i = 0; i < f->n; i++) {
        const entry *e = &f->entries[i];

        if (e->begin != at)
            return tti_fail(
                TUTTI_E_IO, "'%s': tensor '%s' begins at byte %llu of the data, %s byte %llu",
                f->path, show(e->public.name).s, (unsigned long long)e->begin,
                e->begin < at ? "inside of another, which ends at" : "with a gap before it from",
                (unsigned long long)at);
        at = e->end;
    }
    if (at != f->data_bytes)
        return tti_fail(TUTTI_E_IO, "'%s': tensors end at byte %llu of %zu bytes of data", f->path,
                        (unsigned long long)at, f->data_bytes);
    return TUTTI_OK;
}

static const char *name_at(const void *of, int64_t position)
{
    return ((const tutti_safetensors *)of)->entries[position].public.name;
}

static tutti_status read_entries(tutti_safetensors *f, json_t *header)
{
    tutti_status st = TUTTI_OK;
    const char *name;
    json_t *value;

    f->entries = calloc(json_object_size(header) + 1, sizeof *f->entries);
    if (f->entries == NULL)
        return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for its entries", f->path);
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0)
            st = read_words(f, value);
        else
            st = read_entry(f, name, value, &f->entries[f->n++]);
        if (st != TUTTI_OK)
            return st;
    }
    if (f->n > 0)
        qsort(f->entries, (size_t)f->n, sizeof *f->entries, by_place);
    st = check_cover(f);
    if (st == TUTTI_OK && !tti_names_sort(&f->names, name_at, f, f->n))
        st = tti_fail(TUTTI_E_NOMEM, "'%s': no memory for its names", f->path);
    return st;
}

/* Whether a header follows its length, as far as it is there. */
static bool has_header(const tutti_safetensors *f)
{
    return f->map->bytes > LENGTH && f->map->at[LENGTH] == '{';
}

/* The header's length, and where the data are. */
static tutti_status measure(tutti_safetensors *f, size_t *length_out)
{
    const size_t rest = f->map->bytes - LENGTH;
    uint64_t length;

    memcpy(&length, f->map->at, sizeof length);
    length = le64toh(length);
    if (length > TUTTI_SAFETENSORS_HEADER_MAX)
        return tti_fail(TUTTI_E_IO, "'%s': a header of %llu bytes, of at most %d%s", f->path,
                        (unsigned long long)length, TUTTI_SAFETENSORS_HEADER_MAX,
                        has_header(f) ? "" : FOREIGN);
    if (length > rest)
        return tti_fail(TUTTI_E_IO, "'%s': a header of %llu bytes in a file of %zu%s", f->path,
                        (unsigned long long)length, f->map->bytes, has_header(f) ? CUT_OFF : FOREIGN);
    if (length == 0 || !has_header(f))
        return tti_fail(TUTTI_E_IO, "'%s': the header does not begin with '{'%s", f->path, FOREIGN);
    f->data = f->map->at + LENGTH + length;
    f->data_bytes = rest - (size_t)length;
    *length_out = (size_t)length;
    return TUTTI_OK;
}

static tutti_status read_header(tutti_safetensors *f)
{
    json_error_t error;
    json_t *header;
    size_t length = 0;
    tutti_status st = measure(f, &length);

    if (st != TUTTI_OK)
        return st;
    header = json_loadb(f->map->at + LENGTH, length, JSON_REJECT_DUPLICATES, &error);
    if (header == NULL && json_error_code(&error) == json_error_out_of_memory)
        return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for its header", f->path);
    if (header == NULL)
        return tti_fail(TUTTI_E_IO, "'%s': byte %d of the header: %s", f->path, error.position,
                        show(error.text).s);
    st = read_entries(f, header);
    json_decref(header);
    return st;
}

/* ---- public ----------------------------------------------------------------------------------- */

tutti_status tutti_safetensors_open(const char *path, tutti_safetensors **file_out)
{
    tutti_safetensors *f;
    tutti_status st;

    if (path == NULL)
        return tti_fail(TUTTI_E_ARG, "safetensors: no name to open");
    f = calloc(1, sizeof *f);
    if (f != NULL)
        f->path = strdup(path);
    if (f == NULL || f->path == NULL) {
        free(f);
        return tti_fail(TUTTI_E_NOMEM, "'%s': no memory for a handle", path);
    }
    st = map_file(path, &f->map);
    if (st == TUTTI_OK)
        st = read_header(f);
    if (st == TUTTI_OK)
        *file_out = f;
    else
        tutti_safetensors_close(f);
    return st;
}

void tutti_safetensors_close(tutti_safetensors *file)
{
    if (file == NULL)
        return;
    for (int64_t i = 0; i < file->n; i++)
        free(file->entries[i].block);
    free(file->entries);
    tti_names_clear(&file->names);
    tti_words_clear(&file->words);
    map_release(file->map);
    free(file->path);
    free(file);
}

int64_t tutti_safetensors_length(const tutti_safetensors *file)
{
    return file != NULL ? file->n : 0;
}

const tutti_safetensors_entry *tutti_safetensors_at(const tutti_safetensors *file, int64_t i)
{
    return file != NULL && i >= 0 && i < file->n ? &file->entries[i].public : NULL;
}

const tutti_safetensors_entry *tutti_safetensors_find(const tutti_safetensors *file,
                                                      const char *name)
{
    int64_t where;

    if (file == NULL || name == NULL || !tti_names_find(&file->names, name_at, file, name, &where))
        return NULL;
    return &file->entries[file->names.order[where]].public;
}

const char *tutti_safetensors_metadata(const tutti_safetensors *file, const char *key)
{
    return file != NULL && key != NULL ? tti_words_get(&file->words, key) : NULL;
}

/* A tensor over the mapping, or where elements do not lie as they must a copy; NULL and kept. */
static tutti_tensor *tensor_of(const tutti_safetensors *file, const tutti_safetensors_entry *e)
{
    const size_t element = tutti_dtype_size(e->dtype);
    tutti_tensor *t;

    if ((uintptr_t)e->data % element != 0) {
        t = tti_raw_empty(e->dtype, e->nd, e->shape);
        if (t != NULL && e->bytes > 0)
            memcpy(tti_at(t), e->data, e->bytes);
        return t;
    }
    t = tti_raw_external("safetensors", (void *)(uintptr_t)e->data, e->dtype, e->nd, e->shape,
                         NULL);
    if (t == NULL)
        return NULL;
    atomic_fetch_add_explicit(&file->map->refs, 1, memory_order_relaxed);
    t->st->free_ctx = file->map;
    t->st->free_fn = map_dropped;
    return t;
}

static tutti_status take(const tutti_safetensors *file, const tutti_safetensors_entry *e,
                         tutti_tensor **t_out)
{
    const tutti_status before = tti_kept();
    tutti_tensor *t;

    if (e->dtype == TUTTI_DTYPE_COUNT || e->nd > TUTTI_MAX_DIMS)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "'%s': tensor '%s' has %d dimensions of %s, and tensors have no such here",
                        file->path, show(e->name).s, e->nd, e->dtype_name);
    t = tensor_of(file, e);
    if (t != NULL) {
        *t_out = t;
        return TUTTI_OK;
    }
    if (before == TUTTI_OK)
        (void)tti_take_kept();
    return tti_refused() == TUTTI_E_NOMEM
               ? TUTTI_E_NOMEM
               : tti_fail(TUTTI_E_UNSUPPORTED,
                          "'%s': tensor '%s' is %s, which tensors are not here", file->path,
                          show(e->name).s, e->dtype_name);
}

tutti_status tutti_safetensors_tensor(const tutti_safetensors *file, const char *name,
                                      tutti_tensor **t_out)
{
    const tutti_safetensors_entry *e = tutti_safetensors_find(file, name);

    if (e == NULL)
        return tti_fail(TUTTI_E_ARG, "safetensors: %s has no tensor '%s'",
                        file != NULL ? file->path : "(null)", name != NULL ? name : "(null)");
    return take(file, e, t_out);
}

/* Names that metadata ties to a tensor. Words about the whole are no names of tensors, nor is "format". */
static tutti_status add_tied(const tutti_safetensors *f, tutti_state_dict *sd)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < f->words.n && st == TUTTI_OK; i++) {
        const tti_word *w = &f->words.word[i];
        const bool ties = w->key[0] != '\0' && strcmp(w->key, "format") != 0 &&
                          tutti_safetensors_find(f, w->key) == NULL &&
                          tutti_safetensors_find(f, w->value) != NULL;

        if (ties)
            st = tutti_state_dict_set(sd, w->key, tutti_state_dict_get(sd, w->value));
        else
            st = tutti_state_dict_set_metadata(sd, w->key, w->value);
    }
    return st;
}

/* By name, so that each goes to the end of the index. */
static tutti_status add_all(const tutti_safetensors *f, tutti_state_dict *sd)
{
    tutti_status st = TUTTI_OK;

    for (int64_t i = 0; i < f->n && st == TUTTI_OK; i++) {
        const tutti_safetensors_entry *e = &f->entries[f->names.order[i]].public;
        tutti_tensor *t = NULL;

        st = take(f, e, &t);
        if (st == TUTTI_OK)
            st = tutti_state_dict_set(sd, e->name, t);
        tutti_tensor_release(t);
    }
    return st == TUTTI_OK ? add_tied(f, sd) : st;
}

tutti_status tutti_safetensors_load(const char *path, tutti_state_dict **sd_out)
{
    tutti_safetensors *file = NULL;
    tutti_state_dict *sd = NULL;
    tutti_status st = tutti_safetensors_open(path, &file);

    if (st == TUTTI_OK)
        st = tutti_state_dict_create(&sd);
    if (st == TUTTI_OK)
        st = add_all(file, sd);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    tutti_safetensors_close(file);
    return st;
}
