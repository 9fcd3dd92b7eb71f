/* SPDX-License-Identifier: BSD-3-Clause
 *
 * made_recorder.c - the layout of tutti/recorder.h, written by hand. */
#include "made_recorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

void made_begin(made_recorder *m, int rank, int world_size, const char *host, int64_t now_ns, int64_t real_ns)
{
    memset(m, 0, sizeof *m);
    m->head = (tutti_recorder_head){
        .version = TUTTI_RECORDER_VERSION, .head_bytes = sizeof m->head, .total_bytes = sizeof *m,
        .records_at = offsetof(made_recorder, records), .groups_at = offsetof(made_recorder, groups),
        .names_at = offsetof(made_recorder, names), .ranks_at = offsetof(made_recorder, ranks),
        .record_bytes = sizeof m->records[0], .record_count = MADE_RECORDS, .group_bytes = sizeof m->groups[0],
        .group_count = MADE_GROUPS, .name_bytes = sizeof m->names[0], .name_count = MADE_NAMES, .rank_count = MADE_RANKS,
        .clock = TUTTI_CLOCK_MONOTONIC, .pid = 1000 + rank, .pid_began = 1, .rank = rank, .world_size = world_size,
        .job = "made", .program = "program", .boot = "no boot of any machine", .ticks_first = 1, .mono_first_ns = 1,
        .real_first_ns = 1 + real_ns, .ticks_last = (uint64_t)now_ns, .mono_last_ns = now_ns, .use = TUTTI_RECORDER_IN_USE,
    };
    memcpy(m->head.magic, TUTTI_RECORDER_MAGIC, sizeof m->head.magic);
    snprintf(m->head.host, sizeof m->head.host, "%s", host);
}

void made_group(made_recorder *m, int place, const char *name, const int *ranks, int n)
{
    tutti_recorder_group_slot *g = &m->groups[place];
    int                        i, at = place * (MADE_RANKS / MADE_GROUPS);

    *g = (tutti_recorder_group_slot){ .turn = 2, .number = (uint32_t)place, .flags = 1, .rank = m->head.rank, .size = n,
                                      .world_rank = m->head.rank, .ranks_at = ranks != NULL ? at : -1,
                                      .made = (uint64_t)place + 1, .backend = "native" };
    snprintf(g->name, sizeof g->name, "%s", name);
    snprintf(g->world, sizeof g->world, "world of %d", m->head.rank);
    for (i = 0; i < n && ranks != NULL; i++) {
        m->ranks[at + i] = ranks[i];
        if (ranks[i] == m->head.rank)
            g->rank = i;
    }
}

void made_world(made_recorder *m, int place, uint64_t id, int generation, int rank, int follows)
{
    tutti_recorder_group_slot *g = &m->groups[place];

    g->world_id = id;
    g->generation = (uint32_t)generation;
    g->world_size = (uint32_t)g->size;
    g->rank = g->world_rank = rank;
    g->number = 0;
    snprintf(g->world, sizeof g->world, "world %llu of %d", (unsigned long long)id, m->head.rank);
    if (follows < 0)
        return;
    g->follows = m->groups[follows].made;
    m->groups[follows].flags = 0;
}

static uint64_t check_of(const tutti_recorder_slot *s)
{
    const uint64_t x = s->id ^ s->call ^ s->seq ^ s->place ^ s->count ^ s->began;

    return (x ^ x >> 16 ^ x >> 32 ^ x >> 48) & 0xffff;
}

void made_add(made_recorder *m, const made_op *op)
{
    const uint64_t       id = ++m->head.issued;
    tutti_recorder_slot *s = &m->records[(id - 1) % MADE_RECORDS];
    const uint64_t       status = op->state == TUTTI_RECORD_FAILED ? TUTTI_E_PEER : TUTTI_OK;

    *s = (tutti_recorder_slot){
        .id = id, .state = id << 32 | status << 8 | (uint64_t)op->state,
        .call = (uint64_t)op->kind | (uint64_t)TUTTI_F32 << 8 | (uint64_t)TUTTI_OP_SUM << 16 | (uint64_t)op->place << 32,
        .seq = op->seq, .place = (uint64_t)(op->peer + 1) | (uint64_t)op->tag << 32, .count = (uint64_t)op->count,
        .began = (uint64_t)op->began_ns, .ended = (uint64_t)op->ended_ns,
    };
    s->seq |= check_of(s) << 48;
    if (op->kind < TUTTI_RECORD_SEND)
        m->groups[op->place].issued = m->groups[op->place].began = op->seq;
    if (op->kind < TUTTI_RECORD_SEND && op->ended_ns != 0)
        m->groups[op->place].ended = op->seq;
}

void made_left_out(made_recorder *m, uint64_t left_out)
{
    tutti_recorder_slot *s = &m->records[(m->head.issued - 1) % MADE_RECORDS];

    s->state |= (uint64_t)TUTTI_RECORD_LISTED << 16;
    s->left_out[0] = left_out;
}

void made_write(const made_recorder *m, const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(m, sizeof *m, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}
