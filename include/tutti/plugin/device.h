/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/plugin/device.h - for authors of devices: how the library reaches memory of a device that it knows nothing of.
 *
 * The backend "native" works in memory of the host. A call on memory of a device goes a detour: its bytes are copied to memory of
 * the host that the device can reach by itself (pinned), "native" works there, and they are copied back. What that takes of a
 * device is little: streams, whose work is done in order and beside the program; events, which mark how far a stream has come;
 * copies in streams; pinned memory.
 *
 * Where it is looked for. The device of TUTTI_CUDA is the file tutti-device-cuda.so, in the places and with the refusals that
 * tutti/plugin/plugin.h tells of backends, when a group of "native" gets the first call on such memory, or when a backend that is a
 * plug-in asks for it (host->device), as "mpi" does. It shows one symbol,
 * tutti_device_entry, a constant, and links no libtutti: its init gets the host table of plugin.h.
 *
 * Handles of streams and events are the device's own (cudaStream_t, cudaEvent_t). device is the number of one of several of
 * the kind. Every entry may be called on any thread, leaves the thread's own current device as it was, and words its own failures
 * (host->fail), and leaves nothing of them where the program would find it: TUTTI_E_BACKEND what the device says, TUTTI_E_NOMEM where there is no memory. */
#ifndef TUTTI_PLUGIN_DEVICE_H
#define TUTTI_PLUGIN_DEVICE_H

#include <tutti/plugin/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the tables below. They only grow at the end, and each time they do this number grows. */
enum { TUTTI_DEVICE_API = 1 };

/** Tables are const. All entries are required. Only unpin may wait for a device. */
typedef struct tutti_device_ops {
    uint32_t    api;  /* TUTTI_DEVICE_API of the build that made this table */
    uint32_t    size; /* sizeof(tutti_device_ops) of that build */
    const char *name; /* as in the file's name */

    /* A stream that waits for no other by itself. */
    tutti_status (*stream_make)(int device, void **stream_out);
    /* What it was given still runs. */
    void (*stream_drop)(int device, void *stream);
    tutti_status (*event_make)(int device, void **event_out);
    /* Waits that were given to streams, and records, stay as they are. */
    void (*event_drop)(int device, void *event);
    /* From here on event stands for all that stream, NULL the default one, was given by now. */
    tutti_status (*record)(int device, void *event, void *stream);
    /* What stream is given from now on begins behind what event stands for now. */
    tutti_status (*stream_wait)(int device, void *stream, void *event);
    /* Whether what event was recorded for last is done. Fails if the device has failed at it, or if nobody can say it any more, as
     * where the process ends and the device's library is gone. */
    tutti_status (*has_come)(int device, void *event, bool *come_out);
    /* Copy in the order of stream. One of to and from is memory of a device, the other one is pinned. */
    tutti_status (*copy)(int device, void *stream, void *to, const void *from, size_t bytes);
    /* Memory of the host that all devices of the kind reach. */
    tutti_status (*pin)(int device, size_t bytes, void **memory_out);
    /* No copy with it is under way. */
    void (*unpin)(int device, void *memory);
} tutti_device_ops;

/** What a plug-in that is a device shows. */
typedef struct tutti_device_plugin {
    uint32_t    api;  /* TUTTI_DEVICE_API of the headers that it was made with */
    uint32_t    size; /* sizeof(tutti_device_plugin) of those */
    const char *name; /* as in its file's name: what backend strings call the device */
    const tutti_device_ops *ops;
    /* Required. Called once, before any entry of the table, by one thread, while no other plug-in is loaded. Keep host; look
     * for the device's library. Anything but TUTTI_OK, with words (host->fail), refuses the plug-in: it is unloaded, and may be
     * tried again. */
    tutti_status (*init)(const tutti_plugin_host *host);
} tutti_device_plugin;

/** The one symbol that such a plug-in shows; each defines its own. */
TUTTI_API extern const tutti_device_plugin tutti_device_entry;

#ifdef __cplusplus
}
#endif
#endif
