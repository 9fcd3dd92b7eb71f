/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choice.c - one choice for all members of a group.
 *
 * How     Every rank reads what it is asked for, and tells a fingerprint of it in its tti_join: ranks that
 *         are asked for different things find out when they meet. What the machine takes is told by
 *         rank 0 of the group; the others do not measure. From then on every rank has the same joins, and
 *         answers the same question (choose.c).
 * True    Nothing that one rank alone knows, and no clock, is part of the question. */
#include "coll/choice.h"

#include <string.h>
#include <tutti/private.h>
#include "base/env.h"
#include "base/fnv.h"
#include "base/log.h"
#include "coll/calibrate.h"
#include "coll/host/crowd.h"
#include "coll/level/levels.h"

static double wire_of(int64_t mbit)
{
    return mbit > 0 ? 8e3 / (double)mbit : 0;
}

static tutti_status read_link(tti_choice *choice)
{
    int64_t      mbit = 0;
    tutti_status st;

    choice->asks_wire = tti_env("TUTTI_LINK_MBIT") == NULL;
    if (choice->asks_wire)
        return TUTTI_OK;
    st = tti_env_int("TUTTI_LINK_MBIT", 0, TTI_LINK_MBIT_MAX, &mbit);
    choice->wire = wire_of(mbit);
    return st;
}

tutti_status tti_choice_read(tti_choice *choice_out)
{
    tti_choice   choice = { .reproducible = false };
    tutti_status st = tti_env_flag("TUTTI_REPRODUCIBLE", &choice.reproducible);

    if (st == TUTTI_OK)
        st = tti_wishes_parse(tti_env("TUTTI_ALGO"), &choice.wishes);
    if (st == TUTTI_OK)
        st = read_link(&choice);
    if (st == TUTTI_OK)
        st = tti_tune_read(tti_env("TUTTI_TUNE"), &choice.tune);
    if (st == TUTTI_OK)
        *choice_out = choice;
    return st;
}

void tti_choice_release(tti_choice *choice)
{
    tti_tune_release(&choice->tune);
}

/* Of the names in the table: rows of another build have other numbers. */
static uint64_t print_of_rows(void)
{
    uint64_t             print = TTI_FNV_BEGIN;
    int                  n, i;
    const tti_algorithm *rows = tti_algorithms(&n);

    for (i = 0; i < n; i++) {
        print = tti_fnv(print, &rows[i].kind, sizeof rows[i].kind);
        print = tti_fnv(print, rows[i].name, strlen(rows[i].name) + 1);
    }
    return print;
}

/* Whether every host of the world is this machine: namespaces, or containers. */
static bool is_all_here(const tti_team *team)
{
    const int size = tti_mesh_size(team->mesh);

    return size <= TTI_HOSTS_HERE_MOST && tti_mesh_ranks_on_machine(team->mesh) == size;
}

/* A world on a port of its own, as simulations are, must not depend on the machine that it happens to run on. */
static bool is_of_machine(const tti_team *team)
{
    return team->port == tti_port_system() && tti_port_stand_in() == NULL;
}

/* Between hosts nothing is measured, but for what the usual figures were. */
static tti_machine measured_for(const tti_team *team)
{
    if (tti_team_on_one_host(team) && is_of_machine(team))
        return *tti_machine_here();
    if (is_of_machine(team) && is_all_here(team))
        return tti_machine_of_hosts((double)tti_mesh_ranks_on_machine(team->mesh) / tti_running_cores());
    return tti_machine_default;
}

/* As the environment says; else what the kernel knows of the interface that is used. 0: neither does. */
static double wire_for(const tti_choice *choice, const tti_team *team, int64_t *burst_out)
{
    *burst_out = 0;
    if (!choice->asks_wire || tti_team_on_one_host(team) || !is_of_machine(team))
        return choice->wire;
    return wire_of(tti_mesh_link(team->mesh, burst_out));
}

/* What rank 0 tells. */
static tti_machine machine_for(const tti_choice *choice, const tti_team *team)
{
    tti_machine  machine = measured_for(team);
    int64_t      burst;
    const double wire = wire_for(choice, team, &burst);

    tti_machine_know_link(&machine, wire, (double)burst);
    return machine;
}

void tti_choice_announce(const tti_choice *choice, const tti_team *team, const tti_machine *machine,
                         tti_join *mine)
{
    mine->algorithms = tti_fnv(print_of_rows(), choice->wishes.rows, sizeof choice->wishes.rows);
    mine->tune = tti_fnv(print_of_rows(), choice->tune.rows, (size_t)choice->tune.n * sizeof *choice->tune.rows);
    mine->reproducible = choice->reproducible;
    if (team->rank == 0)
        mine->machine = machine != NULL ? *machine : machine_for(choice, team);
}

