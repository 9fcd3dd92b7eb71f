/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/shaper.h - to what rate an interface is shaped, out of the kernel's own answers.
 *
 * Why     A card tells what it could carry; what it is let carry stands in the queue discipline at its root, in containers and
 *         clouds above all. The kernel tells everybody of it.
 * How     Two questions, each answered by a dump: all queue disciplines (RTM_GETQDISC), and, where the root is an HTB, the classes
 *         of the interface (RTM_GETTCLASS). Here are only the questions as bytes and the reading of answers; port_link.c sends them.
 *         A TBF has one rate. What nobody sorts into a class of an HTB goes to its default class, which may borrow up to its
 *         ceiling from those above; the class at the top sends at its rate. So it is the least of these.
 * Not     Other disciplines, those below another root, and filters that sort into other classes: of them nothing is known.
 * Fails   An answer that is cut off, or that no kernel would give, leaves the rate unknown: it is never guessed. */
#ifndef TTI_BASE_SHAPER_H
#define TTI_BASE_SHAPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TTI_SHAPER_QUESTION_BYTES = 36, TTI_CLASSES_MAX = 256, TTI_DISCIPLINE_MAX = 16 };

typedef struct tti_traffic_class {
    uint32_t handle, parent;
    bool     leaf;
    uint64_t rate, ceiling; /* bytes per second */
} tti_traffic_class;

/** What is known so far of one interface; begin with all zero but the first two. */
typedef struct tti_shaper {
    uint32_t interface; /* its index */
    uint32_t sequence;  /* of the question whose answer is read: others' are passed over */
    bool     ended;     /* that answer is complete */
    char     discipline[TTI_DISCIPLINE_MAX]; /* at the root; "": none */
    uint32_t handle;    /* of it */
    uint64_t rate;      /* TBF: bytes per second, and */
    uint64_t burst;     /* bytes that pass at once, if nothing has for a while */
    uint32_t fallback;  /* HTB: its default class, without the major number; 0: what nobody sorts is not shaped */
    int      n_classes;
    tti_traffic_class classes[TTI_CLASSES_MAX];
} tti_shaper;

/** Ask for all queue disciplines, or the classes of the shaper's interface. What stands in out is the whole message. */
void tti_shaper_ask_disciplines(tti_shaper *shaper, uint8_t out[TTI_SHAPER_QUESTION_BYTES]);
void tti_shaper_ask_classes(tti_shaper *shaper, uint8_t out[TTI_SHAPER_QUESTION_BYTES]);

/** Read a packet of the answer. False: it is no such answer, or says that there is none, or there are too many classes. */
bool tti_shaper_read(tti_shaper *shaper, const void *packet, size_t bytes);

/** Whether the classes have to be asked for, once the disciplines are read. */
bool tti_shaper_has_classes(const tti_shaper *shaper);

/** Bytes per second that are let through; 0: not shaped, or not known. */
uint64_t tti_shaper_rate(const tti_shaper *shaper);

/** Bytes that pass at once before that rate counts, of a TBF; 0: none, or not known. */
uint64_t tti_shaper_burst(const tti_shaper *shaper);

#endif
