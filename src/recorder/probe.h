/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder/probe.h - static probes: places in the code that perf, bpftrace and gdb find by name.
 *
 * A probe is one nop, and a note in the section .note.stapsdt that says where it is and in which registers or memory its
 * arguments are. Whoever traces puts a breakpoint over the nop; nobody else pays for more than it. The form of the note
 * is that of SystemTap's sys/sdt.h, which many tools read; it is small enough to stand here, so that no build differs.
 * Arguments are 8 bytes each, as "8@operand". docs/probes.md lists the probes. */
#ifndef TTI_RECORDER_PROBE_H
#define TTI_RECORDER_PROBE_H

#include <stdint.h>

/* The address of .stapsdt.base in the note lets a reader see that addresses were moved by prelinking. */
#define TTI_PROBE_NOTE(name, args)                                                                           \
    "990: nop\n"                                                                                             \
    ".pushsection .note.stapsdt,\"\",\"note\"\n"                                                             \
    ".balign 4\n"                                                                                            \
    ".4byte 992f-991f, 994f-993f, 3\n"                                                                       \
    "991: .asciz \"stapsdt\"\n"                                                                              \
    "992: .balign 4\n"                                                                                       \
    "993: .8byte 990b\n"                                                                                     \
    ".8byte _.stapsdt.base\n"                                                                                \
    ".8byte 0\n"                                                                                             \
    ".asciz \"tutti\"\n"                                                                                     \
    ".asciz \"" #name "\"\n"                                                                                 \
    ".asciz \"" args "\"\n"                                                                                  \
    "994: .balign 4\n"                                                                                       \
    ".popsection\n"                                                                                          \
    ".ifndef _.stapsdt.base\n"                                                                               \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                                  \
    ".weak _.stapsdt.base\n"                                                                                 \
    ".hidden _.stapsdt.base\n"                                                                               \
    "_.stapsdt.base: .space 1\n"                                                                             \
    ".size _.stapsdt.base, 1\n"                                                                              \
    ".popsection\n"                                                                                          \
    ".endif\n"

#if defined(__x86_64__) || defined(__aarch64__)

#define TTI_PROBE_ARG(x) ((uint64_t)(uintptr_t)(x))

#define TTI_PROBE2(name, a, b)                                                                               \
    __asm__ volatile(TTI_PROBE_NOTE(name, "8@%0 8@%1") : : "nor"(TTI_PROBE_ARG(a)), "nor"(TTI_PROBE_ARG(b)))
#define TTI_PROBE4(name, a, b, c, d)                                                                         \
    __asm__ volatile(TTI_PROBE_NOTE(name, "8@%0 8@%1 8@%2 8@%3")                                             \
                     :                                                                                       \
                     : "nor"(TTI_PROBE_ARG(a)), "nor"(TTI_PROBE_ARG(b)), "nor"(TTI_PROBE_ARG(c)),            \
                       "nor"(TTI_PROBE_ARG(d)))

#else

#define TTI_PROBE2(name, a, b) ((void)(a), (void)(b))
#define TTI_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))

#endif
#endif
