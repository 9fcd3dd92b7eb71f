/* SPDX-License-Identifier: BSD-3-Clause
 *
 * schedule.c - making schedules, and the steps of one that need nobody else.
 *
 * Making one cannot fail half-way: when memory runs out the schedule is marked full and takes
 * nothing more, so that plans read as straight lines and their caller asks once, at the end. */
#include "coll/net/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void *row_add(tti_schedule *schedule, tti_row *row, size_t item)
{
    const int room = row->room > 0 ? 2 * row->room : 16;
    void     *grown;

    if (schedule->full)
        return NULL;
    if (row->n == row->room) {
        grown = realloc(row->items, (size_t)room * item);
        if (grown == NULL) {
            schedule->full = true;
            return NULL;
        }
        row->items = grown;
        row->room = room;
    }
    return (char *)row->items + (size_t)row->n++ * item;
}

void tti_schedule_clear(tti_schedule *schedule)
{
    schedule->phases.n = schedule->sends.n = schedule->recvs.n = 0;
    schedule->steps.n = schedule->inputs.n = schedule->reads.n = 0;
    schedule->scratch_bytes = 0;
    schedule->sizes_phase = 0;
    schedule->full = false;
}

void tti_schedule_release(tti_schedule *schedule)
{
    free(schedule->phases.items);
    free(schedule->sends.items);
    free(schedule->recvs.items);
    free(schedule->steps.items);
    free(schedule->inputs.items);
    free(schedule->reads.items);
    *schedule = (tti_schedule){ 0 };
}

static tti_phase *last_phase(tti_schedule *schedule)
{
    assert(schedule->full || schedule->phases.n > 0);
    return schedule->full ? NULL : (tti_phase *)schedule->phases.items + schedule->phases.n - 1;
}

void tti_schedule_phase(tti_schedule *schedule)
{
    tti_phase *phase = row_add(schedule, &schedule->phases, sizeof *phase);

    if (phase != NULL)
        *phase = (tti_phase){ schedule->sends.n, schedule->recvs.n, schedule->steps.n };
}

static void add_transfer(tti_schedule *schedule, tti_row *row, tti_transfer what)
{
    tti_transfer *transfer = row_add(schedule, row, sizeof *transfer);

    if (transfer != NULL)
        *transfer = what;
}

void tti_schedule_send_beside(tti_schedule *schedule, int peer, tti_block block, int beside)
{
    add_transfer(schedule, &schedule->sends, (tti_transfer){ .peer = peer, .block = block, .beside = beside });
    if (!schedule->full)
        last_phase(schedule)->sends_end = schedule->sends.n;
}

void tti_schedule_send(tti_schedule *schedule, int peer, tti_block block)
{
    tti_schedule_send_beside(schedule, peer, block, 0);
}

static void add_recv(tti_schedule *schedule, tti_transfer what)
{
    add_transfer(schedule, &schedule->recvs, what);
    if (!schedule->full)
        last_phase(schedule)->recvs_end = schedule->recvs.n;
}

void tti_schedule_recv(tti_schedule *schedule, int peer, tti_block block)
{
    add_recv(schedule, (tti_transfer){ .peer = peer, .block = block });
}

void tti_schedule_recv_at_most(tti_schedule *schedule, int peer, tti_block block)
{
    add_recv(schedule, (tti_transfer){ .peer = peer, .block = block, .at_most = true });
}

static void add_step(tti_schedule *schedule, bool reduces, bool partial, tti_block to)
{
    tti_step *step = row_add(schedule, &schedule->steps, sizeof *step);

    if (step == NULL)
        return;
    *step = (tti_step){ .reduces = reduces, .partial = partial, .to = to, .first = schedule->inputs.n };
    last_phase(schedule)->steps_end = schedule->steps.n;
}

void tti_schedule_reduce(tti_schedule *schedule, tti_block to)
{
    add_step(schedule, true, false, to);
}

void tti_schedule_partial(tti_schedule *schedule, tti_block to)
{
    add_step(schedule, true, true, to);
}

/* reads has a place for every input there is, which is enough for those of any one step. */
void tti_schedule_input(tti_schedule *schedule, tti_block from)
{
    tti_block *input = row_add(schedule, &schedule->inputs, sizeof *input);

    if (input == NULL || row_add(schedule, &schedule->reads, sizeof(const void *)) == NULL)
        return;
    *input = from;
    ((tti_step *)schedule->steps.items)[schedule->steps.n - 1].n++;
}

void tti_schedule_copy(tti_schedule *schedule, tti_block to, tti_block from)
{
    add_step(schedule, false, false, to);
    tti_schedule_input(schedule, from);
}

void tti_schedule_tells_sizes(tti_schedule *schedule)
{
    schedule->sizes_phase = schedule->phases.n - 1;
}

