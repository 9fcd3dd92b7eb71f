/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_turned.c - whom the stores of this process have turned away last.
 *
 * Why     Who has another secret is told so at its own end. Rank 0, whose process serves the store, waits for it, and knows of it
 *         from the server's log alone, if at all: its time-out is where somebody looks.
 * True    One line, of the last one, under a lock that nobody holds for longer than a copy: the server's thread writes, whoever
 *         waited reads, and takes it, so that a later wait does not tell of it again. What is older than the wait was turned away
 *         from another one. */
#include "store/store_turned.h"

#include <stdio.h>
#include <string.h>
#include "base/thread.h"
#include <tutti/private.h>

#define NEXT "\n  next: "

enum { WORDS_MAX = 1024 };

static struct {
    tti_mutex lock; /* guards last */
    char      last[TTI_TURNED_TEXT_MAX]; /* "": nobody */
    int64_t   noted_ns;
} turned = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER } };

void tti_store_turned_note(const tti_port *port, const char *from, const char *what)
{
    if (port != tti_port_system())
        return;
    tti_lock(&turned.lock);
    snprintf(turned.last, sizeof turned.last, "%.64s, which %.*s", from, (int)strcspn(what, "\n"), what);
    turned.noted_ns = tti_port_now(tti_port_system());
    tti_unlock(&turned.lock);
}

bool tti_store_turned_take(int64_t since_ns, char out[TTI_TURNED_TEXT_MAX])
{
    out[0] = '\0';
    tti_lock(&turned.lock);
    if (turned.noted_ns >= since_ns)
        memcpy(out, turned.last, sizeof turned.last);
    turned.last[0] = '\0';
    tti_unlock(&turned.lock);
    return out[0] != '\0';
}

tutti_status tti_store_turned_add(tutti_status st, int64_t since_ns)
{
    char        words[WORDS_MAX], who[TTI_TURNED_TEXT_MAX];
    const char *next;

    if (st != TUTTI_E_TIMEOUT || !tti_store_turned_take(since_ns, who))
        return st;
    snprintf(words, sizeof words, "%s", tutti_last_error());
    next = strstr(words, NEXT);
    return tti_fail(st, "%.*s; the store here has turned away %s" NEXT "%s%sif that is of this job, give all processes the same "
                        "TUTTI_SECRET_FILE and TUTTI_TLS, or none",
                    (int)strcspn(words, "\n"), words, who, next != NULL ? next + strlen(NEXT) : "", next != NULL ? "; " : "");
}
