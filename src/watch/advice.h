/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch/advice.h - the step that helps, of words that others have put together.
 *
 * Why     Who finds a peer gone, and who tells others of a failure, words it for whoever may read it. What helps depends on how that
 *         one has gone, and on who reads.
 * True    Words are read as they are written in transport/health/words.c and beside it: "rank 3 (host 'n1', pid 40112) has left". */
#ifndef TTI_WATCH_ADVICE_H
#define TTI_WATCH_ADVICE_H

#include <stddef.h>

/** What to do next, "\n  next: ...", where words tell of a peer that is gone, and have no step of their own: of one that has died,
 * of one that has left, or of one that was given up for its silence, and may only be stopped. */
const char *tti_advice_of_loss(const char *words);

/** Words that may have come from others, as rank reads them: that it was stopped is over, since it reads this, so what lets it go on is
 * taken out, and the step is another one. No longer than bytes, with its end. */
void tti_advice_for_oneself(int rank, char *words, size_t bytes);

#endif
