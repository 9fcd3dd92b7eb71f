/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/job_secret.h - a fresh secret for one job, in a file only its owner can reach. */
#ifndef TTI_ELASTIC_JOB_SECRET_H
#define TTI_ELASTIC_JOB_SECRET_H

#include <tutti/status.h>
#include "elastic/keeper.h"

enum { TTI_JOB_PATH_MAX = 512 };

/** Where it lies. Zeroed memory: nowhere. */
typedef struct tti_job_secret {
    char dir[TTI_JOB_PATH_MAX];
    char file[TTI_JOB_PATH_MAX];
    int lock; /* of dir, held while this process lives: a directory that nobody has locked is left over; 0: none */
    tti_keeper keeper; /* removes both and ends the ranks, should this process be killed */
} tti_job_secret;

/** Remove what jobs have left over whose launcher and keeper were both killed, and make a private directory (0700) on a file system in memory, and in it the secret (0600): 32 random
 * bytes as 64 hex digits and a newline.
 * @errors TUTTI_E_IO     no directory can be written to; the text names the last one tried
 *         TUTTI_E_NOMEM  no space there, or no process for the keeper */
tutti_status tti_job_secret_make(tti_job_secret *secret_out);

/** Remove file and directory. "Nowhere" is fine. */
void tti_job_secret_remove(tti_job_secret *secret);

#endif
