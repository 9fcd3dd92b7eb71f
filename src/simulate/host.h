/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/host.h - what a call takes in memory that the ranks of a host share. */
#ifndef TTI_SIMULATE_HOST_H
#define TTI_SIMULATE_HOST_H

#include "coll/choose.h"
#include "simulate/cluster.h"

/** ns of a call by a row that has staged, among the ranks of the cluster's one host. bytes: of one rank's part. */
double tti_sim_host_time(const tti_cluster *cluster, const tti_algorithm *row, int64_t bytes);

#endif
