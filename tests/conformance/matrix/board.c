/* SPDX-License-Identifier: BSD-3-Clause */
#include "board.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Set once before anything is forked; the harness hands no argument to ranks. */
tt_board *tt_the_board;

bool tt_board_open(void)
{
    void *at = mmap(NULL, sizeof *tt_the_board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return false;
    tt_the_board = at;
    return true;
}

bool tt_board_open_file(const char *path)
{
    int   fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof *tt_the_board) == 0)
        at = mmap(NULL, sizeof *tt_the_board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return false;
    tt_the_board = at;
    return true;
}

void tt_board_clear(void)
{
    const uint64_t seed = tt_the_board->seed;
    const bool     may_refuse = tt_the_board->may_refuse;

    memset(tt_the_board, 0, sizeof *tt_the_board);
    tt_the_board->seed = seed;
    tt_the_board->may_refuse = may_refuse;
}

void tt_board_note(int cell, int rank, const char *words)
{
    const int at = atomic_fetch_add(&tt_the_board->n_notes, 1);
    tt_note  *note = &tt_the_board->notes[at < TT_NOTES ? at : 0];

    if (at >= TT_NOTES)
        return;
    note->cell = cell;
    note->rank = rank;
    snprintf(note->words, sizeof note->words, "%s", words);
}
