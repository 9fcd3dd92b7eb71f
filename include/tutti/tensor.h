/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/tensor.h - tensors: memory with a shape, who owns them, and random numbers to fill them.
 *
 * Expressions are the one place where a call returns no status: they return a tensor, NULL when
 * they failed. NULL poisons: an operation with a NULL operand returns NULL and says nothing more.
 * The first failure is kept per thread, with the name of its operation; tutti_backward(),
 * tutti_optim_step() and tutti_tensor_check() return it as a status and forget it. So
 * loss = f(g(x)) needs no test per line, and every loop that steps hears of every failure.
 *
 * Who owns a result: the innermost scope of the thread (tutti_scope_begin), which drops it at its
 * end; with no scope open, the caller, who drops it with tutti_tensor_release(). What must outlive
 * its scope is retained. Everything here is about host memory and up to 8 dimensions; element
 * types are f32, f64, f16, bf16, i64, i32, u8 and bool. Arithmetic is for real types and i64; f16 and
 * bf16 are computed with in f32, sums too, and rounded once, at the end of each operation. The others
 * are masks and labels, which are compared, copied and converted. */
#ifndef TUTTI_TENSOR_H
#define TUTTI_TENSOR_H

#include <stdbool.h>
#include <tutti/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUTTI_MAX_DIMS = 8 };

/** A strided view of reference-counted memory. Strides count elements. Tensors that are views of
 * one memory share a version counter, so that autograd notices values that changed under it. */
typedef struct tutti_tensor tutti_tensor;

/** A stream of random numbers. A NULL generator means the calling thread's default one. */
typedef struct tutti_generator tutti_generator;

/* ---- who owns what ---------------------------------------------------------------------------- */

/** Open a scope on this thread: tensors made from now on belong to it.
 * Scopes nest; beyond 64 open ones the 64th owns everything. Never fails.
 * @threads each thread has its own scopes
 * @source  ours */
TUTTI_API void tutti_scope_begin(void);

/** Close the innermost scope and drop its reference to every tensor made in it. With no scope
 * open: does nothing.
 * @threads each thread has its own scopes
 * @source  ours */
TUTTI_API void tutti_scope_end(void);

/** One more reference, the caller's own, whatever scopes do. NULL stays NULL. Returns t.
 * @threads any
 * @source  ours */
TUTTI_API tutti_tensor *tutti_tensor_retain(tutti_tensor *t);

/** Drop one reference; the last one frees. NULL does nothing. What a scope owns is not the
 * caller's to drop.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_tensor_release(tutti_tensor *t);

/** Give the memory that this thread keeps for its next tensors back to the system.
 * @threads each thread has its own cache
 * @source  torch.cuda.empty_cache */
TUTTI_API void tutti_empty_cache(void);

/** How often this thread took a block of memory from the system, for elements or for what describes them,
 * because none was kept. A loop that has settled stands still here.
 * @threads each thread has its own count
 * @source  torch.cuda.memory_stats()["num_device_alloc"] */
TUTTI_API int64_t tutti_cache_misses(void);

/* ---- what went wrong -------------------------------------------------------------------------- */

/** The first failure of this thread's expressions since the last call of this kind, which is then
 * forgotten; TUTTI_OK if there was none. tutti_last_error() has its words again.
 * @errors  whatever the failed operation found
 * @threads each thread has its own
 * @source  ours: torch raises an exception on the spot */
TUTTI_API tutti_status tutti_tensor_check(void);

/* ---- making tensors --------------------------------------------------------------------------- */

/** A tensor of the shape given, its elements undefined.
 * @param nd     0..8; 0 makes a scalar tensor of one element, shape may then be NULL
 * @param shape  nd sizes >= 0; a tensor without elements is legal everywhere. The sizes that are
 *               not 0 may come to at most 2^59 when multiplied
 * @errors  NULL and kept: TUTTI_E_ARG bad shape, TUTTI_E_UNSUPPORTED dtype, TUTTI_E_NOMEM
 * @threads any
 * @source  torch.empty */
