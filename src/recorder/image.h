/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/image.h - a copy of a recorder's memory whose bounds were checked.
 *
 * Limits  256 MiB in all, and no more than the file has; a head of 64 KiB, entries of 4 KiB; 2^20 records, 1024
 *         groups, 4096 names, 2^17 members: what is compared entry by entry is so small that it ends soon.
 *         Memory is taken for what the file has, not for what it says. */
#ifndef TTI_RECORDER_IMAGE_H
#define TTI_RECORDER_IMAGE_H

#include <stdbool.h>
#include "recorder/layout.h"

typedef struct tti_image {
    uint8_t            *bytes; /* [head.total_bytes] */
    tutti_recorder_head head;  /* of it; what the writer's version has beyond ours is left out, and the reverse is 0 */
    bool                is_shared; /* it was memory, not a file */
} tti_image;

/** Copy the recorder that fd is open on, from its beginning. name is for words.
 * @errors TUTTI_E_IO, TUTTI_E_NOMEM */
tutti_status tti_image_take(int fd, const char *name, tti_image *image_out);
void         tti_image_release(tti_image *image);

/** Entry i of a table, which has that many, as far as this version knows it. False: nobody's, or it was being written, or
 * what is in it does not belong together. */
bool tti_image_record(const tti_image *image, uint32_t i, tutti_recorder_slot *slot_out);
bool tti_image_group(const tti_image *image, uint32_t i, tutti_recorder_group_slot *slot_out);
bool tti_image_name(const tti_image *image, uint32_t i, tutti_recorder_name_slot *slot_out);
/** The members of a group: the list, in the image; NULL: it is not there. */
const int32_t *tti_image_ranks(const tti_image *image, const tutti_recorder_group_slot *group);

/** One entry of shared memory at `at`, whose length is bytes, to out: false if it was written meanwhile, which is tried
 * a few times. */
bool tti_record_copy(const void *at, void *out, size_t bytes);

#endif
