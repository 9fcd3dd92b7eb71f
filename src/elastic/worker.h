/* SPDX-License-Identifier: BSD-3-Clause
 *
 * elastic/worker.h - what a rank is told: its environment and its arguments. */
#ifndef TTI_ELASTIC_WORKER_H
#define TTI_ELASTIC_WORKER_H

#include <tutti/status.h>

/** The job as this host sees it. Borrowed strings. */
typedef struct tti_place {
    int nproc; /* ranks on this host, as on every host */
    int nnodes;
    int node_rank;
    const char *master_addr;
    int master_port;
    const char *run_id;
    const char *secret_file; /* NULL: none */
    const char *spawn_name;  /* NULL: not a spawned function */
    const char *spawn_arg;
    int recorder_fd; /* 0, or below: none */
    int bulletin_fd; /* the same */
} tti_place;

/** The environment of one rank: this process's, with the job's variables put in or taken out; from nproc on that of
 * replacements, which have no rank.
 * @param envp_out  NULL at the end; free with tti_strings_free()
 * @errors TUTTI_E_NOMEM */
tutti_status tti_worker_env(const tti_place *place, int local_rank, char ***envp_out);

/** The arguments of one rank: "${local_rank}" and "$local_rank" in all but the first become its number,
 * "$$" becomes "$", any other "$" stays.
 * @param argv_out  NULL at the end; free with tti_strings_free()
 * @errors TUTTI_E_NOMEM */
tutti_status tti_worker_args(char *const *argv, int local_rank, char ***argv_out);

/** Free a list that ends with NULL. NULL is fine. */
void tti_strings_free(char **strings);

#endif