TUTTI_API tutti_tensor *tutti_tensor_empty(tutti_dtype dtype, int nd, const int64_t *shape);

/** As tutti_tensor_empty(), all elements zero.
 * @threads any
 * @source  torch.zeros */
TUTTI_API tutti_tensor *tutti_tensor_zeros(tutti_dtype dtype, int nd, const int64_t *shape);

/** As tutti_tensor_empty(), all elements one.
 * @threads any
 * @source  torch.ones */
TUTTI_API tutti_tensor *tutti_tensor_ones(tutti_dtype dtype, int nd, const int64_t *shape);

/** As tutti_tensor_empty(), all elements value, converted to dtype.
 * @threads any
 * @source  torch.full */
TUTTI_API tutti_tensor *tutti_tensor_full(tutti_dtype dtype, int nd, const int64_t *shape,
                                          double value);

/** A scalar tensor (no dimensions) holding value.
 * @threads any
 * @source  torch.tensor */
TUTTI_API tutti_tensor *tutti_tensor_scalar(tutti_dtype dtype, double value);

/** start, start + step, ... up to but without end.
 * @shapes  -> [ceil((end - start) / step)]
 * @errors  NULL and kept: TUTTI_E_ARG  step is 0 or leads away from end
 * @threads any
 * @source  torch.arange */
TUTTI_API tutti_tensor *tutti_tensor_arange(tutti_dtype dtype, double start, double end,
                                            double step);

/** A tensor over memory of the caller's, row-major.
 * @param data     borrowed until free_fn is called; aligned for dtype; NULL only without elements
 * @param free_fn  called with (data, ctx) when the last tensor over the memory is gone, on that
 *                 thread; NULL: nobody is called, the memory outlives the tensors. On failure of
 *                 this call it is not called.
 * @errors  NULL and kept: TUTTI_E_ARG, TUTTI_E_UNSUPPORTED, TUTTI_E_NOMEM
 * @threads any
 * @source  torch.from_numpy, torch.frombuffer */
TUTTI_API tutti_tensor *tutti_tensor_from_ptr(void *data, tutti_dtype dtype, int nd,
                                              const int64_t *shape,
                                              void (*free_fn)(void *data, void *ctx), void *ctx);

/** A tensor holding a copy of row-major elements of dtype.
 * @param data  numel elements, only read
 * @threads any
 * @source  torch.tensor */
TUTTI_API tutti_tensor *tutti_tensor_from_data(const void *data, tutti_dtype dtype, int nd,
                                               const int64_t *shape);

/* ---- DLPack ------------------------------------------------------------------------------------
 *
 * Tensors that numpy, torch, JAX, CuPy and others share without a copy. The structs are declared in
 * tutti/dlpack.h, which a program that only passes the pointers on does not need. */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** A tensor over another library's memory, strides included.
 * @param managed  taken over: its deleter is called once, when the last tensor over the memory is
 *                 gone, on that thread. On failure it stays the caller's and is not called.
 * @errors  NULL and kept: TUTTI_E_ARG          NULL, a broken shape, more than 8 dimensions, memory
 *                                              not aligned for its elements, a stride below 0
 *                         TUTTI_E_UNSUPPORTED  not host memory, or elements of another type than
 *                                              tensors have here
 *                         TUTTI_E_NOMEM
 * @threads any
 * @source  torch.utils.dlpack.from_dlpack */
TUTTI_API tutti_tensor *tutti_tensor_from_dlpack(struct DLManagedTensor *managed);

/** The same for the versioned struct. Tensors can be written, so what is marked read-only is copied,
 * and its deleter called before this returns.
 * @errors  as tutti_tensor_from_dlpack(); TUTTI_E_UNSUPPORTED also for a major version other than 1
 * @threads any
 * @source  torch.utils.dlpack.from_dlpack */
TUTTI_API tutti_tensor *
tutti_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed);

/** Lend t's memory to another library, strides included. Both see what the other writes; autograd
 * does not, so a tensor that takes part in gradients is refused.
 * @param managed_out  holds a reference to t; whoever takes it over calls its deleter once, on any
 *                     thread
 * @errors  TUTTI_E_STATE  t takes part in gradients
 *          TUTTI_E_NOMEM
 *          t is NULL: the failure that is kept, and it stays kept
 * @threads any
 * @source  torch.utils.dlpack.to_dlpack */
