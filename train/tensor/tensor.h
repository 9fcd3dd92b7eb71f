/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor.h - what the rooms above may use of this one.
 *
 * Two layers share the work. tutti_tensor_x() is public: it records gradients (autograd room) and
 * hands its result to the open scope. tti_raw_x() is the arithmetic alone: no recording, and the
 * caller owns the result, one reference. Both are poisoned by NULL. Backward functions and
 * optimizers are written in raw expressions; tti_temp() gives an intermediate result to the scope
 * that surrounds them. */
#ifndef TTI_TRAIN_TENSOR_TENSOR_H
#define TTI_TRAIN_TENSOR_TENSOR_H

#include <stdatomic.h>
#include <tutti/tensor.h>

/* Something that is still filling a memory: a collective under way, of which this room knows only
 * these two. Whoever looks at the memory settles it first, in tti_at(). */
typedef struct tti_pending {
    /* Wait for it, and put in place what it brought. Any threads, any number of times; the failure is
     * refused (tti_refuse()) and returned, each time. */
    tutti_status (*settle)(struct tti_pending *pending);
    /* The memory goes: settle, and drop the memory's reference. False: it may still be written to. */
    bool (*drop)(struct tti_pending *pending);
} tti_pending;

/* Memory, shared by all tensors that look at it. */
typedef struct tti_storage {
    void *data;
    size_t bytes;
    atomic_int refs;
    void (*free_fn)(void *data, void *ctx); /* of external memory; may be NULL */
    void *free_ctx;
    bool external; /* data came from the caller, not from memory.c */
    tti_pending
        *pending; /* set once, before anybody else sees the memory; NULL: there never was one */
    atomic_bool unsettled; /* pending has not been settled well; only goes from true to false */
} tti_storage;

/* Counts the in-place changes of a memory; shared by a tensor and its views. */
typedef struct tti_version {
    atomic_int refs;
    atomic_uint count;
} tti_version;

/* What autograd hangs on a tensor. This room only knows how to get rid of it. */
typedef struct tti_hanger {
    void (*drop)(struct tti_hanger *hanger);
} tti_hanger;

struct tutti_tensor {
    atomic_int refs;
    tutti_dtype dtype;
    int nd;
    int64_t shape[TUTTI_MAX_DIMS];
    int64_t stride[TUTTI_MAX_DIMS]; /* in elements; any value where shape is 1 */
    int64_t numel;
    int64_t offset; /* of the first element in st, in elements */
    tti_storage *st;
    tti_version *ver;
    tti_hanger *hanger; /* NULL: plain values */
};

/* ---- memory.c: blocks, aligned to 64 bytes, kept per thread for reuse; NULL when out of memory */
void *tti_mem_alloc(size_t bytes);
void *tti_mem_zalloc(size_t bytes); /* zeroed */
/* A larger block with what a block, which is freed, held; on failure NULL, and the block stays. */
void *tti_mem_grow(void *block, size_t bytes, size_t new_bytes);
void tti_mem_free(void *block, size_t bytes);

/* ---- failure.c: the first failure of an expression is kept, see tutti/tensor.h */
tutti_status tti_refuse(tutti_status status, const char *op, const char *fmt, ...)
    TUTTI_PRINTF(3, 4);
/* A failed expression in one word: refuse and be NULL. */
#define tti_poison(...) ((void)tti_refuse(__VA_ARGS__), (tutti_tensor *)NULL)
/* A NULL operand: keep it as the failure if none is kept yet. */
tutti_status tti_refuse_null(const char *op);
#define tti_poisoned(op) ((void)tti_refuse_null(op), (tutti_tensor *)NULL)
/* The status of this thread's latest refusal, kept or not. */
tutti_status tti_refused(void);
/* The kept failure, and the same with its words as last error and forgotten. */
tutti_status tti_kept(void);
tutti_status tti_take_kept(void);

/* ---- scope.c: pass the caller's reference to the open scope, if any. Returns t. */
tutti_tensor *tti_temp(tutti_tensor *t);

/* ---- object.c */
/* Check nd and shape, count the elements. Keeps the failure under op. */
tutti_status tti_shape_check(const char *op, int nd, const int64_t *shape, int64_t *numel_out);
void tti_contiguous_strides(int nd, const int64_t *shape, int64_t *stride_out);
tutti_tensor *tti_raw_empty(tutti_dtype dtype, int nd, const int64_t *shape);
tutti_tensor *tti_raw_zeros(tutti_dtype dtype, int nd, const int64_t *shape);
tutti_tensor *tti_raw_full(tutti_dtype dtype, int nd, const int64_t *shape, double value);
/* A tensor over memory of somebody else's, for tti_lend(). stride NULL: row-major. */
tutti_tensor *tti_raw_external(const char *op, void *data, tutti_dtype dtype, int nd,
                               const int64_t *shape, const int64_t *stride);
