/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet_signs.c - descriptors that the members of a host hand to each other, and what is said with them.
 *
 * How     One end is real, the office or a member that visits it; the port plays the others. They answer as they should, with
 *         descriptors of real heaps, until the input says otherwise: another notice, other ranks, other descriptors, fewer of them, the
 *         end of a stream. A visitor hears what the input says from the beginning. What is handed over are descriptors that the kernel
 *         knows nothing of (fuzz/descriptors.h), open on what the heaps are.
 * Holds   It comes to an end; every descriptor that was handed over is closed, once; a member that was taken over has a heap
 *         with its token. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz/descriptors.h"
#include "transport/meet.h"

enum { SIGNS = 4, PORTION = TTI_FDS_MAX / SIGNS, FEW = 4, MANY = PORTION + 4, STREAMS = 5000, NOTICES_MAX = 4000 };

/* As meet_signs.c has it: both ends are one version. */
typedef struct notice {
    uint32_t what;
    int32_t  n;
    int32_t  ranks[PORTION];
} notice;

enum { ASK = 1, GIVE, TAKEN };

typedef struct stage {
    tti_port   port; /* first */
    int64_t    now_ns;
    tt_input   in;
    bool       visits;
    int        n_heard, n_handed;
    uint32_t   asked[MANY]; /* the notice that each member of the host is to answer; 0: none */
    tti_mesh   mesh;
    tti_member members[MANY];
    tti_card   cards[MANY];
} stage;

static stage     s;
static tti_heap *heaps[MANY];
static int       nothing = -1; /* a descriptor of /dev/null */
static int       plain = -1;   /* of memory that is no heap */

static void make_once(void)
{
    uint8_t token[TTI_TOKEN_BYTES] = { 0 };
    int     r;

    if (nothing >= 0)
        return;
    for (r = 0; r < MANY; r++) {
        token[0] = (uint8_t)(r + 1);
        TT_MUST(tti_heap_create(token, tti_directory_words(MANY), &heaps[r]) == TUTTI_OK);
    }
    plain = memfd_create("plain", MFD_CLOEXEC);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    TT_MUST(plain >= 0 && nothing >= 0);
}

/* ---- the port ---- */

static int64_t port_now(tti_port *port)
{
    (void)port;
    return s.now_ns;
}

static void port_sleep(tti_port *port, int64_t until_ns)
{
    (void)port;
    s.now_ns = until_ns > s.now_ns ? until_ns : s.now_ns;
}

static void port_close(tti_port *port, tti_handle handle)
{
    (void)port;
    if (handle >= 0 && (handle < STREAMS || handle >= TT_FD_FIRST))
        TT_MUST(close(handle) == 0); /* once */
}

/* Now and then it is not ready until the time is up. */
static int port_poll(tti_port *port, tti_poll *set, int n, int64_t deadline_ns)
{
    TT_MUST(n == 1 && set->handle >= STREAMS);
    if (s.in.left > 0 && *s.in.at == 0xfe) {
        port_sleep(port, deadline_ns);
        return 0;
    }
    set->got = set->want;
    return 1;
}

static void told(tti_handle to, const void *data, size_t bytes)
{
    uint32_t what;

    TT_MUST(to >= STREAMS && to < STREAMS + MANY && bytes == sizeof(notice));
    memcpy(&what, data, sizeof what);
    s.asked[to - STREAMS] = what;
}

static int64_t port_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts)
{
    (void)port;
    TT_MUST(n_parts == 1);
    told(handle, parts[0].data, parts[0].size);
    return (int64_t)parts[0].size;
}

static int port_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds, int n_fds)
{
    const uint8_t how = s.in.left > 0 ? *s.in.at : 0;

    (void)port;
    TT_MUST(n_fds <= TTI_FDS_MAX); /* all are open; one of them is asked for each time, as they go to each member */
    TT_MUST(n_fds == 0 || fcntl(fds[s.n_handed++ % n_fds], F_GETFD) >= 0);
    if (how >= 0xf8) { /* the kernel refuses */
        (void)tt_take(&s.in, 1);
        return how == 0xf8 ? -EAGAIN : how == 0xf9 ? -ETOOMANYREFS : -EPIPE;
    }
    told(handle, data, bytes);
    return 0;
}

/* One of the descriptors of a member: its heap, or something else. */
static int sign_of(int rank, uint8_t how)
{
    const int from = how == 0 ? (rank >= 0 && rank < MANY ? tti_heap_fd(heaps[rank]) : plain)
                              : how % 3 == 0 ? nothing : how % 3 == 1 ? plain : tti_heap_fd(heaps[how % MANY]);

    return tt_fd_like(from);
}

static int64_t hand_over(const notice *n, void *out, size_t bytes, int *fds, int max, int *n_fds_out, int n_signs, uint8_t how)
{
    int i;

    TT_MUST(bytes == sizeof *n);
    memcpy(out, n, sizeof *n);
    for (i = 0; i < n_signs && i < max; i++)
        fds[i] = sign_of(i % SIGNS == 0 && i / SIGNS < PORTION ? n->ranks[i / SIGNS] : -1, i % SIGNS == 0 ? how : 3);
    *n_fds_out = i;
    return sizeof *n;
}