TUTTI_API tutti_status tutti_tensor_to_dlpack(tutti_tensor *t,
                                              struct DLManagedTensor **managed_out);

/** The same as the versioned struct, version 1.1, without flags.
 * @errors  as tutti_tensor_to_dlpack()
 * @threads any
 * @source  torch.Tensor.__dlpack__(max_version=(1, 1)) */
TUTTI_API tutti_status
tutti_tensor_to_dlpack_versioned(tutti_tensor *t, struct DLManagedTensorVersioned **managed_out);

/* ---- looking at tensors ----------------------------------------------------------------------- */

/** The element type; of NULL: TUTTI_DTYPE_COUNT.
 * @threads any
 * @source  Tensor.dtype */
TUTTI_API tutti_dtype tutti_tensor_dtype(const tutti_tensor *t);

/** How many dimensions; of NULL: -1.
 * @threads any
 * @source  Tensor.dim */
TUTTI_API int tutti_tensor_dim(const tutti_tensor *t);

/** The size of dimension d, counted from the end if negative; -1 of NULL or where there is no such
 * dimension.
 * @threads any
 * @source  Tensor.size */
TUTTI_API int64_t tutti_tensor_size(const tutti_tensor *t, int d);

/** How many elements lie between neighbours along dimension d; as tutti_tensor_size() otherwise.
 * @threads any
 * @source  Tensor.stride */
TUTTI_API int64_t tutti_tensor_stride(const tutti_tensor *t, int d);

/** How many elements; of NULL: -1.
 * @threads any
 * @source  Tensor.numel */
TUTTI_API int64_t tutti_tensor_numel(const tutti_tensor *t);

/** True if the elements lie row-major without gaps; of NULL: false.
 * @threads any
 * @source  Tensor.is_contiguous */
TUTTI_API bool tutti_tensor_is_contiguous(const tutti_tensor *t);

/** The address of the first element; of NULL: NULL, also where a collective that was to bring the
 * elements failed (tutti/comm.h), which is kept. Writing through it is not seen by the version
 * counter: do it where no graph holds the tensor, as with tutti_tensor_span().
 * @threads any
 * @source  Tensor.data_ptr */
TUTTI_API void *tutti_tensor_data(const tutti_tensor *t);

/** The elements as a span, for collectives and files; valid as long as the tensor.
 * @errors  NULL or not contiguous: kept, and a span of count -1, which every call refuses
 * @threads any
 * @source  ours */
TUTTI_API tutti_span tutti_tensor_span(const tutti_tensor *t);

/** The value of a one-element tensor.
 * @errors  TUTTI_E_ARG  more or fewer elements; NULL: the failure that is kept, and it stays kept
 * @threads any
 * @source  Tensor.item */
TUTTI_API tutti_status tutti_tensor_item(const tutti_tensor *t, double *value_out);

/* ---- no gradients flow through these ---------------------------------------------------------- */

/** Where the largest element along dim stands; the first of equals; a NaN counts as largest.
 * @shapes  [.., n, ..] -> [.., ..] of i64; keepdim: [.., 1, ..]
 * @errors  NULL and kept: TUTTI_E_ARG  no such dimension, or no elements along it
 * @threads any
 * @source  torch.argmax */
TUTTI_API tutti_tensor *tutti_tensor_argmax(const tutti_tensor *t, int dim, bool keepdim);

/** Where the smallest element along dim stands; as tutti_tensor_argmax().
 * @threads any
 * @source  torch.argmin */
TUTTI_API tutti_tensor *tutti_tensor_argmin(const tutti_tensor *t, int dim, bool keepdim);

/** Element by element a == b, with broadcasting; the result is bool.
 * @threads any
 * @source  torch.eq */
TUTTI_API tutti_tensor *tutti_tensor_eq(const tutti_tensor *a, const tutti_tensor *b);

