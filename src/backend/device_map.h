/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend/device_map.h - which backend takes the memory of which kind of device: "cpu:native,cuda:nccl". */
#ifndef TTI_BACKEND_DEVICE_MAP_H
#define TTI_BACKEND_DEVICE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti/dtype.h>
#include <tutti/status.h>

enum { TTI_DEVICES = 2, TTI_BACKEND_NAME_MAX = 32, TTI_DEVICE_MAP_TEXT = 128 };

/** Indexed by tutti_device_type. */
typedef struct tti_device_map {
    char names[TTI_DEVICES][TTI_BACKEND_NAME_MAX]; /* lower case; "": none */
} tti_device_map;

/** Read a backend string: one name, which stands for all devices that this backend takes; "undefined", the
 * default of the CPU; or device:backend pairs with commas. NULL: "native". Names that are reserved for plug-ins
 * are known, be they there or not; others have to be there.
 * @errors TUTTI_E_ARG  no such device or backend, a device twice, a pair that is none, or a backend that
 *                      does not take the memory of the device; the text shows the format
 *         and those of tti_backend_find(), of a plug-in */
tutti_status tti_device_map_parse(const char *text, tti_device_map *map_out);

/** The pairs, with commas. */
void tti_device_map_write(const tti_device_map *map, char out[TTI_DEVICE_MAP_TEXT]);

/** "cpu"; "?" for a number that is no device. */
const char *tti_device_name(tutti_device_type type);
/** False: there is no device of that name. */
bool tti_device_find(const char *name, size_t length, tutti_device_type *type_out);

#endif
