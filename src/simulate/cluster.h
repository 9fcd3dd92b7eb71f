/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simulate/cluster.h - where the ranks of a simulation are, and what things take there. */
#ifndef TTI_SIMULATE_CLUSTER_H
#define TTI_SIMULATE_CLUSTER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include "coll/cost.h"

/** A message of b bytes, in ns: its sender's core works post + uneven + b * send_byte, then it is latency under way, then
 * its receiver's core works post - uneven + b * recv_byte. */
typedef struct tti_tier {
    double latency;
    double post;
    double uneven; /* where hosts are one machine the kernel receives on the sender's core, mostly */
    double send_byte;
    double recv_byte;
    double bulk_byte; /* at each end, if more, of calls whose buffers outgrow the caches; 0: the same */
} tti_tier;

typedef struct tti_figures {
    tti_machine machine;   /* inside a host; of messages to others it has what the tiers below say */
    tti_tier    local;     /* messages inside a host */
    tti_tier    far;       /* to another one */
    double      port_byte; /* ns that a byte takes a host's port, out or in */
    double      copy_all;  /* and that it takes each of a host's cores, where all copy more than the last cache holds, */
    double      combine_all; /* or combine as much, by byte of input, */
    double      read_main; /* or from there into a core's own cache, */
    double      write_main; /* or back */
    double      store;     /* into what lies in another core's cache, too */
    double      store_out; /* and into what has fallen out of it */
    double      load;      /* of what another core has just stored */
    double      pass;      /* ns of a core, from a process that waits to the next one, of two, */
    double      pass_many; /* and of four; 0: as of two */
} tti_figures;

/** Of the machines that tti_machine_default was measured on, with ports of 10 Gb/s. */
extern const tti_figures tti_figures_default;

/** Ranks are numbered host by host. */
typedef struct tti_cluster {
    int         hosts;
    int         per_host;    /* ranks */
    int         cores;       /* of a host; of all together if they are one machine */
    bool        one_machine; /* hosts are network namespaces of one machine, rank r runs on core r % cores */
    bool        messages_only; /* nothing goes through memory that ranks share */
    double      burst;       /* bytes that a port lets through at once after a rest; 0: none */
    int         rack_hosts;  /* hosts of a rack; 0: one switch for all */
    double      taper;       /* a rack's way to the others is so many times slower than its hosts' ports together */
    tti_figures figures;
} tti_cluster;

static inline int tti_cluster_ranks(const tti_cluster *cluster)
{
    return cluster->hosts * cluster->per_host;
}

static inline int tti_cluster_host(const tti_cluster *cluster, int rank)
{
    return rank / cluster->per_host;
}

/** 0 where there are no racks. */
static inline int tti_cluster_rack(const tti_cluster *cluster, int rank)
{
    return cluster->rack_hosts > 0 ? tti_cluster_host(cluster, rank) / cluster->rack_hosts : 0;
}

static inline int tti_cluster_core(const tti_cluster *cluster, int rank)
{
    return cluster->one_machine ? rank % cluster->cores
                                : tti_cluster_host(cluster, rank) * cluster->cores +
                                      rank % cluster->per_host % cluster->cores;
}

/** Ranks that share a core, at least 1: the busiest core's. */
static inline double tti_cluster_turns(const tti_cluster *cluster)
{
    const int ranks = cluster->one_machine ? tti_cluster_ranks(cluster) : cluster->per_host;

    return ranks > cluster->cores ? (double)ranks / cluster->cores : 1;
}

/** Nothing takes longer in a simulation: 26 days. Two of them fit into a number. */
#define TTI_PS_MAX (INT64_C(1) << 61)

static inline int64_t tti_ps(double ns)
{
    const double ps = floor(ns * 1000 + 0.5);

    return ps < (double)TTI_PS_MAX ? (int64_t)ps : TTI_PS_MAX;
}

#endif
