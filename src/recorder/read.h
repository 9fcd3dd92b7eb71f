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

/** A process, as somebody saw it at one moment. Zeroed: nobody did. */
typedef struct tti_sight {
    int64_t  ns;      /* CLOCK_MONOTONIC */
    uint64_t counter; /* tti_ticks() of the counter, at the same moment; 0: it is not steady here */
    char     state;   /* as /proc/PID/stat has it; '\0': not known */
} tti_sight;

/** See process pid now, on this host. */
void tti_sight_take(int64_t pid, tti_sight *sight_out);

/** Say of a recorder that was read from memory what was seen of its process then, in place of what is seen now: whoever was
 * seen so has ended since, and not by itself. */
void tti_recorder_date(tutti_recorder *recorder, const tti_sight *sight);

/** What is saved of it from now on is written because record id has failed just now; 0: it is not known which. */
void tti_recorder_save_for(tutti_recorder *recorder, uint64_t id);

/** How many groups its process had made. */
uint64_t tti_recorder_made_by(const tutti_recorder *recorder);

/** Name of a kind: "all_reduce"; "?" for none. */
const char *tti_record_kind_name(unsigned kind);

#endif
