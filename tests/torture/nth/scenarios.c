/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenarios.c - what bodies share. A body stops at the first call that fails, frees what it has, and says nothing more. */
#include "scenarios.h"

#include <stdio.h>

bool tt_went_well(tt_actor *a, tutti_status st, const char *call)
{
    if (st == TUTTI_OK)
        return true;
    if (tutti_last_error()[0] == '\0' && a->wrong == NULL)
        a->wrong = "a call failed without words";
    if (!a->failed) {
        a->failed = true;
        a->st = st;
        a->call = call;
        snprintf(a->words, sizeof a->words, "%s", tutti_last_error());
    }
    return false;
}

void tt_must_be(tt_actor *a, bool right, const char *what)
{
    if (!right && a->wrong == NULL)
        a->wrong = what;
}

void tt_meet(tt_actor *a)
{
    pthread_barrier_wait(a->meeting);
}

void tt_fill(const tt_actor *a, float *x, int n)
{
    int i;

    for (i = 0; i < n; i++)
        x[i] = (float)(a->rank + 1);
}

bool tt_all_are(const float *x, int n, float value)
{
    int i;

    for (i = 0; i < n; i++)
        if (x[i] != value)
            return false;
    return true;
}

float tt_sum_of(const tt_actor *a)
{
    return (float)(a->size * (a->size + 1) / 2);
}

float *tt_room(tt_actor *a, int n)
{
    float *at = a->out + a->taken;

    a->taken += n;
    if (a->taken > TT_ROOM)
        __builtin_trap();
    return at;
}

const tt_family *tt_families(int *n_out)
{
    static tt_family all[9];

    all[0] = tt_world_calls;
    all[1] = tt_group_calls;
    all[2] = tt_collective_calls;
    all[3] = tt_message_calls;
    all[4] = tt_object_calls;
    all[5] = tt_parallel_calls;
    all[6] = tt_store_calls;
    all[7] = tt_tensor_calls;
    all[8] = tt_train_calls;
    *n_out = 9;
    return all;
}
