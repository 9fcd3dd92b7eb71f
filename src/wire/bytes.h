/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire/bytes.h - numbers as little-endian bytes, whatever the machine. */
#ifndef TTI_WIRE_BYTES_H
#define TTI_WIRE_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline uint8_t *tti_put_uint(uint8_t *at, uint64_t value, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + bytes;
}

static inline uint64_t tti_get_uint(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    size_t   i;

    for (i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Each writer returns where the next field goes. */
static inline uint8_t *tti_put_u16(uint8_t *at, uint16_t value)
{
    return tti_put_uint(at, value, 2);
}

static inline uint8_t *tti_put_u32(uint8_t *at, uint32_t value)
{
    return tti_put_uint(at, value, 4);
}

static inline uint8_t *tti_put_u64(uint8_t *at, uint64_t value)
{
    return tti_put_uint(at, value, 8);
}

static inline uint16_t tti_get_u16(const uint8_t *at)
{
    return (uint16_t)tti_get_uint(at, 2);
}

static inline uint32_t tti_get_u32(const uint8_t *at)
{
    return (uint32_t)tti_get_uint(at, 4);
}

static inline uint64_t tti_get_u64(const uint8_t *at)
{
    return tti_get_uint(at, 8);
}

#endif
