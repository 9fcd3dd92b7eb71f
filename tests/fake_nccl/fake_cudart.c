/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fake_cudart.c - a stand-in for the CUDA runtime, for tests: the few entry points that backend "nccl", device "cuda" and their tests call, on
 * memory of the host. There is no GPU in it, and nothing of NVIDIA's but the names and the types of its headers.
 *
 * Why     On a GPU a stream works beside the program, and beside other streams. Where an event is not waited for, numbers are wrong, but
 *         only now and then. Here they are wrong most of the time.
 * How     Each stream is a thread with a queue. Before each thing that it does it waits a random while: up to FAKE_CUDA_DELAY_US,
 *         300 if that is not set, drawn from FAKE_CUDA_SEED and the number of the stream, so that a run can be had again as far
 *         as threads allow. The default stream is one more, which waits for no other: less is in order than on a device.
 * Waits   FAKE_CUDA_LEAVE_OUT has waits left out on purpose: "own" those of streams that cudaStreamCreateWithFlags() made as
 *         non-blocking ones, as the backend's are; "callers" those of all others; "host" those of the program, which asks whether an
 *         event has come, and is told that it has. For tests of the tests.
 * Errors  As CUDA does, it keeps what a thread was told last that was no success, "not ready" among it, until cudaGetLastError().
 *         fake_cuda_unload() has all that works with streams and events be refused from then on, as at the end of a process.
 * Memory  cudaFreeHost() waits for all that any stream was given before it, which is the worst that CUDA may do.
 * True    Queues, and what events have come to, are under one lock; whatever changes is broadcast. A recording takes the
 *         event's next number when it is asked for, and the event has come to that number when the stream has; who waits takes
 *         the number of the moment he asks. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default")))

enum { DELAY_US = 300 };

typedef enum kind { RECORD, WAIT, COPY, CALL } kind;

struct CUevent_st {
    int      refs; /* the owner's, and one for each thing in a queue */
    uint64_t asked, come;
};

typedef struct thing {
    struct thing *next;
    uint64_t      order; /* among all that streams were given */
    kind          kind;
    cudaEvent_t   event;
    uint64_t      number;
    void         *to;
    const void   *from;
    size_t        bytes;
    cudaHostFn_t  fn;
    void         *arg;
} thing;

struct CUstream_st {
    struct CUstream_st *next; /* of all */
    pthread_t thread;
    thing    *first, *last;
    thing    *now; /* what it does; NULL: nothing */
    bool      is_own, ends;
    uint64_t  random;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static struct CUstream_st *default_stream;
static struct CUstream_st *streams;
static uint64_t        n_streams, n_given;
static bool            is_unloaded;

static _Thread_local int         current_device;
static _Thread_local cudaError_t last_error;

static cudaError_t told(cudaError_t code)
{
    if (code != cudaSuccess)
        last_error = code;
    return code;
}

/* ---- delays ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t number_in(const char *variable, uint64_t unset)
{
    const char *text = getenv(variable);

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : unset;
}

static void delay(uint64_t random, uint64_t most_us)
{
    const uint64_t        us = most_us == 0 ? 0 : random % (most_us + 1);
    const struct timespec t = { .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000 };

    if (us > 0)
        nanosleep(&t, NULL);
}

/* ---- a stream ---- */

/* Under the lock. */
static void drop_event(cudaEvent_t event)
{
    if (event != NULL && --event->refs == 0)
        free(event);
}

static bool leaves_out(const char *whose)
{
    const char *which = getenv("FAKE_CUDA_LEAVE_OUT");

    return which != NULL && strcmp(which, whose) == 0;
}

static bool is_left_out(const struct CUstream_st *s)
{
    return leaves_out(s->is_own ? "own" : "callers");
}

/* Without the lock, but for events. */
static void do_thing(struct CUstream_st *s, const thing *t)
{
    switch (t->kind) {
    case COPY: memcpy(t->to, t->from, t->bytes); break;
    case CALL: t->fn(t->arg); break;
    case RECORD:
        pthread_mutex_lock(&lock);
        if (t->event->come < t->number)
            t->event->come = t->number;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        break;
    case WAIT:
        pthread_mutex_lock(&lock);
        while (t->event->come < t->number && !is_left_out(s))
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        break;
    }
}

/* Under the lock. */
static void leave_list(const struct CUstream_st *s)
{
    struct CUstream_st **link = &streams;

    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
}

static void *stream_main(void *arg)
{
    struct CUstream_st *s = arg;
    const uint64_t      most_us = number_in("FAKE_CUDA_DELAY_US", DELAY_US);
    thing              *t;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (s->first == NULL && !s->ends)
            pthread_cond_wait(&changed, &lock);
        t = s->first;
        if (t == NULL)
            break;
        s->first = t->next;
        if (s->first == NULL)
            s->last = NULL;
        s->now = t;
        s->random = mix(s->random);
        pthread_mutex_unlock(&lock);
        delay(s->random, most_us);
        do_thing(s, t);
        pthread_mutex_lock(&lock);
        s->now = NULL;
        drop_event(t->event);
        free(t);
        pthread_cond_broadcast(&changed);
    }
    leave_list(s);
    pthread_mutex_unlock(&lock);
    free(s);
    return NULL;
}

