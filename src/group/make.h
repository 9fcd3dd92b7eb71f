/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group/make.h - what the files that make groups share. Each fills an object that tti_group_alloc()
 * gave, opens its stores and its backend, and links it to its world. */
#ifndef TTI_GROUP_MAKE_H
#define TTI_GROUP_MAKE_H

#include "group/group.h"
#include "store/store.h"

/** What others are told of a call that this rank has refused with st: it is wrong, and no lack of something here. */
static inline tutti_status tti_refused_as(tutti_status st)
{
    return st == TUTTI_E_ARG || st == TUTTI_E_UNSUPPORTED ? TUTTI_E_MISMATCH : TUTTI_E_REMOTE;
}

/** A group without stores and backend: free it with tti_group_free(). */
tutti_status tti_group_alloc(int rank, int size, tutti_group **group_out);
/** Free the object and its stores; there is no backend any more. NULL is fine. */
void tti_group_free(tutti_group *group);
/** Serve no longer what is served, and all that is linked to it. NULL is fine. */
void tti_served_free(tti_served *served);
/** Inherit from like, which is of the same world, then apply opts. Name, number and stores are left. */
tutti_status tti_group_inherit(tutti_group *group, const tutti_group *like,
                               const tutti_group_options *opts);
/** The backends of a group like that one, with these options. */
tti_backing tti_backing_like(const tutti_group *like, const tutti_group_options *opts);
/** Whether they can be had, before anybody is met.
 * @errors as tti_routes_find() */
tutti_status tti_backing_check(const tti_backing *backing);
/** The same, and whether they can be used in this process (backend/registry.h), each of them. store: the program's, in which the members
 * will meet; NULL: none.
 * @errors as tti_routes_find() and tti_backend_check_env() */
tutti_status tti_backing_check_env(const tti_backing *backing, tutti_store *store);
/** The end of words for who is refused by the next one, and could name backends. */
#define TTI_NAME_ANOTHER "name another backend in the options of all, as \"native\", or start the job anew with the ranks that are wanted"

/** Whether a group with these backends, which can be had, can be made of more or fewer ranks than the job was started with; next: what
 * to do where not.
 * @errors TUTTI_E_UNSUPPORTED  one of them has none of others; the same on all members with the same backends */
tutti_status tti_backing_check_members(const char *what, const tti_backing *backing, const char *next);
/** Fill group's store, below parent in a folder called key. */
tutti_status tti_group_open_stores(tutti_group *group, const char *key, tutti_store *parent);
/** How a backend is made: each waits for the members until deadline_ns, but for the second. */
typedef enum tti_opening {
    TTI_OPEN_ALONE,
    TTI_OPEN_LAZILY,
    TTI_OPEN_IN_WORLD, /* the world's failure ends the wait */
} tti_opening;

/** Make group's backend. */
tutti_status tti_group_open_backend(tutti_group *group, int64_t deadline_ns, tti_opening opening);
/** A child is whole: its world knows it from now on. */
void tti_group_link(tutti_group *group);

/** End all that is under way in group, and in those that use its connections; in those of a world. They
 * stay, to be destroyed. */
void tti_group_close_all(tutti_group *group, const tti_closing *why);

/* making.c */

/** How a group was made. */
typedef enum tti_made {
    TTI_MADE_BY_OURS,   /* all have met */
    TTI_MADE_BY_OTHERS, /* the same by a backend that is none of the library's: SOON_MS (making.c) */
    TTI_MADE_ALONE,     /* nobody was waited for, or what follows sees to it that nobody leaves */
} tti_made;

/** From tti_making_begin() to tti_making_end() on one thread: the members of a group meet in a store. */
typedef struct tti_making {
    tti_port       *port;
    tutti_store    *store; /* borrowed */
    tutti_group    *world; /* the same; NULL: none is there yet */
    bool            heeds; /* it was well then */
    tti_store_need *need;
    char            below[TTI_GROUP_NAME_MAX + 16];
} tti_making;

/** Before the first thing is asked there: rank comes to the group with its keys in folder of store. world: whose store it is, so that its
 * end is heeded; NULL: none. */
void tti_making_begin(tti_making *making, tti_port *port, tutti_store *store, const char *folder, int rank, tutti_group *world);
/** This rank needs the store no more: it has the group, or cannot have it, with st, which is returned, and whose words stay. If it
 * serves the store, it waits for those that still need it, within bounds that making.c tells. */
tutti_status tti_making_end(tti_making *making, tti_made made, int64_t deadline_ns, tutti_status st);
/** The first or the second, by the backends that it has. */
tti_made tti_made_by(const tutti_group *group);

/* world_create.c */

/** Whether a backend of it is none of the library's own: what those find wrong they do not tell each other as a rule. */
bool tti_group_has_foreign(const tutti_group *group);

/** tti_world_create() of one that is not called "0". */
tutti_status tti_world_create_named(tti_port *port, const tti_backing *backing,
                                    const tti_join *join, const char *name,
                                    tutti_group **group_out);
/** By which rank this process has joined a world of its launcher's job; -1: it has not, or no launcher has started it. */
int tti_world_launched_rank(void);
/** Make a world called name with its keys in the folder key of root; join tells the rest, only its store
 * is not looked at. Those that wait for this rank there hear of it when it cannot be, also from a backend that tells nobody. */
tutti_status tti_world_found(tti_port *port, const tti_backing *backing, const tti_join *join,
                             const char *name, const char *key, tutti_store *root,
                             tutti_group **group_out);
/** For those that wait for rank in the world that is being made with its keys in the folder key of root, should this process end
 * meanwhile: the store tells them, if it can. NULL: it cannot. Take it back when the world is made, or will not be. */
