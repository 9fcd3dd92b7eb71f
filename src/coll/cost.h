/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/cost.h - what a call costs by an algorithm: what a rank has to do, times what that takes here. */
#ifndef TTI_COLL_COST_H
#define TTI_COLL_COST_H

/** What things take, in ns. */
typedef struct tti_machine {
    double line;        /* a line that one core writes, until another one has read it */
    double give;        /* the core, to the next thread that can run, until that one has it */
    double copy;        /* a byte, from and to the own caches */
    double copy_far;    /* a byte, beyond them */
    double fetch;       /* a byte that another core has just written */
    double combine;     /* a byte of input of a reduction */
    double pull;        /* a byte that the kernel copies from another process */
    double pull_call;   /* a system call that does */
    double message;     /* one to another host, until it is there */
    double post;        /* one that is sent or received beside others */
    double wire;        /* a byte to another host; */
    double at_once;     /* so many bytes pass a link at once that has not been used for a while, and */
    double wire_at_once; /* take so much each, from one that sends */
    double cache_bytes; /* of a core */
    double near_bytes;  /* of the cache that a core has for itself */
    double last_bytes;  /* a core's part of the last one */
    double crowd;       /* ranks that share a core, where all hosts of the world are one machine; 0: they are not */
} tti_machine;

/** Of the kind of machine that is around, for what was not measured. */
extern const tti_machine tti_machine_default;
/** The same where all hosts of a world are one machine, as containers are, whose cores carry every message. crowd: ranks
 * that share one. */
tti_machine tti_machine_of_hosts(double crowd);

/** Those figures were measured with up to 8 ranks; with many the shortest way among them would be a root that speaks with
 * each, and has a connection to each. Larger worlds go by the usual ones. */
enum { TTI_HOSTS_HERE_MOST = 16 };

/** A link was found on which a byte takes wire ns, and which lets so many bytes pass at once after a rest. If it is no slower than those
 * that the figures are of, a byte takes what they say, as what it takes the cores is in them, too; and nothing changes but where all
 * hosts are one machine, on whose links nothing but a shaper holds a byte up: what it lets through at once is known. */
void tti_machine_know_link(tti_machine *machine, double wire, double at_once);

/** What the rank that has most to do does in one call. Bytes are copied where they are written by it. */
typedef struct tti_amounts {
    double meets;    /* times that it waits for all, one after the other */
    double hears;    /* times that it waits for one, one after the other */
    double copied;   /* bytes it copies of its own */
    double fetched;  /* bytes it reads of what others have written */
    double combined; /* bytes of input that its kernels read */
    double yields;   /* times that ranks which share cores have to come one after the other; for crowd */
    double pulled;   /* bytes it copies through the kernel */
    double pulls;    /* in so many system calls */
    double messages; /* phases with messages, one after the other */
    double posts;    /* messages in all, sent and received */
    double posts_all; /* those of all ranks; 0: each has as many */
    double sent;     /* bytes that pass the links of ranks which wait for one another, one way, one after the other */
    double link;     /* bytes that pass one rank's link, one way, in the whole call; 0: as many as are sent */
    double carried;  /* bytes that each rank sends, on average; for crowd */
    double chunks;   /* into which the call is cut, several under way; 0 or 1: it is not */
    double rooted;   /* 1: all that is sent passes the link of the one rank that all send to, or get it from */
    double from_all; /* bytes that one rank takes in, of what several send at the same time; 0: one sends, or it is long */
    double alone_fetched;  /* as fetched and combined, but by one rank, while the others have nothing to do */
    double alone_combined;
    double has_root; /* 1: calls in a row need not use the same links, which have time for the next one */
} tti_amounts;

/** The amounts of a call: P ranks, bytes of one rank's part. */
typedef tti_amounts tti_amounts_of(double ranks, double bytes);

/** ns. turns: ranks that share a core, at least 1. The same on all machines: nothing here is rounded in
 * more ways than one. */
double tti_cost(const tti_amounts *amounts, const tti_machine *machine, double turns, double ranks,
                double bytes);

