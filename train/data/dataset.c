/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data/dataset.c - pictures with labels: opened, viewed in part, fetched as f32.
 *
 * How     A handle is a range of samples over contents that all views of the same files share. The
 *         contents count their handles and go with the last one. A byte has 256 values, so the
 *         normalised f32 of each is kept in a table. */
#include "data/idx.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>

typedef struct contents {
    atomic_int handles;
    tti_idx images;
    tti_idx labels;
    float normal[256];
} contents;

struct tutti_dataset {
    contents *all;
    int64_t first, count;
};

static void contents_drop(contents *all)
{
    if (atomic_fetch_sub_explicit(&all->handles, 1, memory_order_acq_rel) > 1)
        return;
    free(all->images.bytes);
    free(all->labels.bytes);
    free(all);
}

/* The three roundings of x.div(255).sub(mean).div(std) in f32; -ffp-contract=off keeps them apart.
 */
static void fill_normal(float *normal)
{
    for (int i = 0; i < 256; i++) {
        const float x = (float)i / 255.0f;
        const float centred = x - 0.1307f;

        normal[i] = centred / 0.3081f;
    }
}

static tutti_status contents_read(contents *all, const char *images, const char *labels)
{
    tutti_status st = tti_idx_read(images, TTI_IDX_IMAGES, &all->images);

    if (st == TUTTI_OK)
        st = tti_idx_read(labels, TTI_IDX_LABELS, &all->labels);
    if (st == TUTTI_OK && all->images.count != all->labels.count)
        st = tti_fail(TUTTI_E_IO, "'%s' has %lld pictures, but '%s' has %lld labels", images,
                      (long long)all->images.count, labels, (long long)all->labels.count);
    if (st == TUTTI_OK)
        fill_normal(all->normal);
    return st;
}

static tutti_status handle_new(contents *all, int64_t first, int64_t count, tutti_dataset **ds_out)
{
    tutti_dataset *ds = malloc(sizeof *ds);

    if (ds == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the handle of a data set");
    atomic_fetch_add_explicit(&all->handles, 1, memory_order_relaxed);
    *ds = (tutti_dataset){ .all = all, .first = first, .count = count };
    *ds_out = ds;
    return TUTTI_OK;
}

tutti_status tutti_dataset_open_files(const char *images, const char *labels,
                                      tutti_dataset **ds_out)
{
    contents *all;
    tutti_status st;

    if (images == NULL || labels == NULL || images[0] == '\0' || labels[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a data set needs a file of pictures and a file of labels");
    all = calloc(1, sizeof *all);
    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a data set");
    atomic_init(&all->handles, 1); /* ours, until the handle has its own */
    st = contents_read(all, images, labels);
    if (st == TUTTI_OK)
        st = handle_new(all, 0, all->images.count, ds_out);
    contents_drop(all);
    return st;
}

tutti_status tutti_dataset_open(const char *dir, tutti_dataset_part part, tutti_dataset **ds_out)
{
    static const char *const prefix[] = { "train", "t10k" };
    char *images = NULL, *labels = NULL;
    tutti_status st;

    if (dir == NULL || dir[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a data set needs the name of its directory");
    if (part != TUTTI_DATASET_TRAIN && part != TUTTI_DATASET_TEST)
        return tti_fail(TUTTI_E_ARG, "%d is no part of a data set", (int)part);
    if (asprintf(&images, "%s/%s-images-idx3-ubyte", dir, prefix[part]) < 0)
        images = NULL;
    if (asprintf(&labels, "%s/%s-labels-idx1-ubyte", dir, prefix[part]) < 0)
        labels = NULL;
    if (images != NULL && labels != NULL)
        st = tutti_dataset_open_files(images, labels, ds_out);
    else
        st = tti_fail(TUTTI_E_NOMEM, "no memory for the names of the files in '%s'", dir);
    free(images);
    free(labels);
    return st;
}

tutti_status tutti_dataset_view(const tutti_dataset *ds, int64_t first, int64_t count,
                                tutti_dataset **view_out)
{
    if (first < 0 || count < 0 || first > ds->count || count > ds->count - first)
        return tti_fail(TUTTI_E_ARG, "samples %lld + %lld are not inside of a data set of %lld",
                        (long long)first, (long long)count, (long long)ds->count);
    return handle_new(ds->all, ds->first + first, count, view_out);
}

void tutti_dataset_free(tutti_dataset *ds)
{
    if (ds == NULL)
        return;
    contents_drop(ds->all);
    free(ds);
}

int64_t tutti_dataset_length(const tutti_dataset *ds)
{
    return ds->count;
}

int64_t tutti_dataset_rows(const tutti_dataset *ds)
{
    return ds->all->images.rows;
}

int64_t tutti_dataset_cols(const tutti_dataset *ds)
{
    return ds->all->images.cols;
}

static tutti_status check_index(const tutti_dataset *ds, const int64_t *index, int64_t n)
{
    if (n < 0 || (index == NULL && n > 0))
        return tti_fail(TUTTI_E_ARG, "cannot fetch %lld samples%s", (long long)n,
                        index == NULL ? " without their numbers" : "");
    for (int64_t i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] >= ds->count)
            return tti_fail(TUTTI_E_ARG, "there is no sample %lld in a data set of %lld",
                            (long long)index[i], (long long)ds->count);
    }
    return TUTTI_OK;
}

tutti_status tutti_dataset_fetch(const tutti_dataset *ds, const int64_t *index, int64_t n,
                                 float *images_out, int64_t *labels_out)
{
    const contents *all = ds->all;
    const int64_t pixels = all->images.rows * all->images.cols;
    tutti_status st = check_index(ds, index, n);

    if (st != TUTTI_OK)
        return st;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = ds->first + index[i];
        const uint8_t *from = all->images.bytes + at * pixels;

        for (int64_t k = 0; images_out != NULL && k < pixels; k++)
            images_out[i * pixels + k] = all->normal[from[k]];
        if (labels_out != NULL)
            labels_out[i] = all->labels.bytes[at];
    }
    return TUTTI_OK;
}