/* Under the lock. */
static struct CUstream_st *make_stream(bool is_own)
{
    struct CUstream_st *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->is_own = is_own;
    s->random = mix(number_in("FAKE_CUDA_SEED", 1) * 1000003 + n_streams++);
    if (pthread_create(&s->thread, NULL, stream_main, s) != 0) {
        free(s);
        return NULL;
    }
    pthread_detach(s->thread);
    s->next = streams;
    streams = s;
    return s;
}

/* Under the lock. */
static struct CUstream_st *stream_of(cudaStream_t stream)
{
    if (stream != NULL)
        return stream;
    if (default_stream == NULL)
        default_stream = make_stream(false);
    return default_stream;
}

static cudaError_t put(cudaStream_t stream, thing what)
{
    thing              *t = malloc(sizeof *t);
    struct CUstream_st *s;

    if (t == NULL)
        return told(cudaErrorMemoryAllocation);
    *t = what;
    t->next = NULL;
    pthread_mutex_lock(&lock);
    s = is_unloaded ? NULL : stream_of(stream);
    if (s == NULL) {
        pthread_mutex_unlock(&lock);
        free(t);
        return told(is_unloaded ? cudaErrorCudartUnloading : cudaErrorMemoryAllocation);
    }
    t->order = ++n_given;
    if (t->event != NULL) {
        t->event->refs++;
        t->number = t->kind == RECORD ? ++t->event->asked : t->event->asked;
    }
    if (s->last != NULL)
        s->last->next = t;
    else
        s->first = t;
    s->last = t;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* ---- streams ---- */

SHOWN cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    pthread_mutex_lock(&lock);
    *stream = make_stream((flags & cudaStreamNonBlocking) != 0);
    pthread_mutex_unlock(&lock);
    return *stream != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

SHOWN cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

SHOWN cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    stream->ends = true; /* after what it has */
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

SHOWN cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct CUstream_st *s;

    pthread_mutex_lock(&lock);
    s = stream_of(stream);
    while (s != NULL && (s->first != NULL || s->now != NULL))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return s != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

SHOWN cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    (void)flags;
    return put(stream, (thing){ .kind = WAIT, .event = event });
}

SHOWN cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind way, cudaStream_t stream)
{
    (void)way;
    return put(stream, (thing){ .kind = COPY, .to = to, .from = from, .bytes = bytes });
}

SHOWN cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
    return put(stream, (thing){ .kind = CALL, .fn = fn, .arg = arg });
}

/* ---- events ---- */

SHOWN cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    if (*event == NULL)
        return cudaErrorMemoryAllocation;
    (*event)->refs = 1;
    return cudaSuccess;
}

SHOWN cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    drop_event(event);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

SHOWN cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return put(stream, (thing){ .kind = RECORD, .event = event });
}

SHOWN cudaError_t cudaEventQuery(cudaEvent_t event)
{
    bool come, gone;

    pthread_mutex_lock(&lock);
    come = event->come >= event->asked || leaves_out("host");
    gone = is_unloaded;
    pthread_mutex_unlock(&lock);
    return gone ? told(cudaErrorCudartUnloading) : come ? cudaSuccess : told(cudaErrorNotReady);
}

/* ---- devices and memory ---- */

SHOWN cudaError_t cudaGetDeviceCount(int *n)
{
    *n = (int)number_in("FAKE_CUDA_DEVICES", 1);
    return *n > 0 ? cudaSuccess : told(cudaErrorNoDevice);
}

SHOWN cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

SHOWN cudaError_t cudaSetDevice(int device)
{
    int n = 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess || device < 0 || device >= n)
        return told(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}

SHOWN cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = calloc(1, bytes);
    return *memory != NULL ? cudaSuccess : told(cudaErrorMemoryAllocation);
}

SHOWN cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    return cudaMalloc(memory, bytes);
}

SHOWN cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    return cudaMalloc(memory, bytes);
}

/* Under the lock. */
static bool is_through(uint64_t order)
{
    const struct CUstream_st *s;

    for (s = streams; s != NULL; s = s->next)
        if ((s->now != NULL && s->now->order <= order) || (s->first != NULL && s->first->order <= order))
            return false;
    return true;
}

SHOWN cudaError_t cudaFreeHost(void *memory)
{
    uint64_t order;

    pthread_mutex_lock(&lock);
    for (order = n_given; !is_through(order);)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    free(memory);
    return cudaSuccess;
}

SHOWN cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

/* ---- errors ---- */

SHOWN cudaError_t cudaGetLastError(void)
{
    const cudaError_t code = last_error;

    last_error = cudaSuccess;
    return code;
}

SHOWN void fake_cuda_unload(void);

SHOWN void fake_cuda_unload(void)
{
    pthread_mutex_lock(&lock);
    is_unloaded = true;
    pthread_mutex_unlock(&lock);
}

SHOWN const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess: return "no error";
    case cudaErrorNotReady: return "not ready";
    case cudaErrorNoDevice: return "no CUDA-capable device";
    case cudaErrorInvalidDevice: return "no such device";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorCudartUnloading: return "driver shutting down";
    default: return "an error of the stand-in";
    }
}
