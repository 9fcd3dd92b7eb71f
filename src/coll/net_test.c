/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_test.c
 * Goal    a call by messages gives the same bits however it is cut into chunks, how many of those are under way, and
 *         whoever moves it when; calls in lanes of their own go on side by side in any order; what comes a phase ahead
 *         overwrites nothing that is still to be sent, and lands in its own place; what is said of a chunk that cannot
 *         go on names it.
 * Method  Ranks are threads over sockets. Every plan of the table, of all kinds, with parts of equal and of different sizes,
 *         several buffers, and buffers that are one memory, is done once in one piece, and once cut; then all memory that
 *         the call could have touched must be the same. That one piece is right is what coll_values_test asks. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/choose.h"
#include "coll/coll_ranks.h"
#include "coll/net/run.h"

enum { SEGMENTS = 3, NETS = 4, GROUP = 77 };

#ifdef __SANITIZE_THREAD__
static const int sizes[] = { 2, 3 };
enum { LONG = 20011 }; /* each element costs a hundred times as much */
#else
static const int sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
enum { LONG = 150001 };
#endif

/* What a call is like, besides its kind. */
typedef enum call_shape { PLAIN, IN_PLACE, UNEVEN, SEVERAL, SCALED, SHAPES } call_shape;

/* A call of one rank, and all the memory it has to do with: in one block, so that two can be compared. */
typedef struct job {
    tutti_call    call;
    size_t        words;
    uint32_t     *memory; /* in, out, list and ins, of count elements for each rank */
    void         *list[SEGMENTS * TT_RANKS_MOST];
    const void   *ins[TT_RANKS_MOST];
    int64_t       list_counts[TT_RANKS_MOST], in_counts[TT_RANKS_MOST];
    tutti_segment segments[SEGMENTS];
} job;

/* Elements of a segment, or of a part, where they differ: some are empty. */
static int64_t uneven(int64_t count, int i)
{
    return i % 3 == 1 ? 0 : count - count * (i % 4) / 5;
}

static bool is_exchange(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_TO_ALL || kind == TUTTI_CALL_GATHER_V || kind == TUTTI_CALL_SCATTER_V;
}

static bool has_root(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER ||
           kind == TUTTI_CALL_SCATTER || kind == TUTTI_CALL_GATHER_V || kind == TUTTI_CALL_SCATTER_V;
}

static bool reduces(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_REDUCE_SCATTER;
}

/* Slices of a chunk have other owners than those of the whole, of which a ring adds in another order: it gets integers,
 * which have no factors. */
static bool is_there(const tti_algorithm *row, call_shape shape)
{
    const tutti_call_kind kind = row->kind;

    switch (shape) {
    case IN_PLACE: return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_REDUCE_SCATTER;
    case UNEVEN: return kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_REDUCE_SCATTER || is_exchange(kind);
    case SEVERAL: return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_REDUCE_SCATTER;
    case SCALED: return reduces(kind) && row->order != TTI_IN_RING_ORDER;
    default: return true;
    }
}

static int64_t block_count(const tutti_call *call, int64_t count, call_shape shape, int from, int to)
{
    if ((call->kind == TUTTI_CALL_GATHER_V && to != call->root) || (call->kind == TUTTI_CALL_SCATTER_V && from != call->root))
        return 0;
    return shape == UNEVEN ? uneven(count, from * 3 + to * 5) : count;
}

static void make_exchange(job *j, const tt_rank *t, int64_t count, call_shape shape)
{
    int r;

    j->call.count = 0;
    j->call.n_parts = t->size;
    j->call.ins = j->ins;
    j->call.list_counts = j->list_counts;
    j->call.in_counts = j->in_counts;
    for (r = 0; r < t->size; r++) {
        j->list_counts[r] = block_count(&j->call, count, shape, r, t->rank);
        j->in_counts[r] = block_count(&j->call, count, shape, t->rank, r);
    }
}

