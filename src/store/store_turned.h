/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_turned.h - whom the stores of this process have turned away last, for who waits in vain for somebody. */
#ifndef TTI_STORE_STORE_TURNED_H
#define TTI_STORE_STORE_TURNED_H

#include <stdbool.h>
#include "base/port.h"

enum { TTI_TURNED_TEXT_MAX = 240 };

/** A client at from, which did what, is turned away, or has left. Under a port that is not the machine's nothing is noted: what plays
 * there has other clients than this process. Any thread. */
void tti_store_turned_note(const tti_port *port, const char *from, const char *what);

/** The last one, "127.0.0.1:40312, which ...": it is not told of again. False: nobody, since then on the machine's clock. Any thread. */
bool tti_store_turned_take(int64_t since_ns, char out[TTI_TURNED_TEXT_MAX]);

/** A wait that began at since_ns failed with st, this thread's last error, in the process that serves the store: if that is because time
 * is up, say whom the store has turned away meanwhile, if anybody, as it may be the one that is waited for; the words' own next step
 * stays. Returns st. */
tutti_status tti_store_turned_add(tutti_status st, int64_t since_ns);

#endif
