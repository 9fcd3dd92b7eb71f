/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/regroup.h - groups out of groups: divided into parts, put together, without those that are
 * gone, with other members.
 *
 * What tutti/group.h says of groups holds here. Functions that make a group give TUTTI_NO_GROUP on failure
 * and TUTTI_NON_MEMBER to a rank that is not in it, and to one whose own group is TUTTI_NON_MEMBER. */
#ifndef TUTTI_REGROUP_H
#define TUTTI_REGROUP_H

#include <tutti/group.h>
#include <tutti/init.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Divide a group into groups. All members of parent call it with the same lists, and nobody else.
 *
 * Members of a part wait for each other. Over a backend that splits what parent has, as "nccl" does, all members of parent do,
 * also those that are in no part, and the call has its turn among the collectives of parent. A call that is refused for its
 * lists or options counts, and has its turn, like one that fails later: the next one has the same number on all members.
 *
 * @param parent       any group; its connections are used, and it stays as it is
 * @param split_ranks  [n_lists] lists of ranks of parent (not global ones), of which no two have a rank in
 *                     common; their order does not matter, groups are in the order of parent
 * @param n_ranks      [n_lists] how many each list has
 * @param opts         of every part; NULL: every default, which are parent's time-out and a description
 *                     "<parent>:split:<n>" in the n-th split
 * @param group_out    the part that this rank is in, or TUTTI_NON_MEMBER
 *
 * @errors   TUTTI_E_ARG      no lists, an empty list, a rank out of range, twice, or in two lists, or a bad option; found
 *                            before anything is made. Those that were given others, and wait for this rank in a part,
 *                            are told
 *           TUTTI_E_STATE    there is no world
 *           TUTTI_E_TIMEOUT  a member of the part did not come; the text names it
 *           TUTTI_E_PEER     one of this host is gone, and had not come
 *           TUTTI_E_MISMATCH another rank has other members in this part, or has refused its lists or options; the text
 *                            has its reason, or which rank made the part of which members. One whose lists do not say in which
 *                            part it is, or differ from those of others, tells those of the first 16
 *           TUTTI_E_REMOTE   another member cannot make this part, for want of memory, say; the text has its reason
 *           what finished parent, if it is finished
 * @threads  one at a time per parent
 * @source   torch.distributed.split_group (which needs a group bound to a device, and checks no list beyond
 *           the caller's own) */
TUTTI_API tutti_status tutti_split_group(tutti_group *parent, const int *const *split_ranks,
                                         const int *n_ranks, int n_lists, const tutti_group_options *opts,
                                         tutti_group **group_out);

/** The same with one number instead of lists: ranks that give the same color become a group, in the order of
 * parent. The colors are exchanged, so this is also a collective of parent, in its turn. What is refused before that,
 * for options say, has not begun, and nobody is told: the others wait for this rank's next collective of parent.
 *
 * @param color  below 0: in no group
 * @errors   as tutti_split_group, and tutti_all_gather_into_tensor on parent
 * @threads  one at a time per parent
 * @source   ours (MPI has it with a key) */
TUTTI_API tutti_status tutti_split_group_by_color(tutti_group *parent, int32_t color,
                                                  const tutti_group_options *opts,
                                                  tutti_group **group_out);

/** Put processes of different worlds together in one new world. Members of all the groups that meet call it,
 * with the same store and size. Their groups stay as they are.
 *
 * A process gets its rank from a counter in the store, in order of arrival. Ranks are those of the new
 * world, whose name is "<group>:merge"; end it with tutti_destroy_process_group().
 *
 * @param group  one that the caller is in: gives the time-out and the address to be reached at
 * @param store  that all can reach, for this merging only: a tutti_prefix_store_open() of another will do.
 *               The new world keeps a reference
 * @param size   members of the new world, in all
 * @param opts   NULL: every default, which are group's time-out and backends
 *
 * @errors   TUTTI_E_ARG      no store, size below that of group, or all have come already
 *           TUTTI_E_PEER     one that had come has ended, where store can tell, as a tcp store does; the text names it
 *           TUTTI_E_TIMEOUT  ranks did not come; the text names them
 *           TUTTI_E_UNSUPPORTED  a backend of the result has worlds of all ranks of a job alone ("mpi"), which is said at once
 *           as tutti_create_process_group
 * @threads  any
 * @source   torch.distributed.ProcessGroup.merge_remote_group */
TUTTI_API tutti_status tutti_merge_remote_group(tutti_group *group, tutti_store *store, int size,
                                                const tutti_group_options *opts,
                                                tutti_group **group_out);

/** Flags of tutti_shrink_group. */
enum {
    TUTTI_SHRINK_DEFAULT = 0, /* operations under way are refused */
    TUTTI_SHRINK_ABORT = 1,   /* they end with TUTTI_E_ABORTED first, and stay ended if shrinking fails */
    TUTTI_SHRINK_MINORITY = 2 /* without a list: go on although the others may, too; on all that stay */
};

/** Go on without some members: those that are dead, or those of a list. Only those call it that stay, also when
 * group is finished because a rank has died.
 *
 * Without a list the members that can reach each other agree who goes on: all that are alive and call it, too. A
 * member that is known to be dead is not waited for; one that has fallen silent, because it is stopped or cut off, for four
 * heartbeats (TUTTI_HEARTBEAT_MS, a second at least; or as TUTTI_SILENT_MS says), also where it leads the others; one that
 * lives, and does not come because it still computes, a third of the time-out (a minute at most). Then they go on without.
 * No process is needed for the agreement, not rank 0 and not who serves the store, and one more may die meanwhile: it may be a
 * member of the result still, whose first operation says so then. One that is in the call and slow is waited for as long as one that
 * did not come, while its process is seen to run. All survivors get the same members, or an error. At most one side of a partition
 * goes on: more than half of the members that group has; of two halves that with rank 0; fewer only with TUTTI_SHRINK_MINORITY. With
 * a list the caller answers for that: it names who does not go on, the same on all, and all others must come; where one of them falls
 * silent the call fails on all as soon, and when the time of the first is up it is up for all. Whose list leaves a member with
 * another list, or with none, is told so, and so is that one, in whatever order they come; if that one has gone on before, it is
 * TUTTI_E_STATE. Those that have one list go on if it leaves nobody else: what those say whom it excludes is nothing to them. All
 * that were told call it again, and who does waits for those that have not yet: one that calls it for the first time may be told
 * once more of what the others passed before, and has to call it again, too. Two that exclude each other do not meet; one that waits
 * in vain for others says what the other one passed. One that is to stay may be in a collective of group instead: that is told on
 * both sides, and finishes group, which may be shrunk then.
 *
 * On success group is destroyed, with the groups that were made from it, and the result has connections of
 * its own, so that nothing an excluded rank still does can reach it. Members keep their order and are
 * numbered anew. A world becomes a world: NULL means it where it meant the old one, and its ranks are the
 * global ones from now on (tutti_get_former_rank() tells the old). A subgroup stays a group of its world:
 * global ranks are as before. On failure group is there still, and the call may be repeated. Who goes on without a list says in its
 * log who is left out although it may live. With a list, where a member that is to stay refuses to begin, the others return with its
 * reason, 0.2 s later or, in a group of many, up to 2 s, and as long again over a backend that is not the library's own. Who calls it
 * again before that member does is told the same once more.
 *
 * The survivor with the lowest rank serves a store for the new group. Where the store that the world was found with is
 * alive (`tutti run` serves it), it stays what it was, also if it is stopped for less than a silent member is waited for and less
 * than a quarter of the time-out. Where it is dead, because rank 0 served it, or silent for longer, handles on it lead to
 * the new one afterwards: what the program had put there is lost, and a warning says so. If it was only stopped, it sends
 * whoever comes to it by tutti_join_group() to the new one when it goes on; behind a list, or with
 * TUTTI_SHRINK_MINORITY, only if all that are left out are dead, as others may live in it still. Of a subgroup that holds for its
 * members, until its world goes on: then all members of that get a new one; and its store is there until the world of who serves
 * it ends, also when that one has destroyed the group while others still make parts of it. In a store that another program
 * serves (torchrun's) waits cannot be ended from here: there it takes half a minute to go on after one more death, if that comes
 * while the new group is made. `tutti run` ends all processes when one fails, unless it is told --on-failure=keep.
 *
 * @param ranks_to_exclude  ranks of group (not global ones); NULL: whoever is dead
 * @param n_ranks           0 with NULL
 * @param flags             TUTTI_SHRINK_DEFAULT, or some of TUTTI_SHRINK_ABORT and TUTTI_SHRINK_MINORITY
 * @param opts              NULL: every default: time-out, backends and timing as group has them
 * @param group_out         the new group, called "<group>:shrink"
 *
 * @errors   TUTTI_E_ARG          a list without ranks, one out of range or twice, all of them, unknown flags, or a
 *                                group of one
 *           TUTTI_E_STATE        this rank is to be excluded, or the others have gone on without it; with a list: one that was
 *                                to stay has left group, so it has gone on or ended, which nobody can tell; operations are
 *                                under way; or the caller is a callback or a hook that group waits for
 *           TUTTI_E_PEER         one that was to stay is dead, or nobody knows how it ended; or too few are left. The text says which
 *           TUTTI_E_MISMATCH     the members passed different lists; the text has two of them, and who passed which. With a list: one that
 *                                was to stay waits in a collective of group; the text has both calls. That is known only where the
 *                                members can talk without a store
 *           TUTTI_E_REMOTE       with a list: a member that was to stay has refused; the text has its reason
 *           TUTTI_E_TIMEOUT      a member that was to stay did not come; the text names it
 *           TUTTI_E_UNSUPPORTED  no list, and the members cannot talk to each other without a store, because of the
 *                                backend, or because TUTTI_PORT_RANGE has fewer than 4 ports for each rank; or a backend of the
 *                                result has worlds of all ranks of a job alone ("mpi"), which is said at once
 * @threads  one, when no other thread is inside a call on group, or about to use groups made from it
 * @source   torch.distributed.shrink_group; without a list: ours */
TUTTI_API tutti_status tutti_shrink_group(const int *ranks_to_exclude, int n_ranks, tutti_group *group,
                                          unsigned flags, const tutti_group_options *opts,
                                          tutti_group **group_out);

/** Let processes that have just been started into a world that is at work, behind its members. All members call it, in the
 * turn of their collectives, with the same arguments; each newcomer calls tutti_join_group() with the store that the world
 * was found with, and the same name. Where that store died with rank 0, it is the fresh one that tutti_shrink_group() has
 * made, at another port: a warning in the log names its address, and so does the text of TUTTI_E_TIMEOUT. One that was only
 * stopped sends newcomers there itself.
 *
 * On success group is destroyed, with the groups that were made from it, and the result, a world called "0:grow", has all
 * of them: members keep their ranks, newcomers come behind them in the order in which they asked. NULL means it where it
 * meant the old one. On failure group is there still. What newcomers need to know of the work, the members send
 * them then: nothing of the group's past is known to them.
 *
 * @param group      a world
 * @param name       of 1 .. 64 bytes; NULL: "default"
 * @param n_new      how many are awaited; 0: those that have asked already. If nobody has, group_out is group, as it was
 * @param opts       NULL: every default: time-out, backends and timing as group has them
 * @param group_out  the new world, or group
 *
 * @errors   TUTTI_E_ARG          a bad name or number
 *           TUTTI_E_STATE        operations are under way; or the caller is a callback or a hook that group waits for
 *           TUTTI_E_UNSUPPORTED  group is no world; or a backend of the result has worlds of all ranks of a job alone ("mpi"), which
 *                                is said at once
 *           TUTTI_E_MISMATCH     another member was given arguments that are wrong, or another name or number; the text says which
 *                                rank, and what. Or it has called something else, which ends group as it does in collectives
 *           TUTTI_E_REMOTE       another member cannot take part: operations are under way there; the text says the same
 *           TUTTI_E_PEER         a member has ended, or a newcomer that had a place; or a replacement before it was let in, whether it
 *                                had asked or not, and its launcher starts no other one, which is said once: a later
 *                                call waits for those that others start. The text names it
 *           TUTTI_E_TIMEOUT      fewer have asked, or one did not come; the text says how many, or which
 *           what the store or a collective on group fails with
 * @units    ms. The time-out of opts, else that of group, is for waiting for newcomers, for rank 0, and for making the
 *           world, and not for each of them: newcomers are waited for three quarters of it. Members that come at different
 *           times have the time of the first to come; who waits for rank 0's answer, as it is stopped or the store is, may wait
 *           2 s longer than that, so that nobody gives group up for an answer that is under way
 * @threads  one, when no other thread is inside a call on group
 * @source   ours */
TUTTI_API tutti_status tutti_grow_group(tutti_group *group, const char *name, int n_new,
                                        const tutti_group_options *opts, tutti_group **group_out);

/** Come into a world whose members call tutti_grow_group(), and wait for it. A process that has no world gets this one as
 * its own, which NULL means.
 *
 * @param opts       how to reach the store that the world was found with: store, or init_method (env:// under `tutti run`);
 *                   rank and world_size do not count, group_name and enable_reconfigure neither. NULL: every default
 * @param name       as the members'; NULL: "default"
 *
 * @errors   TUTTI_E_TIMEOUT  nobody let this process in
 *           TUTTI_E_PEER     nobody can any more: it is a replacement of `tutti run`, or a rank of it that was left out, and all members
 *                            have ended; or one that was to be in the new world has ended
 *           TUTTI_E_NETWORK  the store is lost; or it says that the members have gone on with another one, which is not there
 *           TUTTI_E_REMOTE   the members' call has failed before it could give this process a place, or one that was to be in
 *                            the new world cannot make it: another call may do
 *           as tutti_create_process_group
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_join_group(const tutti_init_options *opts, const char *name, tutti_group **group_out);

/** How a world gets other members. Initialise with TUTTI_RECONFIGURE_OPTIONS. */
typedef struct tutti_reconfigure_options {
    size_t             size;
    int64_t            uuid;      /* the same on all members, used once in a store */
    const char *const *handles;   /* of all members, this one's included: rank = position */
    int                n_handles;
    bool               as_set;    /* handles come in any order: ranks are in the order of their texts */
    int64_t            timeout_ms; /* 0: as the world */
} tutti_reconfigure_options;

#define TUTTI_RECONFIGURE_OPTIONS                                                                      \
    {                                                                                                  \
        sizeof(tutti_reconfigure_options), 0, 0, 0, 0, 0                                               \
    }

/** What other processes put into tutti_reconfigure_options.handles for this world: a text that is the world's
 * for its life, to be handed to them in whatever way there is.
 *
 * @param group  a world
 * @errors   none; NULL for a subgroup, a non-member or without a world
 * @threads  any; the string is the world's and lives as long
 * @source   torch.distributed.ProcessGroup.get_reconfigure_handle */
TUTTI_API const char *tutti_get_reconfigure_handle(const tutti_group *group);

/** Give a world other members, in place: processes that were in it, that were in others, or that have met
 * nobody yet (tutti_init_options.enable_reconfigure). All of them call it with the same options.
 *
 * On success rank, size and connections are new, the numbers of operations and groups begin anew, a failure
 * is forgotten, and device meshes on the world, like what tutti_get_process_group_ranks() gave, are over;
 * operations under way end with TUTTI_E_ABORTED, or with TUTTI_E_PEER where the other side was faster. On
 * failure the world is as it was; try again with another uuid. Members meet in the store that they joined
 * with, which must be one and the same.
 *
 * @param group  a world, from which no groups are made: destroy them first
 *
 * @errors   TUTTI_E_ARG          no handles, one that is malformed or there twice; this world's is missing
 *           TUTTI_E_STATE        the uuid was used before; there are groups made from the world; or the
 *                                caller is a callback or a hook that it waits for
 *           TUTTI_E_MISMATCH     another member has other handles
 *           TUTTI_E_PEER         a member that had come has ended, where the store can tell; the text names it
 *           TUTTI_E_TIMEOUT      a member did not come; the text names it
 *           TUTTI_E_UNSUPPORTED  group is no world; or there are more or fewer handles than group has members, and its backend has
 *                                worlds of all ranks of a job alone ("mpi")
 *           what the store fails with
 * @units    ms
 * @threads  one, when no other thread is inside a call on group
 * @source   torch.distributed.ProcessGroup.reconfigure (which returns a work that is complete) */
TUTTI_API tutti_status tutti_reconfigure(tutti_group *group, const tutti_reconfigure_options *opts);

/** The rank that a member had in the group this one was shrunk from; -1: not shrunk, or no such member.
 * @threads any
 * @source ours */
TUTTI_API int tutti_get_former_rank(const tutti_group *group, int group_rank);

#ifdef __cplusplus
}
#endif
#endif
