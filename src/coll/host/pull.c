/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pull.c - process_vm_readv(): a member copies straight out of another one's buffers.
 *
 * Why     Through slots every byte is copied twice, and its line goes to and fro between two cores. The kernel
 *         needs one copy, and an operation has as many synchronisations for gigabytes as for kilobytes, which is
 *         what counts where ranks share cores. It costs a system call and a walk through page tables.
 * How     Round 0: write addresses into the own slot, set staged; whoever needs them waits for staged, and reads.
 *         Round 1: set staged when all is read; who was read from waits for staged of its readers.
 *         Reading only: nobody ever writes into a buffer of another process.
 * Probe   Whether the kernel allows it (Yama, containers, user ids) is asked by doing it: each member reads the
 *         other's nonce, which is only there if the number means the same process on both sides. What came of it
 *         stands at the head of each region before done of the connecting, round 0 of the channel: so all members
 *         see the same answers, and go the other way alike where one is no.
 * True    An owner's buffer is not touched before all who read from it have said that they are done; then it returns.
 *         An owner that fails returns earlier, after it has set `failed`. Its reader looks at that after the last byte
 *         was copied: either it sees the failure and fails, too, or all was copied before the owner failed. An owner that
 *         has done its part has waited for this reader.
 *         Threads of one process read each other the same way: an owner that has failed may free its buffer at any
 *         time, which the kernel notices and a plain copy would not outlive. */
#include "coll/host/pull.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/uio.h>
#include <tutti/private.h>
#include "coll/host/wait.h"

enum { PIECE = 8 * 1024 * 1024, CAN = 1, CANNOT = 2 };

static ssize_t read_memory(uint64_t pid, uint64_t from, void *to, size_t bytes)
{
    struct iovec here = { to, bytes };
    struct iovec there = { (void *)(uintptr_t)from, bytes }; /* an address of another process */

    return process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);
}

void tti_host_pull_probe(tti_host_channel *channel, const tti_join *joins)
{
    const tti_team *team = channel->team;
    tti_host_lines *own = channel->members[team->rank].lines;
    uint32_t        can = CAN;
    int             r;

    for (r = 0; r < team->n_ranks; r++) {
        uint64_t nonce = 0;

        channel->members[r].pid = joins[r].pid;
        if (r != team->rank && can == CAN &&
            (read_memory(joins[r].pid, joins[r].nonce_at, &nonce, sizeof nonce) != (ssize_t)sizeof nonce ||
             nonce != joins[r].nonce))
            can = CANNOT;
    }
    atomic_store_explicit(&own->pulls, can, memory_order_relaxed); /* done of round 0 comes behind it */
}

tutti_status tti_host_pull_ready(tti_host_channel *channel, bool *ready_out)
{
    const tti_team *team = channel->team;
    tutti_status    st = TUTTI_OK;
    uint32_t        all = CAN;
    int             r;

    for (r = 0; r < team->n_ranks && channel->pulls == 0 && st == TUTTI_OK; r++) {
        if (r != team->rank)
            st = tti_host_wait(channel, r, TTI_DONE, 1);
        if (atomic_load_explicit(&channel->members[r].lines->pulls, memory_order_relaxed) != CAN)
            all = CANNOT;
    }
    if (st != TUTTI_OK)
        return st;
    if (channel->pulls == 0)
        channel->pulls = all;
    *ready_out = channel->pulls == CAN;
    return TUTTI_OK;
}

static uint64_t *table_of(const tti_host_channel *channel, int rank)
{
    return (uint64_t *)(void *)tti_host_staging(channel, rank);
}

_Static_assert(TTI_HOST_RANKS_MAX * sizeof(uint64_t) <= TTI_HOST_CHUNK, "addresses fit a slot");

tutti_status tti_host_pull_show(tti_host_channel *channel, const void *const *addresses, int n)
{
    uint64_t    *table = table_of(channel, channel->team->rank);
    tutti_status st = tti_host_room(channel);
    int          i;

    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < n; i++)
        table[i] = (uint64_t)(uintptr_t)addresses[i];
    tti_host_post(channel, TTI_STAGED);
    return TUTTI_OK;
}

tutti_status tti_host_pull_shown(tti_host_channel *channel, int rank, int i, uint64_t *address_out)
{
    const tutti_status st = tti_host_await(channel, TTI_STAGED, rank);

    if (st == TUTTI_OK)
        *address_out = table_of(channel, rank)[i];
    return st;
}

/* Members whose failure the others have not been told of by an own part that is complete. */
static tutti_status check_failed(tti_host_channel *channel)
{
    const tti_team *team = channel->team;
    tutti_status    st = TUTTI_OK;
    int             r;

    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++)
        if (r != team->rank && atomic_load(&channel->members[r].lines->failed) != TUTTI_OK)
            st = tti_host_look(channel, r, TTI_DONE, channel->end);
    tti_host_end_wait(channel); /* who looks does not wait */
    return st;
}

/* A copy ended with err: the member has failed or is gone, or there is nothing at this address. */
static tutti_status fail_pull(tti_host_channel *channel, int rank, size_t bytes, int err)
{
    const tti_team *team = channel->team;
    char            call[TTI_CALL_TEXT_MAX];
    tutti_status    st = check_failed(channel);

    if (st != TUTTI_OK)
        return st;
    /* It cannot end this call without us, so this ends when its death is seen, a moment later. */
    if (err == ESRCH)
        return tti_host_wait(channel, rank, TTI_DONE, channel->end);
    tti_team_describe(team, &channel->note, call);
    st = tti_fail(TUTTI_E_BACKEND,
                  "%s on group '%s': cannot read %zu bytes of the memory of rank %d (%s): %s\n"
                  "  next: check that the buffers of rank %d are as large as it says, or take another algorithm "
                  "(TUTTI_ALGO)",
                  call, team->name, bytes, team->ranks[rank], tti_mesh_whereabouts(team->mesh, team->ranks[rank]),
                  strerror(err), team->ranks[rank]);
    tti_host_raise_own(channel, st, rank);
    return st;
}

tutti_status tti_host_pull(tti_host_channel *channel, int rank, uint64_t from, void *to, size_t bytes)
{
    const uint64_t pid = channel->members[rank].pid;
    size_t         done = 0;

    while (done < bytes) {
        const size_t  piece = bytes - done < PIECE ? bytes - done : PIECE;
        const ssize_t n = read_memory(pid, from + done, (char *)to + done, piece);

        if (n <= 0)
            return fail_pull(channel, rank, piece, n < 0 ? errno : EFAULT);
        done += (size_t)n;
    }
    return TUTTI_OK;
}

tutti_status tti_host_pull_end(tti_host_channel *channel, int reader)
{
    const int    own = channel->team->rank;
    tutti_status st = TUTTI_OK;

    tti_host_next(channel);
    st = tti_host_room(channel);
    if (st != TUTTI_OK)
        return st;
    tti_host_post(channel, TTI_STAGED);
    if (reader < 0)
        st = tti_host_await_all(channel, TTI_STAGED);
    else if (reader != own)
        st = tti_host_await(channel, TTI_STAGED, reader);
    if (st == TUTTI_OK)
        st = check_failed(channel);
    if (st == TUTTI_OK)
        tti_host_next(channel);
    return st;
}
