/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/simulate.h - what a collective would take on a cluster that need not exist. tutti.h includes it.
 *
 * A simulation plays what ranks would send, by the plans that the library itself goes by, in virtual time: cores that copy
 * and combine, ports that pass on one thing after the other, messages that are under way. Algorithms inside a host, which
 * work in memory that ranks share, are reckoned by the amounts that the choice of algorithms goes by; and so is what those in
 * two levels do inside hosts. What comes out is a prediction: the same every time, and as good as the figures that it
 * starts from.
 *
 *   tutti_sim_options o = TUTTI_SIM_OPTIONS;
 *   o.hosts = 256;
 *   o.gbit_per_s = 10;
 *   tutti_sim_open(&o, &sim);
 *   tutti_sim_run(sim, &(tutti_sim_call){ .op = "all_reduce", .bytes = 1 << 20 }, &result);
 *
 * How a host and its links are is told by figures (tutti_sim_options.figures), a file of JSON that `tutti sim --fit` writes:
 *
 *   { "tutti_figures": 1,
 *     "host": { "line_ns": 100, "give_ns": 900, "copy_all_ns_per_byte": 0.15, ... },
 *     "far": { "message_us": 30, "post_us": 3, "send_ns_per_byte": 0.2, "recv_ns_per_byte": 0.2, "gbit_per_s": 10 },
 *     "local": { "message_us": 1, "post_us": 0.2, "send_ns_per_byte": 0.1, "recv_ns_per_byte": 0.1 } }
 *
 *   pass_ns      from one process that waits to the next one of a core, of two; pass_many_ns: of four; 0: the same
 *   store_ns_per_byte  into what another core's cache has, too; store_out_ns_per_byte: once it has fallen out of it;
 *                load_ns_per_byte: of what another core has just stored
 *   copy_all_ns_per_byte, combine_all_ns_per_byte, read_main_ns_per_byte, write_main_ns_per_byte
 *                in memory that is in no cache, while all cores do so: from there to there, as input of a sum, into the own cache,
 *                and back
 *   near_bytes, last_bytes  of a core's own cache, and of its part of the last one
 *   message_us   half of the time of an empty message there and back
 *   post_us      what a core has to do for a message that it sends or receives; at most half of message_us
 *   uneven_us    the sender's core works so much more than post_us, and the receiver's so much less: where hosts are one
 *                machine, whose kernel receives on the core that sends; usually 0
 *   bulk_ns_per_byte  what a byte takes at each end, if that is more, in calls whose buffers outgrow a core's caches; usually 0
 *   gbit_per_s   the line rate of a host's port, each way; programs see 94 % of it
 *
 * What is left out is as it usually is; anything else in the file is an error. */
#ifndef TUTTI_SIMULATE_H
#define TUTTI_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/dtype.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A cluster. Initialise with TUTTI_SIM_OPTIONS; zero means the default. Ranks are numbered host by host. */
typedef struct tutti_sim_options {
    size_t      size;
    int         hosts;          /* 0: 1 */
    int         ranks_per_host; /* 0: 1 */
    int         cores;          /* of a host; 0: one for each of its ranks */
    bool        one_machine;    /* the hosts are network namespaces of one machine, whose cores all ranks share; their ports
                                   are shapers, of whose rate programs see 95.6 % */
    bool        messages_only;  /* no memory is shared inside hosts, as with TUTTI_TRANSPORT=tcp */
    double      gbit_per_s;     /* line rate of a host's port, each way; 0: what the figures say */
    double      message_us;     /* half of the time of an empty message to another host and back; 0: the same */
    int         rack_hosts;     /* hosts that share a way to the others; 0: all ports are on one switch */
    double      taper;          /* that way is so many times slower than their ports together; 0: 1 */
    const char *figures;        /* a file; NULL: usual ones */
    int64_t     messages_max;   /* of one call; more are refused; 0: 20 million */
    double      burst_bytes;    /* that a port lets through at once after a rest, as shapers do: what a token bucket holds;
                                   0: none */
    int         calls;          /* a time is that of calls one after the other, as a benchmark makes them: so many, all ranks
                                   meet in between, roots take turns; the median of the later half; 0: 1, after a rest */
} tutti_sim_options;

#define TUTTI_SIM_OPTIONS                                                                              \
    {                                                                                                  \
        sizeof(tutti_sim_options), 0, 0, 0, false, false, 0, 0, 0, 0, 0, 0, 0, 0                       \
    }

typedef struct tutti_sim tutti_sim;

/** A call that all ranks make at the same time. Its root is rank 0. */
typedef struct tutti_sim_call {
    const char *op;        /* as in tutti_algorithm_name(), but for gather_v and scatter_v */
    const char *algorithm; /* NULL: what the library would take */
    int64_t     bytes;     /* of one rank's part, whole elements */
    tutti_dtype dtype;
    bool        informed;  /* without algorithm: the choice knows what a message takes on this cluster. The library does not: between
                              hosts it goes by usual figures, and by the rate of a port if that is lower */
} tutti_sim_call;