/* What a member of the host says to the office that has said something to it. */
static int64_t answer(int rank, void *out, size_t bytes, int *fds, int max, int *n_fds_out, uint8_t how)
{
    notice n = { .what = s.asked[rank] == ASK ? GIVE : TAKEN };

    if (n.what == GIVE) {
        n.n = 1;
        n.ranks[0] = rank;
    }
    return hand_over(&n, out, bytes, fds, max, n_fds_out, n.n * SIGNS, how);
}

/* What the office says to its visitor, or anybody who says what he should not. */
static int64_t make_up(void *out, size_t bytes, int *fds, int max, int *n_fds_out)
{
    const uint8_t how = (uint8_t)tt_take(&s.in, 1);
    notice        n = { .what = how & 3, .n = (int32_t)(how >> 2 & 7) };
    int           i;

    if (how & 0x20)
        n.n = (int32_t)tt_take(&s.in, 4);
    for (i = 0; i < 8; i++)
        n.ranks[i] = how & 0x40 ? (int32_t)tt_take(&s.in, 4) : (int32_t)tt_take(&s.in, 1);
    i = n.what == GIVE && n.n <= PORTION && n.n > 0 ? n.n * SIGNS : 0;
    return hand_over(&n, out, bytes, fds, max, n_fds_out, how & 0x80 ? (int)tt_take(&s.in, 1) : i, how & 0x80 ? (uint8_t)tt_take(&s.in, 1) : 0);
}

static int64_t port_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds, int max, int *n_fds_out)
{
    const uint8_t how = (uint8_t)tt_take(&s.in, 1);

    (void)port;
    *n_fds_out = 0;
    TT_MUST(handle >= STREAMS && handle < STREAMS + MANY && max <= TTI_FDS_MAX && ++s.n_heard < NOTICES_MAX);
    if (how >= 0xf0)
        return how == 0xf0 ? -EAGAIN : how == 0xf1 ? 0 : how == 0xf2 ? -EMFILE : how == 0xf3 ? -EMSGSIZE : -ECONNRESET;
    if (how == 0xef) { /* a part of one, with descriptors */
        for (*n_fds_out = 0; *n_fds_out < 5; ++*n_fds_out)
            fds[*n_fds_out] = sign_of(-1, 1);
        return 7;
    }
    if (s.visits || how >= 0xe0)
        return s.in.left > 0 ? make_up(out, bytes, fds, max, n_fds_out) : 0;
    return answer(handle - STREAMS, out, bytes, fds, max, n_fds_out, how >= 0xd0 ? how : 0);
}

static const tti_port_ops port_ops = { .name = "host", .now_ns = port_now, .sleep_until = port_sleep, .close = port_close, .poll = port_poll,
                                       .send = port_send, .send_fds = port_send_fds, .recv_fds = port_recv_fds };

/* ---- the ends ---- */

static void open_stage(uint8_t flags, int rank)
{
    const int n = flags & 2 ? MANY : FEW;
    int       r;

    s.port.ops = &port_ops;
    s.now_ns = TTI_SECOND;
    s.n_heard = s.n_handed = 0;
    s.visits = (flags & 1) != 0;
    memset(s.asked, 0, sizeof s.asked);
    memset(s.members, 0, sizeof s.members);
    s.mesh = (tti_mesh){ .port = &s.port, .rank = rank, .n_ranks = n, .few_files = (flags & 4) != 0, .members = s.members, .cards = s.cards };
    for (r = 0; r < n; r++) {
        s.members[r].bell = s.members[r].pidfd = s.members[r].registered_fd = -1;
        memset(s.cards[r].token, 0, sizeof s.cards[r].token);
        s.cards[r].token[0] = (uint8_t)(r + 1);
        s.cards[r].host_hint[0] = flags & 8 && r == n - 1; /* the last one is elsewhere */
    }
    s.members[rank] = (tti_member){ .heap = heaps[rank], .bell = nothing, .pidfd = nothing, .registered_fd = nothing };
}

static void close_stage(void)
{
    int r;

    for (r = 0; r < s.mesh.n_ranks; r++) {
        tti_member *m = &s.members[r];

        if (r == s.mesh.rank || m->heap == NULL)
            continue;
        TT_MUST(tti_heap_head_of(m->heap)->token[0] == (uint8_t)(r + 1));
        tti_heap_free(m->heap);
        port_close(&s.port, m->bell);
        port_close(&s.port, m->pidfd);
        port_close(&s.port, m->registered_fd);
        tti_foreign_free(m->registered);
    }
}

static tutti_status be_office(void)
{
    int              ranks[MANY];
    tti_handle       streams[MANY];
    const tti_office office = { .mesh = &s.mesh, .ranks = ranks, .n = s.mesh.n_ranks, .streams = streams, .deadline_ns = 60 * TTI_SECOND };
    int              r;

    for (r = 0; r < MANY; r++) {
        ranks[r] = r;
        streams[r] = r == s.mesh.rank ? TTI_NO_HANDLE : STREAMS + r;
    }
    return tti_office_exchange(&office);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_status st;

    make_once();
    s.in = tt_input_of(data, size);
    open_stage((uint8_t)tt_take(&s.in, 1), size > 0 ? data[0] & 1 : 0);
    st = s.visits ? tti_office_visit(&s.mesh, STREAMS, 0, s.mesh.n_ranks, 60 * TTI_SECOND) : be_office();
    TT_MUST(st == TUTTI_OK || strlen(tutti_last_error()) > 0);
    close_stage();
    TT_MUST(tt_fds_open() == 0); /* an input leaves none */
    return 0;
}
