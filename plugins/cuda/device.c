/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device.c - the table of the device "cuda": each entry is one call of the CUDA runtime or two, on the device that is meant.
 *
 * Current CUDA's calls go to the device that is current on the thread. Each entry makes its own current and puts back what was; where that is
 *         the same one, as nearly always, this is one look.
 * Errors  CUDA keeps the last one of each thread for whoever asks for it next, also that an event has not come. On the caller's
 *         thread that is the program, which would take it for its kernel's: so what is not a success is taken back from there.
 * Ends    A process that exits may have unloaded the runtime before its threads are gone. Events that are asked for then are failures:
 *         nobody can say any more whether they have come, and who waits for one would wait for ever. */
#include "cuda_device.h"

const tutti_plugin_host *tcuda_host;

/* ---- the current device ---- */

/* What CUDA has said is heard: the program is not to hear it as well. */
static cudaError_t heard(cudaError_t code)
{
    if (code != cudaSuccess)
        tcuda.cudaGetLastError();
    return code;
}

/* What was current; -1: nothing has to be put back. */
static cudaError_t enter(int device, int *before_out)
{
    int         before = -1;
    cudaError_t code = heard(tcuda.cudaGetDevice(&before));

    *before_out = -1;
    if (code != cudaSuccess || before == device)
        return code;
    code = heard(tcuda.cudaSetDevice(device));
    if (code == cudaSuccess)
        *before_out = before;
    return code;
}

static void leave(int before)
{
    if (before >= 0)
        heard(tcuda.cudaSetDevice(before));
}

static tutti_status fail(cudaError_t code, int device, const char *what)
{
    return tcuda_host->fail(code == cudaErrorMemoryAllocation ? TUTTI_E_NOMEM : TUTTI_E_BACKEND, "%s, on GPU %d: CUDA says '%s'", what,
                            device, tcuda.cudaGetErrorString(code));
}

/* Whatever an entry does, between the two. */
#define ON(device, call, what)                  \
    do {                                        \
        int         before;                     \
        cudaError_t code = enter(device, &before); \
        if (code == cudaSuccess)                \
            code = heard(call);                 \
        leave(before);                          \
        return code == cudaSuccess ? TUTTI_OK : fail(code, device, what); \
    } while (0)

/* ---- the table ---- */

static tutti_status stream_make(int device, void **stream_out)
{
    ON(device, tcuda.cudaStreamCreateWithFlags((cudaStream_t *)stream_out, cudaStreamNonBlocking), "making a stream");
}

static void stream_drop(int device, void *stream)
{
    int before;

    if (enter(device, &before) == cudaSuccess)
        heard(tcuda.cudaStreamDestroy(stream));
    leave(before);
}

static tutti_status event_make(int device, void **event_out)
{
    ON(device, tcuda.cudaEventCreateWithFlags((cudaEvent_t *)event_out, cudaEventDisableTiming), "making an event");
}

static void event_drop(int device, void *event)
{
    int before;

    if (enter(device, &before) == cudaSuccess)
        heard(tcuda.cudaEventDestroy(event));
    leave(before);
}

static tutti_status record(int device, void *event, void *stream)
{
    ON(device, tcuda.cudaEventRecord(event, stream), "marking a stream");
}

static tutti_status stream_wait(int device, void *stream, void *event)
{
    ON(device, tcuda.cudaStreamWaitEvent(stream, event, 0), "having a stream wait");
}

static tutti_status has_come(int device, void *event, bool *come_out)
{
    int         before;
    cudaError_t code = enter(device, &before);

    if (code == cudaSuccess)
        code = heard(tcuda.cudaEventQuery(event));
    leave(before);
    *come_out = code == cudaSuccess;
    if (code == cudaSuccess || code == cudaErrorNotReady)
        return TUTTI_OK;
    return fail(code, device, "what a stream was given");
}

static tutti_status copy(int device, void *stream, void *to, const void *from, size_t bytes)
{
    ON(device, tcuda.cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copying between host and device");
}

static tutti_status pin(int device, size_t bytes, void **memory_out)
{
    ON(device, tcuda.cudaHostAlloc(memory_out, bytes, cudaHostAllocPortable), "pinning memory of the host");
}

static void unpin(int device, void *memory)
{
    int before;

    if (enter(device, &before) == cudaSuccess)
        heard(tcuda.cudaFreeHost(memory));
    leave(before);
}

static tutti_status init(const tutti_plugin_host *host)
{
    tcuda_host = host;
    return tcuda_load();
}

static const tutti_device_ops ops = {
    .api = TUTTI_DEVICE_API,
    .size = sizeof(tutti_device_ops),
    .name = "cuda",
    .stream_make = stream_make,
    .stream_drop = stream_drop,
    .event_make = event_make,
    .event_drop = event_drop,
    .record = record,
    .stream_wait = stream_wait,
    .has_come = has_come,
    .copy = copy,
    .pin = pin,
    .unpin = unpin,
};

const tutti_device_plugin tutti_device_entry = {
    .api = TUTTI_DEVICE_API,
    .size = sizeof(tutti_device_plugin),
    .name = "cuda",
    .ops = &ops,
    .init = init,
};