/* Of the algorithms in choose.c, by what they do. */
tti_amounts_of tti_amounts_meet;           /* nothing but all come, all go */
tti_amounts_of tti_amounts_all_one_phase;  /* everybody combines everything */
tti_amounts_of tti_amounts_all_sliced;     /* each combines its slice, all copy all slices */
tti_amounts_of tti_amounts_root_one_phase; /* the root combines everything */
tti_amounts_of tti_amounts_root_sliced;    /* each combines its slice, the root copies all slices */
tti_amounts_of tti_amounts_one_to_all;     /* the root stages, the others copy */
tti_amounts_of tti_amounts_one_in_pieces;  /* the same, one piece while the next is staged */
tti_amounts_of tti_amounts_all_parts;      /* each stages its part, and copies all */
tti_amounts_of tti_amounts_root_parts;     /* the root copies the parts of all, to or from slots */
tti_amounts_of tti_amounts_own_slices;     /* each stages a part for each other, and combines its own */
tti_amounts_of tti_amounts_blocks;         /* each stages a block for each other, after their sizes */

tti_amounts_of tti_amounts_one_pulled;     /* each reads a part from the root's buffer */
tti_amounts_of tti_amounts_parts_pulled;   /* each, or the root, reads the parts of all others */
tti_amounts_of tti_amounts_own_pulled;     /* each reads the others' contributions to its part */
tti_amounts_of tti_amounts_all_pulled;     /* the same with slices, then each reads those of all others */

tti_amounts_of tti_amounts_net_dissemination;    /* tokens to 1, 2, 4, ... further */
tti_amounts_of tti_amounts_net_tokens;           /* a token to everybody */
tti_amounts_of tti_amounts_net_all_to_all_one;   /* everything to everybody, combined there in one go */
tti_amounts_of tti_amounts_net_all_to_all_tree;  /* or two by two */
tti_amounts_of tti_amounts_net_all_by_others;    /* the same by way of others, combined in one go */
tti_amounts_of tti_amounts_net_slices;           /* slices to owners, combined there in one go, to all */
tti_amounts_of tti_amounts_net_slices_tree;      /* or two by two */
tti_amounts_of tti_amounts_net_doubling;         /* all of it to 1, 2, 4, ... seats further, and back */
tti_amounts_of tti_amounts_net_halving;          /* a half, a quarter, ..., and back */
tti_amounts_of tti_amounts_net_ring;             /* slices around the circle, twice */
tti_amounts_of tti_amounts_net_to_root;          /* everything to the root */
tti_amounts_of tti_amounts_net_slices_to_root;   /* slices to owners, combined there in one go, to the root */
tti_amounts_of tti_amounts_net_slices_to_root_tree; /* or two by two */
tti_amounts_of tti_amounts_net_climb;            /* up a tree of radix 2, combined on the way */
tti_amounts_of tti_amounts_net_climb4;           /* of radix 4 */
tti_amounts_of tti_amounts_net_chain_up;         /* around the circle to the root, combined on the way */
tti_amounts_of tti_amounts_net_tree;             /* down a tree of radix 2 */
tti_amounts_of tti_amounts_net_tree4;            /* of radix 4 */
tti_amounts_of tti_amounts_net_from_root;        /* everything from the root to all */
tti_amounts_of tti_amounts_net_slices_from_root; /* a slice to each, and from each to the others */
tti_amounts_of tti_amounts_net_chain;            /* from neighbour to neighbour */
tti_amounts_of tti_amounts_net_parts;            /* a part to each, and from each, in one phase */
tti_amounts_of tti_amounts_net_parts_ring;       /* parts around the circle */
tti_amounts_of tti_amounts_net_bruck;            /* parts of 1, 2, 4, ... ranks in a message */
tti_amounts_of tti_amounts_net_root_parts;       /* a part to each from the root */
tti_amounts_of tti_amounts_net_parts_to_root;    /* from each to it, and its word where not all go at once */
tti_amounts_of tti_amounts_net_subtrees;         /* up or down a tree, parts of a subtree in a message */
tti_amounts_of tti_amounts_net_own_slices;       /* a part to each owner, combined there in one go */
tti_amounts_of tti_amounts_net_own_slices_tree;  /* or two by two */
tti_amounts_of tti_amounts_net_own_bruck;        /* parts by way of others, combined by their owners */
tti_amounts_of tti_amounts_net_halving_parts;    /* a half of all parts, a quarter, ... */
tti_amounts_of tti_amounts_net_ring_parts;       /* parts around the circle, combined on the way */
tti_amounts_of tti_amounts_net_blocks;           /* sizes and short blocks, then long ones */
tti_amounts_of tti_amounts_net_journeys;         /* the same, sizes and short blocks by way of others */

#endif
