/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state.h - what the files of this room share. */
#ifndef TTI_TRAIN_STATE_STATE_H
#define TTI_TRAIN_STATE_STATE_H

#include <tutti/state.h>
#include "tensor/tensor.h"

/* ---- names.c: an index of names, by binary search. No hash, so that no file can choose names that collide. */
typedef struct tti_names {
    int64_t *order; /* positions, sorted by name */
    int64_t n, room;
} tti_names;
/* The name at a position of whatever is indexed. */
typedef const char *(*tti_name_at)(const void *of, int64_t position);
/* Where name stands in order, or would; true if it is there. */
bool tti_names_find(const tti_names *names, tti_name_at at, const void *of, const char *name,
                    int64_t *where_out);
/* Position n at the place that find gave. False: no memory. */
bool tti_names_insert(tti_names *names, int64_t where);
/* All of 0..n-1 at once. False: no memory. */
bool tti_names_sort(tti_names *names, tti_name_at at, const void *of, int64_t n);
void tti_names_clear(tti_names *names);

/* ---- words.c: pairs of words, sorted by key */
typedef struct tti_word {
    char *key, *value;
} tti_word;
typedef struct tti_words {
    tti_word *word;
    int n, room;
} tti_words;
/* False: no memory. value NULL takes the key out. */
bool tti_words_set(tti_words *words, const char *key, const char *value);
/* The same for a new key, at the end, whatever the order; then sort once. */
bool tti_words_append(tti_words *words, const char *key, const char *value);
void tti_words_sort(tti_words *words);
const char *tti_words_get(const tti_words *words, const char *key);
void tti_words_clear(tti_words *words);

/* ---- format.c: the types of the format, smallest alignment first */
typedef struct tti_format_type {
    const char *name;
    int bits; /* of an element */
    tutti_dtype dtype;
} tti_format_type;
/* Position in the order of alignment; -1: no such type. */
int tti_format_find(const char *name);
int tti_format_of(tutti_dtype dtype);
const tti_format_type *tti_format_at(int position);

/* ---- put_file.c: a file that appears whole */
typedef struct tti_put {
    const char *path; /* borrowed */
    char *part;       /* its name until then; NULL: it has none */
    int dir, fd;
    const char *base; /* of path, behind the folder */
} tti_put;
tutti_status tti_put_begin(tti_put *put, const char *path);
tutti_status tti_put_write(tti_put *put, const void *data, size_t bytes);
/* On the disk and under its name; or, if st is a failure, gone. Returns the first failure. */
tutti_status tti_put_end(tti_put *put, tutti_status st);

#endif