tti_store_will *tti_world_leave_will(tti_port *port, const tti_join *join, tutti_store *root, const char *key);
/** The same under any key of a store: a tti_ending of this process. */
tti_store_will *tti_world_leave_ending(tti_port *port, tutti_store *store, const char *key, int rank, int64_t deadline_ns);
/** What it was left for has come to st, whose words stay. NULL is fine. */
void tti_world_take_back_will(tti_port *port, tti_store_will *will, tutti_status st);
/** A world that is being made, with its keys in folder "0" of root, cannot be, because of this thread's last error, which stays:
 * tell those that wait for others there. Within a second. */
void tti_world_tell_why(tti_port *port, tutti_store *root, tutti_status failure);
/** The same where a group of root's is to be, for those that wait there for the member whose rank in the world is that. */
void tti_group_tell_of(tti_port *port, tutti_store *root, int rank, tutti_status failure);
/** The same of a group with its keys in that folder of world's store, which this rank alone cannot make, for those that look for it
 * there; told is what they fail with. */
void tti_group_tell_in(tutti_group *world, const char *folder, tutti_status told, tutti_status failure);
/** The same of group number id of world. */
void tti_group_tell_why(tutti_group *world, uint32_t id, tutti_status told, tutti_status failure);
/** The same of a group whose store is there, and of which this rank is a member: for those, too, that found connections for it. */
void tti_group_tell_members(tutti_group *group, tutti_status told, tutti_status failure);
/** The members of group were given different lists, as the last error says, which stays: for those that wait in it for anybody. */
void tti_group_tell_mismatch(tutti_group *group);
/** This member makes group with backends that were named: where its carrier has other ones, tell those that wait for it with
 * these. Within a second; says nothing of a store that does not answer. */
void tti_group_tell_otherwise(tutti_group *group, int64_t deadline_ns);
/** The same of one that this rank does not come to because of an earlier failure of this call, the last error. */
void tti_group_tell_left_out(tutti_group *world, uint32_t id, tutti_status failure);
/** Make a world that has met nobody yet: without backend and keys, until it is reconfigured. */
tutti_status tti_world_begin(tti_port *port, const tti_backing *backing, const tti_join *join,
                             tutti_group **group_out);

/* new_group.c */

/** This rank cannot make the group with its keys in that folder of world's store, because of st and the last error, which stay: where
 * only this rank knows, tell those that wait for it there. Within a second. */
void tti_group_refuse(tutti_group *world, const char *folder, tutti_status st);

/* reconfigure.c */

/* handle.c */

enum { TTI_NONCE_TEXT = 32 }; /* characters */

/** Random letters and digits that nobody else has. */
void tti_nonce_text(tti_port *port, char hex_out[TTI_NONCE_TEXT + 1]);
/** Give a new world its handle. */
void tti_handle_make(tti_port *port, tutti_group *world);
/** Whether text has the form of a handle of a world with this backend. */
bool tti_handle_fits(const char *text, const char *backend);

/* subgroups.c */

/** Check lists of ranks, each 0 .. size-1, none of them empty, no two with a rank in common.
 * @errors TUTTI_E_ARG */
tutti_status tti_lists_check(const char *what, int size, const int *const *lists,
                             const int *n_ranks, int n_lists);
/** tti_group_options_read() for calls that more ranks make than the group's members, and in which
 * nothing is local. */
tutti_status tti_joint_options_read(const char *what, const tutti_group_options *opts,
                                    tutti_group_options *known);

/** tti_group_create() of one whose number was taken before. */
tutti_status tti_group_create_numbered(tutti_group *world, uint32_t id, const int *ranks, int n_ranks,
                                       const tutti_group_options *opts, tutti_group **group_out);

/* agreed.c */

/** The numbers of groups that only their members make begin here; the world's end. */
#define TTI_AGREED_FIRST UINT32_C(0x80000000)

/** Call group that, or, if it is too long, its SHA-1. */
tutti_status tti_group_name_by_text(tutti_group *group, const char *text);

enum { TTI_DIGEST_MAX = 41 };

/** The SHA-1 of bytes in hexadecimal. */
tutti_status tti_digest(const void *data, size_t bytes, char hex_out[TTI_DIGEST_MAX]);
/** The SHA-1 of "0_2_5" in hexadecimal. */
tutti_status tti_ranks_digest(const int *ranks, int n, char hex_out[TTI_DIGEST_MAX]);
/** Name group, whose world and ranks are there, after its ranks: the same on all members, and another
 * one each time these ranks make a group so. */
tutti_status tti_group_name_by_ranks(tutti_group *group);
void         tti_local_names_free(tti_local_name *first);
/** Agree with the other members on a number that no other group of the carrier has, through the
 * group's store; waits for nobody.
 * @errors TUTTI_E_MISMATCH  another rank has other members in a group of this name; those that wait there have been told, and nobody
 *                           gets its number any more */
tutti_status tti_group_agree_number(tutti_group *group, int64_t deadline_ns);

/* proposal.c */

/** Propose that number, as a member of group, in the group's store, and take the one that stands there; waits for nobody.
 * @errors as tti_group_agree_number() */
tutti_status tti_group_propose(tutti_group *group, uint32_t number, int64_t deadline_ns);
/** Whether TUTTI_E_MISMATCH was said there to anybody. Within a second; the last error, of status st, stays. */
bool tti_group_is_disputed(tutti_group *group, tutti_status st);

/* ranks.c */

void tti_ranks_sort(int *ranks, int n);
/** Where rank stands in sorted[n], -1: nowhere. */
int tti_rank_find(const int *sorted, int n, int rank);
/** The same for a group's members. */
int tti_group_find(const tutti_group *group, int global_rank);

#endif