static void make_uneven(job *j, const tt_rank *t, int64_t count)
{
    int r;

    j->call.count = 0;
    j->call.n_parts = t->size;
    j->call.list_counts = j->list_counts;
    for (r = 0; r < t->size; r++)
        j->call.count += j->list_counts[r] = uneven(count, r);
}

/* Segments one behind the other in the buffers that a call without them has. */
static void make_segments(job *j, const tt_rank *t, int64_t count, uint32_t *in, uint32_t *out)
{
    void  *entries[TT_RANKS_MOST];
    int    s, r;

    memcpy(entries, j->list, (size_t)t->size * sizeof *entries);
    j->call.count = 0;
    for (s = 0; s < SEGMENTS; s++) {
        const int64_t n = uneven(count, s) / SEGMENTS;

        j->segments[s] = (tutti_segment){ .count = n, .in = in + j->call.count, .out = out + j->call.count };
        for (r = 0; r < t->size; r++)
            j->list[s * t->size + r] = (uint32_t *)entries[r] + j->call.count;
        j->call.count += n;
    }
    j->call.in = j->call.out = NULL;
    j->call.n_segments = SEGMENTS;
    j->call.segments = j->segments;
}

static void fill(job *j, tutti_dtype dtype, int rank)
{
    uint32_t x = (uint32_t)rank * 7919u + 17u;
    size_t   i;

    for (i = 0; i < j->words; i++) {
        float value;

        x = x * 1664525u + 1013904223u;
        value = (float)(x >> 12) * (i % 3 == 0 ? 1e-3f : 1e3f) * (i % 2 ? 1.0f : -1.0f);
        if (dtype == TUTTI_F32)
            memcpy(&j->memory[i], &value, sizeof value);
        else
            j->memory[i] = x >> 8;
    }
}

/* Who takes nothing has no place for it. */
static void drop_unused(tutti_call *call, int rank)
{
    const bool is_root = rank == call->root;

    switch (call->kind) {
    case TUTTI_CALL_BROADCAST:
        if (is_root)
            call->out = NULL;
        else
            call->in = NULL;
        break;
    case TUTTI_CALL_REDUCE:
        if (!is_root)
            call->out = NULL;
        break;
    case TUTTI_CALL_GATHER:
    case TUTTI_CALL_SCATTER:
        if (!is_root)
            call->list = NULL;
        break;
    default: break;
    }
}

static job *make(tt_rank *t, const tti_algorithm *row, int64_t count, call_shape shape, uint64_t seq)
{
    job      *j = calloc(1, sizeof *j);
    uint32_t *in, *out, *lists, *ins;
    int       r;

    if (j == NULL)
        abort();
    j->words = (size_t)(2 + 2 * t->size) * (size_t)(count + 1);
    j->memory = calloc(j->words, sizeof *j->memory);
    if (j->memory == NULL)
        abort();
    in = j->memory;
    out = in + count + 1;
    lists = out + count + 1;
    ins = lists + t->size * (count + 1);
    j->call = (tutti_call){ .kind = row->kind, .seq = seq, .op = shape == SCALED ? tutti_premul_sum(1.7) : TUTTI_SUM,
                            .dtype = row->order == TTI_IN_RING_ORDER ? TUTTI_I32 : TUTTI_F32, .count = count,
                            .root = has_root(row->kind) ? (int)(seq % (uint64_t)t->size) : -1,
                            .deadline_ns = t->deadline_ns, .in = in, .out = out, .list = j->list };
    for (r = 0; r < t->size; r++) {
        j->list[r] = lists + r * (count + 1);
        j->ins[r] = ins + r * (count + 1);
    }
    if (shape == IN_PLACE && row->kind == TUTTI_CALL_ALL_GATHER)
        j->list[t->rank] = in;
    if (shape == IN_PLACE)
        j->call.out = row->kind == TUTTI_CALL_REDUCE_SCATTER ? j->list[t->rank] : in;
    if (is_exchange(row->kind))
        make_exchange(j, t, count, shape);
    else if (shape == UNEVEN)
        make_uneven(j, t, count);
    else if (shape == SEVERAL)
        make_segments(j, t, count, in, out);
    drop_unused(&j->call, t->rank);
    if (row->kind == TUTTI_CALL_ALL_REDUCE && shape == PLAIN)
        TT_CHECK(t, j->call.in != j->call.out);
    fill(j, j->call.dtype, t->rank);
    return j;
}