/* Hand t, made by tti_raw_external(), to the open scope; only if that succeeds free_fn is noted, so
 * that after a failure the memory is still its owner's. */
tutti_tensor *tti_lend(tutti_tensor *t, void (*free_fn)(void *data, void *ctx), void *ctx);
/* Memory that t was made over by tti_raw_external(), and that nobody is to be told of, goes: t and all views of it
 * look at a copy from now on. False: no memory for it. Nobody else may be looking meanwhile. */
bool tti_keep_copy(tutti_tensor *t);
/* t looks at the memory of by from now on, which has its elements already, row by row from an element of it; views of
 * t look at the old one. */
void tti_repoint(tutti_tensor *t, const tutti_tensor *by, int64_t offset);
/* Another tensor over the memory of x. */
tutti_tensor *tti_raw_alias(const tutti_tensor *x, int nd, const int64_t *shape,
                            const int64_t *stride, int64_t offset);
/* Have whoever looks at t, or at views of it, settle pending first; t is ours alone so far. */
void tti_await(tutti_tensor *t, tti_pending *pending);
/* Settle what st waits for. */
tutti_status tti_settle(tti_storage *st);
/* The same where it is not sure that there is something: OK, or a failure that is kept. */
static inline tutti_status tti_ready(const tutti_tensor *t)
{
    return atomic_load_explicit(&t->st->unsettled, memory_order_acquire) ? tti_settle(t->st)
                                                                         : TUTTI_OK;
}
unsigned tti_version_of(const tutti_tensor *t);
void tti_version_bump(tutti_tensor *t);
/* The elements, type and strides of one become those of the other, of the same shape; handles stay. */
void tti_swap_elements(tutti_tensor *a, tutti_tensor *b);
/* True if nobody but the caller's one reference sees t or its memory. */
bool tti_is_sole(const tutti_tensor *t);
bool tti_same_shape(const tutti_tensor *a, const tutti_tensor *b);
bool tti_same_layout(const tutti_tensor *a, const tutti_tensor *b);
/* True if writing one element would change several, as in an expanded view. */
bool tti_repeats_elements(const tutti_tensor *t);
static inline bool tti_is_real(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F64;
}
/* A type of 16 bits, which is computed with in f32 and rounded once, at the end. */
static inline bool tti_is_half(tutti_dtype dtype)
{
    return dtype == TUTTI_F16 || dtype == TUTTI_BF16;
}
/* A type that gradients flow through. */
static inline bool tti_is_floating(tutti_dtype dtype)
{
    return tti_is_real(dtype) || tti_is_half(dtype);
}
/* "[2, 3]" for error texts. */
typedef struct tti_shape_text {
    char s[TUTTI_MAX_DIMS * 21 + 3];
} tti_shape_text;
tti_shape_text tti_shape_str(int nd, const int64_t *shape);

/* ---- view.c */
/* Dimension d of nd, negative from the end; -1 and kept if there is none. */
int tti_dim_check(const char *op, int d, int nd);
/* The same where a scalar tensor counts as a vector of one element. */
int tti_dim_check_or_scalar(const char *op, int d, int nd);
tutti_tensor *tti_raw_view(const tutti_tensor *x, int nd, const int64_t *shape);
tutti_tensor *tti_raw_reshape(const tutti_tensor *x, int nd, const int64_t *shape);
tutti_tensor *tti_raw_transpose(const tutti_tensor *x, int d0, int d1);
tutti_tensor *tti_raw_permute(const tutti_tensor *x, const int *order);
tutti_tensor *tti_raw_narrow(const tutti_tensor *x, int dim, int64_t start, int64_t length);
tutti_tensor *tti_raw_select(const tutti_tensor *x, int dim, int64_t index);
tutti_tensor *tti_raw_expand(const tutti_tensor *x, int nd, const int64_t *shape);
tutti_tensor *tti_raw_unsqueeze(const tutti_tensor *x, int dim);
tutti_tensor *tti_raw_squeeze(const tutti_tensor *x, int dim);
tutti_tensor *tti_raw_detach(const tutti_tensor *x);

