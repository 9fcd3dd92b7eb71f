/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faults.c - what goes wrong in a rehearsal: drawn from the seed before it begins, done when the turn comes.
 *
 * A quarter of the seeds have no fault, so that rehearsals also show what must not fail. The first host serves the store: it
 * does not lose its power, unless it is the only one that can. */
#include "rehearse/world.h"

static const char *const names[TUTTI_FAULT_KINDS] = { "kill", "power", "stop", "part", "reset", "clog", "slow", "double" };

const char *tutti_fault_name(tutti_fault_kind kind)
{
    return (unsigned)kind < TUTTI_FAULT_KINDS ? names[kind] : "?";
}

bool tti_fault_is_of_host(tutti_fault_kind kind)
{
    return kind == TUTTI_FAULT_POWER || kind == TUTTI_FAULT_PART || kind == TUTTI_FAULT_CLOG || kind == TUTTI_FAULT_SLOW;
}

static tutti_fault_kind draw_kind(tti_stage *stage, unsigned mask)
{
    tutti_fault_kind kind;

    do
        kind = (tutti_fault_kind)tti_stage_roll(stage, TUTTI_FAULT_KINDS);
    while ((mask >> kind & 1) == 0);
    return kind;
}

static void draw(tti_stage *stage, const tutti_rehearse_options *o, tti_fault *out)
{
    const int     n_ranks = o->hosts * o->ranks_per_host;
    const int64_t most_ns = o->lasts_ms * TTI_MS;

    out->kind = draw_kind(stage, o->faults);
    out->at_step = tti_stage_roll(stage, (uint64_t)o->turns);
    out->target = (int)tti_stage_roll(stage, (uint64_t)(tti_fault_is_of_host(out->kind) ? o->hosts : n_ranks));
    if (out->kind == TUTTI_FAULT_POWER && o->hosts > 1)
        out->target = 1 + (int)tti_stage_roll(stage, (uint64_t)o->hosts - 1);
    /* as often short as long */
    out->lasts_ns = (int64_t)tti_stage_roll(stage, (uint64_t)most_ns) >> tti_stage_roll(stage, 10);
    out->done = false;
}

void tti_faults_draw(tti_stage *stage, const tutti_rehearse_options *o)
{
    int i;

    stage->n_faults = 0;
    if (o->faults_max <= 0 || tti_stage_roll(stage, 4) == 0)
        return;
    stage->n_faults = 1 + (int)tti_stage_roll(stage, (uint64_t)o->faults_max);
    for (i = 0; i < stage->n_faults; i++)
        draw(stage, o, &stage->faults[i]);
}

static tti_process *process_of(tti_stage *stage, int rank)
{
    int i;

    for (i = 0; i < stage->n_processes && stage->processes[i]->rank != rank; i++)
        continue;
    return i < stage->n_processes ? stage->processes[i] : NULL;
}

bool tti_faults_add(tti_stage *stage, tutti_fault_kind kind, int target, int64_t in_turns, int64_t lasts_ns)
{
    const bool of_rank = !tti_fault_is_of_host(kind);
    uint64_t   before;

    if (atomic_load(&stage->over) != 0)
        return true; /* who asks is dead, and alone */
    if (stage->n_faults == TTI_STAGE_FAULTS_ROOM)
        return false;
    before = of_rank ? process_of(stage, target)->turns : stage->steps;
    stage->faults[stage->n_faults++] = (tti_fault){ .kind = kind, .at_step = before + (uint64_t)in_turns, .of_rank = of_rank,
                                                    .target = target, .lasts_ns = lasts_ns };
    return true;
}

/* Not again, and not who has returned. */
static bool kill_process(tti_stage *stage, tti_process *process, bool silently)
{
    if (process->dead || process->done)
        return false;
    process->dead = true;
    process->dead_ns = stage->now_ns;
    stage->n_ranks_left -= process->rank >= 0;
    if (process->rank >= 0)
        stage->lost |= UINT64_C(1) << process->rank;
    if (!silently)
        tti_wires_end_process(stage, process);
    tti_wires_note_end(stage, process);
    return true;
}

static bool power_off(tti_stage *stage, int host)
{
    bool any = false;
    int  i;

    for (i = 0; i < stage->n_processes; i++)
        if (stage->processes[i]->host == host)
            any = kill_process(stage, stage->processes[i], true) || any;
    if (any)
        stage->parted_until[host] = TTI_FOREVER;
    tti_wires_unsettle(stage);
    return any;
}

static bool is_longer(int64_t *until, int64_t end)
{
    if (*until >= end)
        return false;
    *until = end;
    return true;
}

static void remember_length(tti_stage *stage, int64_t ns)
{
    if (ns > stage->longest_ns)
        stage->longest_ns = ns;
}

static bool stop(tti_stage *stage, const tti_fault *fault)
{
    tti_process *process = process_of(stage, fault->target);

    if (process->dead || process->done)
        return false;
    remember_length(stage, fault->lasts_ns);
    return is_longer(&process->stopped_until_ns, stage->now_ns + fault->lasts_ns);
}

static bool part(tti_stage *stage, const tti_fault *fault)
{
    remember_length(stage, fault->lasts_ns);
    tti_wires_unsettle(stage);
    return is_longer(&stage->parted_until[fault->target], stage->now_ns + fault->lasts_ns);
}

static bool do_fault(tti_stage *stage, const tti_fault *fault)
{
    const int64_t end = stage->now_ns + fault->lasts_ns;

    switch (fault->kind) {
    case TUTTI_FAULT_KILL: return kill_process(stage, process_of(stage, fault->target), false);
    case TUTTI_FAULT_POWER: return power_off(stage, fault->target);
    case TUTTI_FAULT_STOP: return stop(stage, fault);
    case TUTTI_FAULT_PART: return part(stage, fault);
    case TUTTI_FAULT_RESET: return tti_wires_reset_one(stage, fault->target);
    case TUTTI_FAULT_CLOG: return is_longer(&stage->clogged_until[fault->target], stage->now_ns + fault->lasts_ns / 8);
    case TUTTI_FAULT_SLOW: return is_longer(&stage->slow_until[fault->target], end);
    case TUTTI_FAULT_DOUBLE: return tti_wires_double_one(stage, fault->target);
    case TUTTI_FAULT_KINDS: break;
    }
    return false;
}

/* What was held back sets out. */
static void end_parts(tti_stage *stage)
{
    int host;

    for (host = 0; host < stage->n_hosts; host++)
        if (stage->parted_until[host] != 0 && stage->parted_until[host] <= stage->now_ns) {
            stage->parted_until[host] = 0;
            tti_stage_note(stage, "heals", host, 0);
            tti_wires_release(stage, host);
        }
}

void tti_faults_do(tti_stage *stage)
{
    int i;

    end_parts(stage);
    for (i = 0; i < stage->n_faults; i++) {
        tti_fault *fault = &stage->faults[i];

        if (fault->done || fault->at_step > (fault->of_rank ? process_of(stage, fault->target)->turns : stage->steps))
            continue;
        fault->done = true;
        tti_stage_note(stage, names[fault->kind], fault->target, fault->lasts_ns);
        stage->n_done[fault->kind] += do_fault(stage, fault);
    }
}

int64_t tti_faults_next(const tti_stage *stage)
{
    int64_t best = TTI_FOREVER;
    int     host;

    for (host = 0; host < stage->n_hosts; host++)
        if (stage->parted_until[host] > stage->now_ns && stage->parted_until[host] < best)
            best = stage->parted_until[host];
    return best;
}