static void drop(job *j)
{
    free(j->memory);
    free(j);
}

static bool enter(tt_rank *t, tti_team *team)
{
    static const int all[TT_RANKS_MOST] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const tti_coll_config config = { .mesh = t->mesh, .messenger = t->messenger, .group_id = GROUP, .rank = t->rank,
                                     .n_ranks = t->size, .ranks = all, .name = "net" };

    TT_CHECK(t, t->messenger != NULL && tti_team_init(team, &config) == TUTTI_OK);
    return t->failure[0] == '\0';
}

static tutti_status begin_cut(tti_net *net, const tti_team *team, int lane, const tti_algorithm *row, const tutti_call *call,
                              int64_t elements, int window)
{
    const tti_call_note note = tti_call_note_of(call);
    const tti_cut       cut = tti_cut_into(call, team->n_ranks, elements, window);

    return tti_net_begin_cut(net, team, lane, row->plan, call, &note, &cut);
}

/* ---- the same bits ---- */

/* How a call is cut: chunks of so many elements, so many under way, on each rank one more: who has a longer way has more. */
typedef struct cut_way {
    int64_t elements;
    int     window;
} cut_way;

static void compare(tt_rank *t, const tti_team *team, tti_net *net, const tti_algorithm *row, int64_t count, call_shape shape,
                    const cut_way *way, uint64_t seq)
{
    job *whole = make(t, row, count, shape, seq);
    job *cut = make(t, row, count, shape, seq);

    cut->call.seq = seq + 1; /* and the root of both is the first one's */
    TT_CHECK(t, begin_cut(net, team, 1, row, &whole->call, INT64_MAX / 4, 1) == TUTTI_OK && tti_net_end(net, team) == TUTTI_OK);
    TT_CHECK(t, begin_cut(net, team, 1, row, &cut->call, way->elements, 1 + (way->window + t->rank) % 16) == TUTTI_OK &&
                    tti_net_end(net, team) == TUTTI_OK);
    if (memcmp(whole->memory, cut->memory, whole->words * sizeof *whole->memory) != 0 && t->failure[0] == '\0')
        snprintf(t->failure, sizeof t->failure, "%s %s, shape %d, %d ranks, %lld elements in chunks of %lld, %d under way",
                 tti_call_kind_name(row->kind), row->name, shape, t->size, (long long)count, (long long)way->elements,
                 way->window);
    drop(whole);
    drop(cut);
}

static void every_plan_however_cut(tt_rank *t)
{
    static const int64_t counts[] = { 0, 1, 37, 400 };
    static const cut_way   ways[] = { { 16, 1 }, { 16, 3 }, { 7, 2 }, { 48, 16 }, { 399, 4 } };
    tti_net              net = { .lane = 0 };
    tti_team             team;
    uint64_t             seq = 1;
    int                  n, i, shape;
    const tti_algorithm *rows = tti_algorithms(&n);
    size_t               c, w;

    if (!enter(t, &team))
        return;
    for (i = 0; i < n; i++)
        for (shape = 0; rows[i].plan != NULL && shape < SHAPES; shape++)
            for (c = 0; is_there(&rows[i], (call_shape)shape) && c < sizeof counts / sizeof counts[0]; c++)
                for (w = 0; w < 2 && t->failure[0] == '\0'; w++, seq += 2) /* in turn, and two for each count */
                    compare(t, &team, &net, &rows[i], counts[c], (call_shape)shape,
                            &ways[(c + 3 * w + (size_t)(i + shape)) % (sizeof ways / sizeof ways[0])], seq);
    tti_net_release(&net);
    tti_team_release(&team);
}