/* ---- iterate.c: walk up to four tensors of one shape row by row */
typedef void (*tti_loop)(int64_t n, void *o, int64_t so, const void *a, int64_t sa, const void *b,
                         int64_t sb, const double *c);
typedef void (*tti_loop3)(int64_t n, void *o, int64_t so, const void *a, int64_t sa, const void *b,
                          int64_t sb, const void *e, int64_t se, const double *c);
/* out and the operands; a and b broadcast to out's shape; b may be NULL. c is handed through: two
 * numbers for the loops of arithmetic. */
void tti_iterate(tti_loop loop, const double *c, tutti_tensor *out, const tutti_tensor *a,
                 const tutti_tensor *b);
void tti_iterate3(tti_loop3 loop, const double *c, tutti_tensor *out, const tutti_tensor *a,
                  const tutti_tensor *b, const tutti_tensor *e);
tutti_status tti_broadcast_shape(const char *op, const tutti_tensor *a, const tutti_tensor *b,
                                 int *nd_out, int64_t *shape_out);

/* ---- copy.c */
tutti_tensor *tti_raw_to(const tutti_tensor *x, tutti_dtype dtype); /* a new reference at least */
tutti_tensor *tti_raw_clone(const tutti_tensor *x);
tutti_tensor *tti_raw_contiguous(const tutti_tensor *x); /* x itself, retained, if it is */
tutti_status tti_raw_copy_(tutti_tensor *t, const tutti_tensor *src);
tutti_status tti_raw_fill_(tutti_tensor *t, double value);

/* ---- pointwise.c */
typedef enum tti_op1 {
    TTI_NEG,
    TTI_EXP,
    TTI_LOG,
    TTI_SQRT,
    TTI_RSQRT,
    TTI_TANH,
    TTI_ERF,
    TTI_SIGMOID,
    TTI_RELU,
    TTI_GELU,
    TTI_GELU_TANH,
    TTI_SILU,
    TTI_ABS,
    TTI_CLAMP, /* to c .. d */
    TTI_POW,   /* to the power of c */
    TTI_ADD_C,
    TTI_MUL_C,
    TTI_DIV_C,
    TTI_OP1_COUNT
} tti_op1;
typedef enum tti_op2 {
    TTI_ADD, /* a + c b */
    TTI_MUL,
    TTI_DIV,
    TTI_MAXIMUM,
    TTI_MINIMUM,
    /* a times the slope of the operation, of which b is the result */
    TTI_SQRT_BACK,
    TTI_RSQRT_BACK,
    TTI_TANH_BACK,
    TTI_SIGMOID_BACK,
    TTI_RELU_BACK,
    /* the same, of which b is the operand */
    TTI_ERF_BACK,
    TTI_GELU_BACK,
    TTI_GELU_TANH_BACK,
    TTI_SILU_BACK,
    TTI_ABS_BACK,
    TTI_CLAMP_BACK,
    TTI_EQ,
    TTI_LT,
    TTI_LE,
    TTI_OP2_COUNT
} tti_op2;
typedef enum tti_op3 {
    TTI_MAXIMUM_BACK, /* the share of gradient a that belongs to b, which met e */
    TTI_MINIMUM_BACK,
    TTI_OP3_COUNT
} tti_op3;
/* The type that operands of a and b (b may be NULL) meet in. */
tutti_dtype tti_promote(const tutti_tensor *a, const tutti_tensor *b);
tutti_tensor *tti_raw_op1(tti_op1 op, const tutti_tensor *x, double c);
tutti_tensor *tti_raw_clamp(const tutti_tensor *x, double low, double high);
/* x to the power of p; squares and roots are taken as such. */
tutti_tensor *tti_raw_pow(const tutti_tensor *x, double p);
tutti_tensor *tti_raw_op2(tti_op2 op, const tutti_tensor *a, const tutti_tensor *b, double c);
tutti_tensor *tti_raw_clamp_back(const tutti_tensor *g, const tutti_tensor *x, double low,
                                 double high);
tutti_tensor *tti_raw_op3(tti_op3 op, const tutti_tensor *a, const tutti_tensor *b,
                          const tutti_tensor *e);
