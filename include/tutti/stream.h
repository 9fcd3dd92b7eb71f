/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/stream.h - memory of devices whose work is done in the order of streams: what a call waits for, and who waits for it.
 *
 * A span of TUTTI_CUDA is memory that its device works on beside the program: what a thread gave to a stream may not have been
 * done when it issues a call. So each thread has a stream for each kind of device, which its calls go by:
 * - A collective begins behind all that the thread's stream was given before the call.
 * - A blocking collective returns when the device has been told of it: what the thread's stream is given afterwards begins
 *   behind it. The program waits for no device. tutti_barrier() does, as nobody goes through before all have come.
 * - tutti_work_wait() lets the stream of the thread that waits begin what it is given afterwards behind the operation.
 *   tutti_work_wait_for() with a time, also TUTTI_INFINITE, waits on this thread until the device is through; then
 *   memory may be looked at, or freed, by whoever is at hand.
 * - tutti_work_is_completed() and tutti_wait_any() say whether the device is through. What is attached to a work
 *   (tutti_work_then(), futures) is called when the device has been told; it goes on with tutti_work_wait().
 * - A message begins behind the thread's stream, too. Waits for messages wait for the device.
 * - A call that fails after that (its time is up, a rank is gone) fails in whoever asks for its end later, and in the group's next call;
 *   what a stream was given behind it runs, on data that are not there. Look for failures before results are used.
 *
 * All this is so where the backend works in streams, as "nccl" does; others are through when a call returns. "native" and
 * "mpi" do their work on the host: who runs a call waits there for the stream and for the other ranks, and at most copies back are left
 * to the device. Handles are the device's
 * own (cudaStream_t), never kept longer than a call, NULL the default stream of the thread's device. */
#ifndef TUTTI_STREAM_H
#define TUTTI_STREAM_H

#include <tutti/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Let this thread's calls on memory of a kind of device go by a stream, until called again.
 *
 * @param device  TUTTI_CUDA; TUTTI_CPU has no streams
 * @param stream  a cudaStream_t of the device that the spans lie on; NULL: the default one, as at first
 * @errors   TUTTI_E_ARG  the kind of device has no streams
 * @threads  changes the calling thread only
 * @source   torch.cuda.set_stream, torch.cuda.stream */
TUTTI_API tutti_status tutti_set_stream(tutti_device_type device, void *stream);

/** The stream that this thread's calls go by.
 * @errors   none; NULL where none was set
 * @threads  any
 * @source   torch.cuda.current_stream */
TUTTI_API void *tutti_get_stream(tutti_device_type device);

#ifdef __cplusplus
}
#endif
#endif