/* Long enough that segments are not packed, and for several messages in a socket. */
static void long_calls_however_cut(tt_rank *t)
{
    static const cut_way   ways[] = { { 4096, 3 }, { 20011, 2 } };
    tti_net              net = { .lane = 0 };
    tti_team             team;
    uint64_t             seq = 1;
    int                  n, i, shape;
    const tti_algorithm *rows = tti_algorithms(&n);
    size_t               w;

    if (!enter(t, &team))
        return;
    for (i = 0; i < n; i++)
        for (shape = 0; rows[i].plan != NULL && shape < SHAPES; shape++)
            for (w = 0; is_there(&rows[i], (call_shape)shape) && w < sizeof ways / sizeof ways[0] && t->failure[0] == '\0';
                 w++, seq += 2)
                compare(t, &team, &net, &rows[i], LONG, (call_shape)shape, &ways[w], seq);
    tti_net_release(&net);
    tti_team_release(&team);
}

/* ---- moved by whom and when ---- */

static const tti_algorithm *row_of(tutti_call_kind kind, const char *name)
{
    return &tti_algorithms(&(int){ 0 })[tti_algorithm_named(kind, name)];
}

/* Several calls in lanes of their own, each rank moving another of them first, and none waiting for any. */
static void side_by_side_in_any_order(tt_rank *t)
{
    const tti_algorithm *rows[NETS] = { row_of(TUTTI_CALL_ALL_REDUCE, "direct"), row_of(TUTTI_CALL_BROADCAST, "binomial"),
                                        row_of(TUTTI_CALL_ALL_REDUCE, "direct"), row_of(TUTTI_CALL_REDUCE, "direct") };
    tti_net              nets[NETS] = { { .lane = 0 } };
    job                 *whole[NETS], *cut[NETS];
    tti_team             team;
    int                  i, round, n_ended;

    if (!enter(t, &team))
        return;
    for (round = 0; round < 5; round++) {
        for (i = 0; i < NETS; i++) {
            whole[i] = make(t, rows[i], 5000 + 100 * i, IN_PLACE, (uint64_t)(round * 2 * NETS + i + 1));
            cut[i] = make(t, rows[i], 5000 + 100 * i, IN_PLACE, whole[i]->call.seq);
            cut[i]->call.seq += NETS;
            TT_CHECK(t, begin_cut(&nets[i], &team, i, rows[i], &whole[i]->call, INT64_MAX / 4, 1) == TUTTI_OK &&
                            tti_net_end(&nets[i], &team) == TUTTI_OK);
        }
        for (i = 0; i < NETS; i++)
            TT_CHECK(t, begin_cut(&nets[i], &team, i, rows[i], &cut[i]->call, 512, 1 + i) == TUTTI_OK);
        do {
            for (n_ended = i = 0; i < NETS && t->failure[0] == '\0'; i++) {
                tti_net *net = &nets[(i * 3 + t->rank) % NETS];

                TT_CHECK(t, tti_net_advance(net, &team) == TUTTI_OK);
                n_ended += tti_net_may_end(net);
                TT_CHECK(t, !tti_net_may_end(net) || tti_net_has_given(net));
            }
            t->port.base.ops->yield(&t->port.base);
        } while (n_ended < NETS && t->failure[0] == '\0');
        for (i = 0; i < NETS; i++) {
            TT_CHECK(t, tti_net_end(&nets[i], &team) == TUTTI_OK);
            TT_CHECK(t, memcmp(whole[i]->memory, cut[i]->memory, whole[i]->words * sizeof *whole[i]->memory) == 0);
            drop(whole[i]);
            drop(cut[i]);
        }
    }
    for (i = 0; i < NETS; i++)
        tti_net_release(&nets[i]);
    tti_team_release(&team);
}

/* ---- a phase ahead ---- */

enum { ROUND = 4 * 1024 * 1024 /* elements: more than sockets hold */ };

static _Atomic bool is_given;

/* Everything two ranks to the left, in place: what the second phase brings overwrites what the first one sends, to
 * another rank. */