/* Ranks that share a core of this host, as all members see it. */
static double turns_of(const tti_team *team, const tti_join *all)
{
    const int    n_here = tti_mesh_ranks_on_machine(team->mesh);
    const double turns = (double)n_here / tti_crowd_cores(all, team->n_ranks, n_here);

    return turns > 1 ? turns : 1;
}

/* "one_phase to 16384, sliced": what is taken for which bytes of one rank's part. */
static void log_kind(const tti_choice *choice, const tti_team *team, tutti_call_kind kind)
{
    const uint8_t       *rows = choice->decision.rows[kind];
    tti_words            words = { .used = 0 };
    int                  n, size;
    const tti_algorithm *table = tti_algorithms(&n);

    for (size = 0; size < TTI_SIZE_CLASSES - 1; size++)
        if (rows[size] != rows[size + 1])
            tti_words_add(&words, "%s to %lld, ", table[rows[size]].name,
                          (long long)tti_size_class_most(size));
    tti_log(TTI_LOG_DEBUG, "group '%s': %s takes %s%s", team->name, tti_call_kind_name(kind), words.text,
            table[rows[size]].name);
}

/* Whether TUTTI_ALGO names an algorithm for calls of a kind, and no size of them is done by it. Registered memory is found out
 * call by call. */
static bool is_named_in_vain(const tti_choice *choice, const tti_team *team, int kind)
{
    const int            wanted = choice->wishes.rows[kind];
    const tti_decision  *d = &choice->decision;
    int                  n, size;
    const tti_algorithm *table = tti_algorithms(&n);
    bool                 taken = wanted < 0 || (tti_team_on_one_host(team) && tti_is_fused(&table[wanted]));

    for (size = 0; size < TTI_SIZE_CLASSES && !taken; size++)
        taken = d->rows[kind][size] == wanted || d->exact_rows[kind][size] == wanted;
    return !taken;
}

static void log_vain_wishes(const tti_choice *choice, const tti_team *team)
{
    int                  kind, n;
    const tti_algorithm *table = tti_algorithms(&n);

    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        if (is_named_in_vain(choice, team, kind))
            tti_log(TTI_LOG_INFO, "group '%s': TUTTI_ALGO names '%s' for %s, which does not serve these ranks: others are taken",
                    team->name, table[choice->wishes.rows[kind]].name, tti_call_kind_name((tutti_call_kind)kind));
}

/* Rank 0's counts: who was told of another slow link was told in vain. */
static void log_link(const tti_choice *choice, const tti_team *team, const tti_machine *machine)
{
    const double wire = machine->wire;

    if (team->rank == 0)
        tti_log(TTI_LOG_DEBUG, "group '%s': links between hosts are taken for %.4g Mb/s, of which %.0f B pass at once", team->name,
                8e3 / wire, machine->at_once);
    else if (choice->wire > tti_machine_default.wire && choice->wire != wire)
        tti_log(TTI_LOG_WARN,
                "group '%s': TUTTI_LINK_MBIT is %.4g here, on rank %d, but links are taken for %.4g Mb/s\n"
                "  next: set it on rank %d, which tells the others",
                team->name, 8e3 / choice->wire, team->ranks[team->rank], 8e3 / wire, team->ranks[0]);
}

static void log_choice(const tti_choice *choice, const tti_team *team)
{
    int kind;

    log_vain_wishes(choice, team);
    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT && tti_log_wanted(TTI_LOG_DEBUG); kind++)
        log_kind(choice, team, (tutti_call_kind)kind);
}

void tti_choice_settle(tti_choice *choice, const tti_team *team, const tti_join *all, tti_levels *levels)
{
    const bool           one_host = tti_team_on_one_host(team);
    tti_level_figures    figures;
    tti_question         question = { .wishes = &choice->wishes, .tune = &choice->tune, .machine = &all[0].machine,
                                      .turns = one_host ? turns_of(team, all) : 1,
                                      .reproducible = choice->reproducible, .one_host = one_host,
                                      .wire = all[0].machine.wire,
                                      .n_ranks = team->n_ranks };

    if (levels != NULL) {
        tti_levels_settle(levels, &question);
        figures = tti_levels_figures(levels);
        question.levels = &figures;
    }
    tti_decide_once(&question, &choice->decision);
    question.levels = NULL;
    question.reproducible = true;
    tti_decide_once(&question, &choice->in_one_go);
    if (!one_host)
        log_link(choice, team, &all[0].machine);
    if (team->rank == 0)
        log_choice(choice, team);
}
