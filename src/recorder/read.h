/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/read.h - what the readers of this room share. */
#ifndef TTI_RECORDER_READ_H
#define TTI_RECORDER_READ_H

#include "recorder/image.h"

/** Read the recorder that fd is open on; keeps a descriptor of its own. path is for words.
 * @errors TUTTI_E_IO, TUTTI_E_NOMEM */
tutti_status tti_recorder_read_fd(int fd, const char *path, tutti_recorder **recorder_out);

/** Whether recorder was read from what fd is open on. */
bool tti_recorder_reads_same(const tutti_recorder *recorder, int fd);

const tutti_recorder_head *tti_recorder_head_of(const tutti_recorder *recorder);
const tti_image           *tti_recorder_image_of(const tutti_recorder *recorder);

/** Write into the head of a file what only this reader knows: when it was read, and what its process was then. What a file
 * said that it was read from stays. */
void tti_recorder_sign_file(const tutti_recorder *recorder, tutti_recorder_head *head);

/** Name of a kind: "all_reduce"; "?" for none. */
const char *tti_record_kind_name(unsigned kind);

#endif