static void plan_two_to_the_left(const tti_plan_input *p, tti_schedule *schedule)
{
    const int64_t   bytes = p->count * (int64_t)p->element;
    const tti_block out = { .place = TTI_PLACE_OUT, .bytes = bytes };
    const tti_block between = tti_schedule_scratch(schedule, bytes);
    const int       left = (p->rank + p->n_ranks - 1) % p->n_ranks, right = (p->rank + 1) % p->n_ranks;

    tti_schedule_phase(schedule);
    tti_schedule_send(schedule, left, out);
    tti_schedule_recv(schedule, right, between);
    tti_schedule_phase(schedule);
    tti_schedule_send(schedule, left, between);
    tti_schedule_recv(schedule, right, out);
}

/* Rank 0 comes when rank 2 has given rank 1 what the second phase brings, and rank 1 has not got rid of the first. */
static void what_is_sent_is_not_overwritten(tt_rank *t)
{
    const tti_algorithm row = { .kind = TUTTI_CALL_ALL_REDUCE, .name = "two to the left", .plan = plan_two_to_the_left };
    uint32_t           *x = malloc(ROUND * sizeof *x);
    const tutti_call    call = { .kind = row.kind, .seq = 1, .dtype = TUTTI_U32, .root = -1, .count = ROUND,
                                 .deadline_ns = t->deadline_ns, .in = x, .out = x };
    tti_net             net = { .lane = 0 };
    tti_team            team;
    int64_t             i;

    if (!enter(t, &team) || x == NULL)
        abort();
    for (i = 0; i < ROUND; i++)
        x[i] = (uint32_t)(i + t->rank);
    if (t->rank == 0)
        atomic_store(&is_given, false);
    tt_all_here(t);
    while (t->rank == 0 && !atomic_load(&is_given) && tt_in_ms(0) < t->deadline_ns)
        t->port.base.ops->yield(&t->port.base);
    TT_CHECK(t, begin_cut(&net, &team, 0, &row, &call, ROUND, 1) == TUTTI_OK);
    while (t->rank == 1 && !atomic_load(&is_given) && t->failure[0] == '\0')
        TT_CHECK(t, tti_net_advance(&net, &team) == TUTTI_OK);
    while (t->rank == 2 && !tti_net_has_given(&net) && t->failure[0] == '\0')
        TT_CHECK(t, tti_net_advance(&net, &team) == TUTTI_OK);
    if (t->rank == 2)
        atomic_store(&is_given, true);
    TT_CHECK(t, tti_net_end(&net, &team) == TUTTI_OK);
    for (i = 0; i < ROUND && t->failure[0] == '\0'; i++)
        TT_CHECK(t, x[i] == (uint32_t)(i + (t->rank + 2) % t->size));
    free(x);
    tti_net_release(&net);
    tti_team_release(&team);
}

/* Two messages from the right in the second phase: what the first one brings overwrites what the first phase sends to
 * another rank, and has to wait; what the second brings does not. */
static void plan_two_from_the_right(const tti_plan_input *p, tti_schedule *schedule)
{
    const int64_t   half = p->count / 2 * (int64_t)p->element;
    const tti_block first = { .place = TTI_PLACE_OUT, .bytes = half };
    const tti_block second = { .place = TTI_PLACE_OUT, .offset = half, .bytes = half };
    const tti_block between = tti_schedule_scratch(schedule, half);
    const int       left = (p->rank + p->n_ranks - 1) % p->n_ranks, right = (p->rank + 1) % p->n_ranks;

    tti_schedule_phase(schedule);
    tti_schedule_send(schedule, left, first);
    tti_schedule_recv(schedule, right, between);
    tti_schedule_phase(schedule);
    tti_schedule_send(schedule, left, between);
    tti_schedule_send(schedule, left, (tti_block){ .place = TTI_PLACE_IN, .bytes = half });
    tti_schedule_recv(schedule, right, first);
    tti_schedule_recv(schedule, right, second);
}

