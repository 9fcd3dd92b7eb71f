/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parallel/assign.h - which parameter goes into which bucket: arithmetic alone. */
#ifndef TTI_PARALLEL_ASSIGN_H
#define TTI_PARALLEL_ASSIGN_H

#include <stdbool.h>
#include <tutti/dtype.h>

#define TTI_MIB           (INT64_C(1) << 20)
#define TTI_FIRST_BUCKET  TTI_MIB
#define TTI_BUCKET_CAP    (25 * TTI_MIB)
#define TTI_NO_LIMIT      INT64_MAX

/** Something to be put into a bucket. */
typedef struct tti_sized {
    tutti_dtype dtype;
    int64_t     bytes;
} tti_sized;

/** Buckets, in one order or another: bucket b has params[first[b]] .. params[first[b + 1] - 1]. */
typedef struct tti_layout {
    int      n_params;
    int      n_buckets;
    int     *params; /* [n_params] */
    int     *first;  /* [n_buckets + 1] */
    int64_t *limits; /* [n_buckets] what each was closed by; unset where made from lengths */
} tti_layout;

/** Fill buckets one after the other, one open at a time for each dtype; one is closed after what reaches its limit was
 * added, and each dtype goes on to the next limit on its own.
 *
 * @param limits  [n_limits] 1 or more; the last one holds for all that follow
 * @param order   [n] the order in which items come, whose buckets then come in the order in which they are full, and
 *                those that never are by their first item; NULL: 0 .. n-1, and buckets by their first item
 * @errors TUTTI_E_NOMEM */
tutti_status tti_assign_buckets(const tti_sized *items, int n, const int64_t *limits, int n_limits, const int *order,
                                tti_layout *layout_out);

/** Make room for n_params in at most n_params buckets. */
tutti_status tti_layout_create(int n_params, tti_layout *layout_out);
void         tti_layout_release(tti_layout *layout);
/** The last bucket first. */
tutti_status tti_layout_reverse(tti_layout *layout);
/** Whether it has each of n_params once, and no bucket is empty. */
bool tti_layout_is_whole(const tti_layout *layout);

/** What buckets may have. */
typedef struct tti_caps {
    const int64_t *list; /* [n_list] */
    int            n_list;
    int64_t        cap; /* 0: unset */
    bool           find_unused;
    bool           static_graph;
} tti_caps;

/** The limits of the first buckets, and of the rebuilt ones: room for 2, or the caller's list.
 * @return how many limits there are */
int tti_initial_limits(const tti_caps *caps, int64_t room[2], const int64_t **limits_out);
int tti_rebuilt_limits(const tti_caps *caps, int64_t room[2], const int64_t **limits_out);

#endif
