/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport/frame.h - the header before every message, on rings and sockets alike.
 *
 * 40 bytes, little endian, followed by `bytes` bytes of payload. */
#ifndef TTI_TRANSPORT_FRAME_H
#define TTI_TRANSPORT_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { TTI_FRAME_VERSION = 1 };
#define TTI_FRAME_MAGIC UINT16_C(0x7475) /* "ut" */
/** No message is longer: a length beyond it is a broken stream. */
#define TTI_FRAME_BYTES_MAX (UINT64_C(1) << 46)

typedef struct tti_frame {
    uint16_t magic;
    uint8_t  version;
    uint8_t  size; /* sizeof(tti_frame) of the sender */
    uint8_t  plane;
    uint8_t  dtype;
    uint16_t zero;
    uint32_t group;
    int32_t  tag;
    uint64_t word;
    uint64_t bytes;
    union {
        uint64_t what;     /* of a collective: tti_call_note.what, for texts */
        uint64_t reserved; /* of windows: theirs; else 0 */
    };
} tti_frame;

_Static_assert(sizeof(tti_frame) == 40, "the frame crosses processes and hosts");
/** Whether it begins as frames do. */
static inline bool tti_frame_is_sound(const tti_frame *frame)
{
    return frame->magic == TTI_FRAME_MAGIC && frame->version == TTI_FRAME_VERSION && frame->size == sizeof *frame;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are sent as they lie in memory");

#endif