static void messages_of_one_rank_keep_their_places(tt_rank *t)
{
    const tti_algorithm row = { .kind = TUTTI_CALL_ALL_REDUCE, .name = "two from the right", .plan = plan_two_from_the_right };
    uint32_t            in[64], out[64];
    const tutti_call    call = { .kind = row.kind, .seq = 1, .dtype = TUTTI_U32, .root = -1, .count = 64,
                                 .deadline_ns = t->deadline_ns, .in = in, .out = out };
    tti_net             net = { .lane = 0 };
    tti_team            team;
    int                 i;

    if (!enter(t, &team))
        return;
    for (i = 0; i < 64; i++) {
        in[i] = (uint32_t)(1000 + 100 * t->rank + i);
        out[i] = (uint32_t)(100 * t->rank + i);
    }
    TT_CHECK(t, begin_cut(&net, &team, 0, &row, &call, 64, 1) == TUTTI_OK && tti_net_end(&net, &team) == TUTTI_OK);
    for (i = 0; i < 32; i++) {
        TT_CHECK(t, out[i] == (uint32_t)(100 * ((t->rank + 2) % t->size) + i));
        TT_CHECK(t, out[32 + i] == (uint32_t)(1000 + 100 * ((t->rank + 1) % t->size) + i));
    }
    tti_net_release(&net);
    tti_team_release(&team);
}

/* ---- what cannot go on ---- */

static void rank_1_stays_away(tt_rank *t)
{
    const tti_algorithm *row = row_of(TUTTI_CALL_ALL_REDUCE, "direct");
    tti_net              net = { .lane = 0 };
    tti_team             team;
    job                 *j;

    if (!enter(t, &team))
        return;
    j = make(t, row, 1000, IN_PLACE, 1);
    tt_all_here(t); /* who came late would be missing, too */
    j->call.deadline_ns = tt_in_ms(600);
    if (t->rank != 1) {
        TT_CHECK(t, begin_cut(&net, &team, 0, row, &j->call, 64, 3) == TUTTI_OK);
        TT_CHECK(t, tti_net_end(&net, &team) == TUTTI_E_TIMEOUT);
        snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
        TT_CHECK(t, tti_net_may_end(&net));
    }
    drop(j); /* nobody writes there any more */
    tt_all_here(t);
    tti_net_release(&net);
    tti_team_release(&team);
}

/* As a gather in turns: the root tells the last rank to begin when it has what the one before gives. */
static void plan_two_turns(const tti_plan_input *p, tti_schedule *schedule)
{
    const tti_block word = { .place = TTI_PLACE_SCRATCH };
    const tti_block block = tti_schedule_scratch(schedule, 4);

    tti_schedule_phase(schedule);
    if (p->rank == p->root)
        tti_schedule_recv(schedule, 1, block);
    if (p->rank == 1)
        tti_schedule_send(schedule, p->root, block);
    if (p->rank == 2)
        tti_schedule_recv(schedule, p->root, word);
    tti_schedule_phase(schedule);
    if (p->rank == p->root)
        tti_schedule_send(schedule, 2, word);
}

/* Rank 2 is the first whose time is up. The root is in the call. */
static void rank_1_holds_up_rank_2(tt_rank *t)
{
    const tti_algorithm row = { .kind = TUTTI_CALL_GATHER, .plan = plan_two_turns };
    tti_net             net = { .lane = 0 };
    tti_team            team;
    job                *j;

    if (!enter(t, &team))
        return;
    j = make(t, &row, 100, PLAIN, 3);
    TT_CHECK(t, j->call.root == 0);
    if (t->rank == 2)
        j->call.deadline_ns = tt_in_ms(200);
    if (t->rank != 1) {
        TT_CHECK(t, begin_cut(&net, &team, 0, &row, &j->call, INT64_MAX / 4, 1) == TUTTI_OK);
        TT_CHECK(t, tti_net_end(&net, &team) == TUTTI_E_TIMEOUT);
        snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    }
    drop(j);
    tt_all_here(t);
    tti_net_release(&net);
    tti_team_release(&team);
}

