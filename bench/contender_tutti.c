/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contender_tutti.c - tutti, under `tutti run`. */
#include "contender.h"
#include "tutti_side.h"

int main(int argc, char **argv)
{
    return bench_contender(&bench_tutti_side, argc, argv);
}