/* a where cond (bool or u8) is not 0, else b; all three broadcast. */
tutti_tensor *tti_raw_where(const tutti_tensor *cond, const tutti_tensor *a, const tutti_tensor *b);
tutti_status tti_raw_op1_(tti_op1 op, tutti_tensor *t, double c);
tutti_status tti_raw_op2_(tti_op2 op, tutti_tensor *t, const tutti_tensor *b, double c);
#define tti_raw_mul(a, b)   tti_raw_op2(TTI_MUL, (a), (b), 0.0)
#define tti_raw_div(a, b)   tti_raw_op2(TTI_DIV, (a), (b), 0.0)
#define tti_raw_neg(x)      tti_raw_op1(TTI_NEG, (x), 0.0)
#define tti_raw_scale(x, c) tti_raw_op1(TTI_MUL_C, (x), (c))

/* ---- reduce.c */
tutti_tensor *tti_raw_sum(const tutti_tensor *x, const int *dims, int n_dims, bool keepdim);
/* Which dimensions a list names (none: all) as a bit mask; kept under op on failure. */
tutti_status tti_dims_mask(const char *op, const int *dims, int n_dims, int nd, unsigned *mask_out);
/* Sum a gradient over what broadcasting from shape had repeated. A new reference at least. */
tutti_tensor *tti_raw_reduce_to(const tutti_tensor *g, int nd, const int64_t *shape);

/* Where the largest, or smallest, element along dim stands, as i64; dim stays with size 1. */
tutti_tensor *tti_raw_argextreme(const char *op, const tutti_tensor *x, int dim, bool smallest);
/* x without the dimensions of mask, which have size 1; a view. */
tutti_tensor *tti_raw_without_dims(const tutti_tensor *x, unsigned mask);

/* ---- index.c */
/* Every element of index, i64 and contiguous, is in 0 .. n-1; kept under op if not. */
tutti_status tti_index_check(const char *op, const tutti_tensor *index, int64_t n);
tutti_tensor *tti_raw_index_select(const char *op, const tutti_tensor *x, int dim,
                                   const tutti_tensor *index);
/* Zeros of that shape, and g added to the places that index_select took it from. index is checked. */
tutti_tensor *tti_raw_index_add(const tutti_tensor *g, int dim, const tutti_tensor *index, int nd,
                                const int64_t *shape);
tutti_tensor *tti_raw_index_gather(const tutti_tensor *x, int dim, const tutti_tensor *index);
tutti_tensor *tti_raw_scatter_add(const tutti_tensor *g, int dim, const tutti_tensor *index, int nd,
                                  const int64_t *shape);
tutti_tensor *tti_raw_cat(int n, tutti_tensor *const *xs, int dim);
/* A copy with zeros above (or, if upper, below) the diagonal, which lies so many columns to the right. */
tutti_tensor *tti_raw_triangle(const char *op, const tutti_tensor *x, int64_t diagonal, bool upper);

/* Warn, once per process, when the CBLAS computes with kernels far below this processor. */
void tti_blas_look(void);

/* ---- product.c: C = alpha op(A) op(B) + beta C, row-major, f32 or f64; beta 0 does not read C */
typedef struct tti_gemm_shape {
    bool ta, tb;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
} tti_gemm_shape;
void tti_gemm(tutti_dtype dtype, const tti_gemm_shape *s, double alpha, const void *a,
              const void *b, double beta, void *c);
tutti_tensor *tti_raw_mm(const char *op, const tutti_tensor *a, const tutti_tensor *b);
/* Products of the matrices in the last two dimensions, those before broadcast. */
tutti_tensor *tti_raw_bmm(const char *op, const tutti_tensor *a, const tutti_tensor *b);
/* Where matrix number i of x lies, in elements from its first, when the leading dimensions of x
 * broadcast to the nd ones of lead. */
int64_t tti_matrix_at(int nd, const int64_t *lead, const tutti_tensor *x, int64_t i);
/* x as CBLAS takes its last two dimensions: rows side by side (t false) or columns (t true), ld apart.
 * x itself, retained, or a copy. */
tutti_tensor *tti_raw_matrices(const tutti_tensor *x, bool *t_out, int64_t *ld_out);

/* ---- random.c */
tutti_status tti_raw_uniform_(tutti_tensor *t, double low, double high, tutti_generator *gen);
tutti_status tti_raw_normal_(tutti_tensor *t, double mean, double std, tutti_generator *gen);
tutti_status tti_raw_bernoulli_(tutti_tensor *t, double p, tutti_generator *gen);

/* The one way to the elements, so that nobody sees them before they are there. A failure of what was
 * to bring them is kept, the elements are then anything. */
static inline void *tti_at(const tutti_tensor *t)
{
    (void)tti_ready(t);
    return (char *)t->st->data + (size_t)t->offset * tutti_dtype_size(t->dtype);
}

#endif