tti_block tti_schedule_scratch(tti_schedule *schedule, int64_t bytes)
{
    const tti_block block = { .place = TTI_PLACE_SCRATCH, .offset = schedule->scratch_bytes,
                              .bytes = bytes };

    schedule->scratch_bytes += (bytes + 63) & ~INT64_C(63);
    return block;
}

const tti_transfer *tti_phase_sends(const tti_schedule *schedule, int k, int *n_out)
{
    const tti_phase *phases = schedule->phases.items;
    const int        begin = k > 0 ? phases[k - 1].sends_end : 0;

    *n_out = phases[k].sends_end - begin;
    return *n_out > 0 ? (const tti_transfer *)schedule->sends.items + begin : NULL;
}

const tti_transfer *tti_phase_recvs(const tti_schedule *schedule, int k, int *n_out)
{
    const tti_phase *phases = schedule->phases.items;
    const int        begin = k > 0 ? phases[k - 1].recvs_end : 0;

    *n_out = phases[k].recvs_end - begin;
    return *n_out > 0 ? (const tti_transfer *)schedule->recvs.items + begin : NULL;
}

static tti_bound part_of(const tti_binding *binding, int part)
{
    if (binding->parts != NULL)
        return binding->parts[part];
    return (tti_bound){ .in = binding->in, .out = binding->out, .list = binding->list };
}

static char *place_at(const tti_binding *binding, const tti_block *block)
{
    switch (block->place) {
    case TTI_PLACE_IN: /* plans never write there */
        return (char *)(uintptr_t)part_of(binding, block->part).in;
    case TTI_PLACE_OUT: return part_of(binding, block->part).out;
    case TTI_PLACE_LIST: return part_of(binding, block->part).list[block->index];
    case TTI_PLACE_INS: return (char *)(uintptr_t)binding->ins[block->index];
    case TTI_PLACE_SIZES: return binding->sizes;
    case TTI_PLACE_SCRATCH: return binding->scratch;
    }
    return NULL;
}

void *tti_block_at(const tti_binding *binding, const tti_block *block)
{
    return block->bytes > 0 ? place_at(binding, block) + block->offset : NULL;
}

static void do_step(const tti_schedule *schedule, const tti_step *step, const tti_binding *binding)
{
    const tti_block *inputs = (const tti_block *)schedule->inputs.items + step->first;
    const void     **reads = schedule->reads.items;
    void            *to = tti_block_at(binding, &step->to);
    int              i;

    if (step->to.bytes == 0)
        return;
    for (i = 0; i < step->n; i++)
        reads[i] = tti_block_at(binding, &inputs[i]);
    if (step->reduces)
        tti_reduce(step->partial ? binding->partial : binding->kernel, to, reads, step->n, step->to.bytes / (int64_t)binding->element,
                   binding->n_ranks);
    else if (to != reads[0])
        memmove(to, reads[0], (size_t)step->to.bytes);
}

void tti_phase_steps(const tti_schedule *schedule, int k, const tti_binding *binding)
{
    const tti_phase *phases = schedule->phases.items;
    int              i;

    for (i = k > 0 ? phases[k - 1].steps_end : 0; i < phases[k].steps_end; i++)
        do_step(schedule, (const tti_step *)schedule->steps.items + i, binding);
}

/* ---- several schedules as one ---- */

static tti_block moved(tti_block block, int part, int64_t scratch_at)
{
    block.part = part;
    if (block.place == TTI_PLACE_SCRATCH)
        block.offset += scratch_at;
    return block;
}

static void join_step(tti_schedule *schedule, const tti_schedule *from, const tti_step *step,
                      int part, int64_t scratch_at)
{
    const tti_block *inputs = (const tti_block *)from->inputs.items + step->first;
    int              i;

    add_step(schedule, step->reduces, step->partial, moved(step->to, part, scratch_at));
    for (i = 0; i < step->n; i++)
        tti_schedule_input(schedule, moved(inputs[i], part, scratch_at));
}

void tti_schedule_join(tti_schedule *schedule, const tti_schedule *from, int k, int part,
                       int64_t scratch_at)
{
    const tti_phase    *phases = from->phases.items;
    const tti_step     *steps = from->steps.items;
    int                 n_sends, n_recvs, i;
    const tti_transfer *sends = tti_phase_sends(from, k, &n_sends);
    const tti_transfer *recvs = tti_phase_recvs(from, k, &n_recvs);

    for (i = 0; i < n_sends; i++)
        tti_schedule_send_beside(schedule, sends[i].peer, moved(sends[i].block, part, scratch_at), sends[i].beside);
    for (i = 0; i < n_recvs; i++)
        add_recv(schedule, (tti_transfer){ .peer = recvs[i].peer, .block = moved(recvs[i].block, part, scratch_at),
                                           .at_most = recvs[i].at_most });
    for (i = k > 0 ? phases[k - 1].steps_end : 0; i < phases[k].steps_end; i++)
        join_step(schedule, from, &steps[i], part, scratch_at);
}
