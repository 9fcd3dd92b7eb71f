/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cut.c - a rank loses its connections while all shrink, and lives.
 *
 * Why     That is nobody's death. What was lost is made again, or the rank is told apart from those that go on: both are right.
 * Right   Whoever goes on does so in one world, whose sums are right on all its members; nobody hangs; and an error accuses the one
 *         whose connections were lost, and no other. So the rows tell two ends of it that do no harm: all go on with it ("kept"),
 *         the others do without it ("left-out"); and a third one, that the new world fails by it, as any world does that is at
 *         work ("ok"). Ranks that have gone on in different worlds are "two-worlds", which is never to be. */
#include "faults.h"

bool tt_fault_cuts(tt_fault what)
{
    return what == F_RESET || what == F_HALF;
}

bool tt_is_cut(const round_page *page)
{
    return page->plan.when == P_SHRINK && tt_fault_cuts(page->plan.what);
}

tt_outcome tt_cut_outcome(const round_page *page)
{
    const unsigned victim = 1u << page->plan.victim;
    unsigned       world = 0;
    bool           all = true, alone = true; /* have gone on; the victim is the only one that has not */
    int            r;

    for (r = 0; r < page->size; r++) {
        const unsigned own = page->by[r].world;

        if (r == page->plan.leaves)
            continue;
        if (own != 0 && world != 0 && own != world)
            return CUT_TWO_WORLDS;
        world = own != 0 ? own : world;
        all = all && own != 0;
        alone = alone && (own != 0) == (r != page->plan.victim);
    }
    return all ? CUT_KEPT : alone && (world & victim) == 0 ? CUT_LEFT_OUT : CUT_FAILED;
}