/** Element by element a < b, with broadcasting; the result is bool.
 * @threads any
 * @source  torch.lt */
TUTTI_API tutti_tensor *tutti_tensor_lt(const tutti_tensor *a, const tutti_tensor *b);

/** Element by element a <= b, with broadcasting; the result is bool.
 * @threads any
 * @source  torch.le */
TUTTI_API tutti_tensor *tutti_tensor_le(const tutti_tensor *a, const tutti_tensor *b);

/** True if both have one shape and one dtype and all elements are equal; a NaN equals nothing.
 * @errors  none: NULL operands are unequal
 * @threads any
 * @source  torch.equal */
TUTTI_API bool tutti_tensor_equal(const tutti_tensor *a, const tutti_tensor *b);

/* ---- random numbers --------------------------------------------------------------------------- */

/** Seed this thread's default generator. Draws that follow are those of PyTorch on a CPU with the
 * same seed; only the low 32 bits of it matter there and here.
 * @threads each thread has its own default generator, so that threads can be ranks
 * @source  torch.manual_seed */
TUTTI_API void tutti_manual_seed(uint64_t seed);

/** A generator of its own, seeded.
 * @errors  NULL and kept: TUTTI_E_NOMEM
 * @threads a generator is used by one thread at a time
 * @source  torch.Generator */
TUTTI_API tutti_generator *tutti_generator_create(uint64_t seed);

/** Free a generator made by tutti_generator_create(). NULL does nothing.
 * @threads any
 * @source  ours */
TUTTI_API void tutti_generator_free(tutti_generator *gen);

/** Start the stream of gen (NULL: the default one) anew.
 * @threads one at a time
 * @source  torch.Generator.manual_seed */
TUTTI_API void tutti_generator_seed(tutti_generator *gen, uint64_t seed);

/** The next 64 bits: two 32-bit draws, the first one on top.
 * @threads one at a time
 * @source  ours */
TUTTI_API uint64_t tutti_generator_random64(tutti_generator *gen);

/** Bytes of a generator's saved state.
 * @threads any
 * @source  ours */
TUTTI_API size_t tutti_generator_state_bytes(void);

/** Save where gen stands into state_out, tutti_generator_state_bytes() long.
 * @threads one at a time
 * @source  torch.Generator.get_state */
TUTTI_API void tutti_generator_get_state(const tutti_generator *gen, void *state_out);

/** Continue where a saved state stood.
 * @errors  TUTTI_E_ARG  bytes is not tutti_generator_state_bytes(), or no state was saved there
 * @threads one at a time
 * @source  torch.Generator.set_state */
TUTTI_API tutti_status tutti_generator_set_state(tutti_generator *gen, const void *state,
                                                 size_t bytes);

/** Uniform numbers over [0, 1), f32 or f64.
 * @threads one at a time per generator
 * @source  torch.rand */
TUTTI_API tutti_tensor *tutti_tensor_rand(tutti_dtype dtype, int nd, const int64_t *shape,
                                          tutti_generator *gen);

/** Normal numbers of mean 0 and deviation 1, f32 or f64.
 * @threads one at a time per generator
 * @source  torch.randn */
TUTTI_API tutti_tensor *tutti_tensor_randn(tutti_dtype dtype, int nd, const int64_t *shape,
                                           tutti_generator *gen);

/** Whole numbers low .. high-1, as i64.
 * @errors  NULL and kept: TUTTI_E_ARG  low >= high
 * @threads one at a time per generator
 * @source  torch.randint */
TUTTI_API tutti_tensor *tutti_tensor_randint(int64_t low, int64_t high, int nd,
                                             const int64_t *shape, tutti_generator *gen);

/** The numbers 0 .. n-1 in random order, as i64.
 * @shapes  -> [n]
 * @errors  NULL and kept: TUTTI_E_ARG  n is negative or 2^32 or more
 * @threads one at a time per generator
 * @source  torch.randperm */
TUTTI_API tutti_tensor *tutti_tensor_randperm(int64_t n, tutti_generator *gen);

#ifdef __cplusplus
}
#endif
#endif