/* Thousands of round trips, of which each comes soon: all of them do not in a millisecond. */
static void going_on_is_not_coming_to_an_end(tt_rank *t)
{
    const tti_algorithm *row = row_of(TUTTI_CALL_ALL_REDUCE, "direct");
    tti_net              net = { .lane = 0 };
    tti_team             team;
    job                 *j;

    if (!enter(t, &team))
        return;
    j = make(t, row, 160000, IN_PLACE, 1);
    tt_all_here(t);
    j->call.deadline_ns = tt_in_ms(1);
    if (begin_cut(&net, &team, 0, row, &j->call, 16, 1) == TUTTI_OK) /* else it was told already */
        TT_CHECK(t, tti_net_end(&net, &team) == TUTTI_E_TIMEOUT);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    drop(j);
    tt_all_here(t);
    tti_net_release(&net);
    tti_team_release(&team);
}

/* The other rank has another count, and so other chunks. */
static void counts_differ(tt_rank *t)
{
    const tti_algorithm *row = row_of(TUTTI_CALL_ALL_REDUCE, "direct");
    tti_net              net = { .lane = 0 };
    tti_team             team;
    job                 *j;

    if (!enter(t, &team))
        return;
    j = make(t, row, t->rank == 0 ? 1000 : 3000, IN_PLACE, 1);
    TT_CHECK(t, begin_cut(&net, &team, 0, row, &j->call, 64, 3) == TUTTI_OK || t->rank >= 0);
    if (!tti_net_may_end(&net))
        TT_CHECK(t, tti_net_end(&net, &team) == TUTTI_E_MISMATCH);
    snprintf(t->said, sizeof t->said, "%s", tutti_last_error());
    drop(j);
    tt_all_here(t);
    tti_net_release(&net);
    tti_team_release(&team);
}

static void test_every_plan(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];
    size_t  i;

    (void)state;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        tt_run(sizes[i], true, every_plan_however_cut, ranks);
}

static void test_long_calls(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];

    (void)state;
    tt_run(2, true, long_calls_however_cut, ranks);
    tt_run(3, true, long_calls_however_cut, ranks);
}

static void test_rings(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];

    (void)state;
    tt_run(3, false, every_plan_however_cut, ranks);
    tt_run(2, false, long_calls_however_cut, ranks);
}

static void test_side_by_side(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];

    (void)state;
    tt_run(2, true, side_by_side_in_any_order, ranks);
    tt_run(5, true, side_by_side_in_any_order, ranks);
    tt_run(3, false, side_by_side_in_any_order, ranks);
}

static void test_ahead(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];

    (void)state;
    tt_run(4, true, what_is_sent_is_not_overwritten, ranks);
    tt_run(4, true, messages_of_one_rank_keep_their_places, ranks);
    tt_run(3, false, messages_of_one_rank_keep_their_places, ranks);
}

static void test_words(void **state)
{
    tt_rank ranks[TT_RANKS_MOST];
    char    said[sizeof ranks[0].said * 2];

    (void)state;
    tt_run(3, true, rank_1_stays_away, ranks);
    snprintf(said, sizeof said, "%s%s", ranks[0].said, ranks[2].said); /* one may have been told by the other */
    assert_non_null(strstr(said, "all_reduce #1 (sum, 1000 f32) on group 'net' timed out after"));
    assert_non_null(strstr(said, "no message from rank 1"));
    assert_non_null(strstr(said, " (step 1 of 2, chunk 1 of 16)\n  "));
    assert_null(strstr(said, "to begin"));
    tt_run(3, true, rank_1_holds_up_rank_2, ranks);
    assert_non_null(strstr(ranks[2].said, "no message from rank 0; rank 0 has not told this one to begin: it may be waiting for others"));
    tt_run(2, true, going_on_is_not_coming_to_an_end, ranks);
    snprintf(said, sizeof said, "%s%s", ranks[0].said, ranks[1].said);
    assert_non_null(strstr(said, "all_reduce #1 (sum, 160000 f32) on group 'net' timed out after"));
    tt_run(2, true, counts_differ, ranks);
    snprintf(said, sizeof said, "%s%s", ranks[0].said, ranks[1].said);
    assert_non_null(strstr(said, "all_reduce #1 (sum, f32) with other counts"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_plan),   cmocka_unit_test(test_long_calls), cmocka_unit_test(test_rings),
        cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_ahead),      cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