/** How a time was come by. */
typedef enum tutti_sim_way {
    TUTTI_SIM_AMOUNTS, /* reckoned: nothing is sent */
    TUTTI_SIM_ALL,     /* played, by all ranks */
    TUTTI_SIM_UNIT     /* played, by the ranks of the first host (or rack), since all others do the same */
} tutti_sim_way;

typedef struct tutti_sim_result {
    const char   *algorithm;  /* a constant */
    tutti_sim_way way;
    double        us;         /* until the last rank has ended; of several calls the median of the later half */
    double        model_us;   /* what the choice of algorithms believes, of this cluster */
    bool          candidate;  /* the library may take it without being asked to */
    int64_t       messages;   /* by all ranks */
    int64_t       far;        /* of them, to other hosts */
    int64_t       bytes;      /* by all ranks */
    int64_t       bytes_far;
    int64_t       port_bytes; /* through the busiest port, out or in */
    int64_t       uplink_bytes; /* through the busiest rack's way to the others, out or in */
    int64_t       events;     /* that were played */
} tutti_sim_result;

/** Describe a cluster. It takes no memory to speak of.
 *
 * @param sim_out  tutti_sim_close() frees it
 *
 * @errors   TUTTI_E_ARG    a number is negative or too large, the taper is below 1, racks do not divide the hosts; or the
 *                          file of figures is not one, in words that have its member
 *           TUTTI_E_IO     the file cannot be read;  TUTTI_E_NOMEM
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_sim_open(const tutti_sim_options *options, tutti_sim **sim_out);

/** NULL is fine.
 *
 * @threads  the last user
 * @source   ours */
TUTTI_API void tutti_sim_close(tutti_sim *sim);

/** What a simulation goes by: the options that it was opened with, in the place of defaults what they stand for, and what
 * its figures say of messages to other hosts. rack_hosts and burst_bytes stay 0 where there are none.
 *
 * @param options_out  initialised with TUTTI_SIM_OPTIONS; figures is NULL afterwards, as their text is not kept
 *
 * @errors   TUTTI_E_ARG  it is NULL, or was not initialised
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_sim_get_options(const tutti_sim *sim, tutti_sim_options *options_out);

/** Predict a call.
 *
 * @units    bytes of one rank's part, as in TUTTI_TUNE: of all_gather, gather, scatter, reduce_scatter and all_to_all
 *           that is what goes between two ranks
 * @errors   TUTTI_E_ARG          there is no such op or algorithm; bytes are no whole elements, or too many
 *           TUTTI_E_UNSUPPORTED  the algorithm cannot serve these ranks, as two_level and leaders cannot if there are no
 *                                several hosts with several ranks that share memory; it needs registered memory; the call
 *                                takes more messages than are allowed, and not all hosts do the same; or it takes more than
 *                                26 days
 *           TUTTI_E_NOMEM
 * @threads  one call at a time on a sim
 * @numbers  the same in every run
 * @cost     about a microsecond for each message and 64 KiB of it, in each call; 12 bytes of memory for each message
 * @source   ours */
TUTTI_API tutti_status tutti_sim_run(tutti_sim *sim, const tutti_sim_call *call, tutti_sim_result *result_out);

/** What the library would take for a call, whether that can be simulated or not.
 *
 * @param name_out  a constant
 *
 * @errors   TUTTI_E_ARG, TUTTI_E_UNSUPPORTED  as tutti_sim_run() without an algorithm
 * @threads  one call at a time on a sim
 * @source   ours */
TUTTI_API tutti_status tutti_sim_choose(const tutti_sim *sim, const tutti_sim_call *call, const char **name_out);

/** Messages as they were measured between two ranks. */
typedef struct tutti_sim_messages {
    double message_us;       /* half of the time of an empty one there and back */
    double post_us;          /* what each of many more takes a core, sent or received */
    double send_ns_per_byte; /* the sender's core */
    double recv_ns_per_byte;
} tutti_sim_messages;

/** Measure what memory and waits take on this machine, and write it to a file of figures, with what was measured of messages.
 * It takes a second or two, and 400 MiB; with more than 16 cores 24 MiB for each. A child process is part of it, for a moment.
 *
 * @param local       messages inside a host, or NULL: usual ones
 * @param far         to another host, or NULL
 * @param gbit_per_s  line rate of a port, each way; 0: usual
 *
 * @errors   TUTTI_E_ARG   a number is negative; TUTTI_E_IO: the file cannot be written; TUTTI_E_NOMEM
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_sim_fit(const char *file, const tutti_sim_messages *local, const tutti_sim_messages *far,
                                     double gbit_per_s);

#ifdef __cplusplus
}
#endif
#endif
