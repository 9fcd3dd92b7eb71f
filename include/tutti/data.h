/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/data.h - pictures and labels from IDX files, who trains on which, and in what order.
 *
 * Four ideas, none of which knows a tensor; all buffers are the caller's:
 *
 *   tutti_dataset     the pictures of one pair of IDX files, plain or gzip; fetched as f32
 *   tutti_partition   which samples belong to which rank: a shuffle that is the same on all ranks
 *   tutti_distributed_sampler  the same anew for every epoch, all ranks with as many samples
 *   tutti_loader      the order of one epoch, cut into batches; the last one may be smaller
 *
 * and tutti_digits_*, which makes a data set of drawn digits, so that nothing is downloaded. */
#ifndef TUTTI_DATA_H
#define TUTTI_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an IDX file may hold. A header that claims more is refused before memory is taken. */
enum {
    TUTTI_IDX_SIDE_MAX = 4096,       /* rows, columns */
    TUTTI_IDX_COUNT_MAX = 1 << 24,   /* pictures, labels */
    TUTTI_IDX_BYTES_MAX = 1 << 30,   /* pixels of all pictures of a file */
    TUTTI_DATASET_CLASSES = 10,      /* labels are 0..9 */
    TUTTI_PARTITION_MAX = 0x7fffffff /* samples that a partition or a loader counts */
};

/** Which of the two standard pairs of files of a directory. */
typedef enum tutti_dataset_part {
    TUTTI_DATASET_TRAIN = 0, /* train-images-idx3-ubyte, train-labels-idx1-ubyte */
    TUTTI_DATASET_TEST = 1   /* t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte */
} tutti_dataset_part;

/** Pictures of one size, each with a label; read only. Opaque. */
typedef struct tutti_dataset tutti_dataset;

/** Read a pair of IDX files from a directory, each as "name" or, where that is absent, "name.gz".
 *
 * @param dir      a directory with the four standard names
 * @param part     which pair
 * @param ds_out   a new data set; end it with tutti_dataset_free()
 *
 * @shapes   pictures [length, rows, cols] of one byte, labels [length] of one byte
 * @errors   as tutti_dataset_open_files()
 * @threads  any
 * @cost     reads and inflates both files once; holds one byte a pixel
 * @source   torchvision.datasets.MNIST */
TUTTI_API tutti_status tutti_dataset_open(const char *dir, tutti_dataset_part part,
                                          tutti_dataset **ds_out);

/** The same from two files by name. A name that does not exist is tried with ".gz" behind it.
 * Whether a file is gzip is seen by its first bytes, not by its name.
 *
 * @param images   IDX file with magic 0x00000803
 * @param labels   IDX file with magic 0x00000801
 *
 * @errors   TUTTI_E_ARG    a name is NULL or empty, or part is no part
 *           TUTTI_E_IO     missing, not a regular file, wrong magic, truncated, trailing bytes,
 *                          damaged gzip, a side or count of 0 or above the limits, unequal
 *                          counts of pictures and labels, a label above 9; the text says which, and
 *                          in what file
 *           TUTTI_E_NOMEM  no memory for the contents
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_dataset_open_files(const char *images, const char *labels,
                                                tutti_dataset **ds_out);

/** A data set of count samples from first on. It shares the pictures: either may be freed
 * before the other.
 *
 * @param view_out  a new data set; end it with tutti_dataset_free()
 *
 * @errors   TUTTI_E_ARG    first or count is negative, or the range ends behind the data set
 *           TUTTI_E_NOMEM  no memory for the handle
 * @threads  any
 * @cost     no copy
 * @source   torch.utils.data.Subset */
TUTTI_API tutti_status tutti_dataset_view(const tutti_dataset *ds, int64_t first, int64_t count,
                                          tutti_dataset **view_out);

/** End a data set; the pictures go with the last one that shares them. NULL is legal.
 * @threads  any; not while another thread uses the same handle
 * @source   ours */
TUTTI_API void tutti_dataset_free(tutti_dataset *ds);

/** Samples of a data set.
 * @threads  any
 * @source   len(dataset) */
TUTTI_API int64_t tutti_dataset_length(const tutti_dataset *ds);

/** Rows of each picture, in pixels.
 * @threads  any
 * @source   ours */
TUTTI_API int64_t tutti_dataset_rows(const tutti_dataset *ds);

/** Columns of each picture, in pixels.
 * @threads  any
 * @source   ours */
TUTTI_API int64_t tutti_dataset_cols(const tutti_dataset *ds);

/** Copy samples, pixels normalised: x = (byte / 255 - 0.1307) / 0.3081, each step rounded to f32.
 *
 * @param index       n numbers of 0..length-1, in any order, also repeated
 * @param images_out  n * rows * cols floats, or NULL where pictures are not wanted
 * @param labels_out  n labels, or NULL
 *
 * @shapes   [n] -> images [n, 1, rows, cols], labels [n]
 * @errors   TUTTI_E_ARG  n is negative, index is NULL and n > 0, or an index is out of range;
 *                        nothing was written
 * @threads  any; the data set does not change
 * @numbers  the bits of torchvision's ToTensor followed by Normalize
 * @source   ToTensor(), Normalize((0.1307,), (0.3081,)) */
TUTTI_API tutti_status tutti_dataset_fetch(const tutti_dataset *ds, const int64_t *index, int64_t n,
                                           float *images_out, int64_t *labels_out);

/** Write pictures as a plain IDX file. The file appears under its name when it is whole: it is
 * written as "path.part" first, so one writer at a time for one path.
 *
 * @param pixels  count * rows * cols bytes
 *
 * @errors   TUTTI_E_ARG  a NULL, a side or count of 0 or above the limits
 *           TUTTI_E_IO, TUTTI_E_NOMEM  the system's word; the old file, if any, is untouched
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_idx_write_images(const char *path, const uint8_t *pixels,
                                              int64_t count, int64_t rows, int64_t cols);

/** Write labels as a plain IDX file, in the same way.
 *
 * @param labels  count bytes of 0..9
 *
 * @errors   TUTTI_E_ARG  a NULL, count is 0 or above the limit, or a label is above 9
 *           TUTTI_E_IO, TUTTI_E_NOMEM  the system's word; the old file, if any, is untouched
 * @threads  any
 * @source   ours */
TUTTI_API tutti_status tutti_idx_write_labels(const char *path, const uint8_t *labels,
                                              int64_t count);

/** The drawn digits: 28 x 28 pixels, and where the test set begins in the endless row of them. */
enum { TUTTI_DIGITS_SIDE = 28 };
#define TUTTI_DIGITS_TEST_FIRST (INT64_C(1) << 40)

/** Draw digits number first to first + count - 1 of a seed. Digit i depends on (seed, i) alone.
 *
 * @param images_out  count * 28 * 28 bytes, 0 paper to 255 ink
 * @param labels_out  count bytes of 0..9
 *
 * @errors   TUTTI_E_ARG  first or count is negative or their sum overflows, or a buffer is NULL
 * @threads  any
 * @numbers  same bytes on every machine and in every build
 * @cost     about 25 us a digit
 * @source   ours */
TUTTI_API tutti_status tutti_digits_draw(uint64_t seed, int64_t first, int64_t count,
                                         uint8_t *images_out, uint8_t *labels_out);

/** Make a data set of drawn digits that tutti_dataset_open() reads: four plain IDX files in dir,
 * which is made if it is absent (its parent must be there). Training digits are 0..train-1, test
 * digits begin at TUTTI_DIGITS_TEST_FIRST: they do not depend on the size of the training set.
 *
 * @errors   TUTTI_E_ARG  dir is NULL or empty, train or test is below 1 or does not fit in a file
 *           TUTTI_E_IO, TUTTI_E_NOMEM  the system's word
 * @threads  any; one writer at a time for one directory
 * @source   ours */
TUTTI_API tutti_status tutti_digits_write(const char *dir, uint64_t seed, int64_t train,
                                          int64_t test);

/** Samples of one rank: floor((1.0 / ranks) * n), in f64. What is left over belongs to nobody.
 *
 * @errors   TUTTI_E_ARG  n is not 0..TUTTI_PARTITION_MAX, ranks is below 1, or rank is not
 *                        0..ranks-1
 * @threads  any
 * @source   the tutorial's DataPartitioner */
TUTTI_API tutti_status tutti_partition_length(int64_t n, int rank, int ranks, int64_t *length_out);

/** Which samples of 0..n-1 belong to a rank: shuffle 0..n-1 with the seed, then take the
 * rank's slice. All ranks shuffle alike, so that no slices overlap; the tutorial's seed is 1234.
 *
 * @param index_out  room for the rank's tutti_partition_length() numbers
 *
 * @errors   TUTTI_E_ARG    as tutti_partition_length(), or index_out is NULL and the slice is not
 *                          empty
 *           TUTTI_E_NOMEM  no memory for n numbers
 * @threads  any
 * @numbers  the order of CPython's random.Random(seed).shuffle()
 * @cost     O(n)
 * @source   the tutorial's DataPartitioner(data, [1 / ranks] * ranks, seed).use(rank) */
TUTTI_API tutti_status tutti_partition(uint64_t seed, int64_t n, int rank, int ranks,
                                       int64_t *index_out);

/** How a distributed sampler divides; a zero field means its default. Begin with
 * TUTTI_DISTRIBUTED_SAMPLER_OPTIONS. */
typedef struct tutti_distributed_sampler_options {
    size_t size;
    uint64_t seed;  /* the same on all ranks; default 0 */
    bool in_order;  /* do not shuffle */
    bool drop_last; /* leave samples out, so that all ranks have as many; default: some come twice */
} tutti_distributed_sampler_options;

#ifdef __cplusplus
#define TUTTI_DISTRIBUTED_SAMPLER_OPTIONS                           \
    {                                                               \
        sizeof(tutti_distributed_sampler_options), 0, false, false  \
    }
#else
#define TUTTI_DISTRIBUTED_SAMPLER_OPTIONS                 \
    {                                                     \
        .size = sizeof(tutti_distributed_sampler_options) \
    }
#endif

/** Which samples a rank has in an epoch: all ranks shuffle alike, each takes every replicas-th. Filled by
 * tutti_distributed_sampler_init(); there is nothing to free. */
typedef struct tutti_distributed_sampler {
    int64_t n;
    int replicas, rank;
    uint64_t seed, epoch;
    bool in_order, drop_last;
} tutti_distributed_sampler;

/** Prepare a sampler for n samples, at epoch 0.
 *
 * @param replicas  how many ranks there are
 * @param opts      NULL: TUTTI_DISTRIBUTED_SAMPLER_OPTIONS
 *
 * @errors   TUTTI_E_ARG  n is not 0..TUTTI_PARTITION_MAX, replicas is below 1, rank is not 0..replicas-1,
 *                        options that were not begun with their initialiser
 * @threads  one at a time for one sampler
 * @source   torch.utils.data.distributed.DistributedSampler */
TUTTI_API tutti_status
tutti_distributed_sampler_init(tutti_distributed_sampler *sampler, int64_t n, int replicas, int rank,
                               const tutti_distributed_sampler_options *opts);

/** Samples of each rank: n / replicas rounded up, or with drop_last down.
 * @threads  any
 * @source   len(sampler) */
TUTTI_API int64_t tutti_distributed_sampler_length(const tutti_distributed_sampler *sampler);

/** Choose the epoch: without it every epoch has the same order. The same on all ranks.
 * @threads  one at a time for one sampler
 * @source   torch.utils.data.distributed.DistributedSampler.set_epoch */
TUTTI_API void tutti_distributed_sampler_set_epoch(tutti_distributed_sampler *sampler,
                                                   uint64_t epoch);

/** The rank's samples of the epoch, in order; a tutti_loader takes them as its index.
 *
 * @param index_out  room for tutti_distributed_sampler_length() numbers
 *
 * @errors   TUTTI_E_ARG    a NULL; TUTTI_E_NOMEM  no memory for n numbers
 * @threads  one at a time for one sampler
 * @numbers  those of PyTorch for the same seed and epoch
 * @cost     O(n), whatever the rank
 * @source   iter(sampler) */
TUTTI_API tutti_status
tutti_distributed_sampler_indices(const tutti_distributed_sampler *sampler, int64_t *index_out);

/** Where a loader's randomness comes from: the next 64 bits of a generator, its first
 * 32-bit output in the high half. */
typedef uint64_t (*tutti_random64_fn)(void *ctx);

/** The order of samples of one epoch, batch by batch. Filled by tutti_loader_init(); the memory is
 * all the caller's, so there is nothing to free. */
typedef struct tutti_loader {
    const int64_t *index; /* borrowed; NULL: the samples are 0..n-1 */
    int64_t *order;       /* borrowed; this epoch's samples in order */
    int64_t n;
    int64_t batch;
    int64_t at; /* samples handed out in this epoch */
} tutti_loader;

/** Prepare a loader. No epoch has begun yet: tutti_loader_next() gives 0.
 *
 * @param index  n samples, for instance of tutti_partition(); NULL: 0..n-1; borrowed by the loader
 * @param batch  samples of a batch, at least 1
 * @param order  room for n numbers; borrowed by the loader
 *
 * @errors   TUTTI_E_ARG  a NULL, batch below 1, n not 0..TUTTI_PARTITION_MAX
 * @threads  one at a time for one loader
 * @source   torch.utils.data.DataLoader(partition, batch_size) */
TUTTI_API tutti_status tutti_loader_init(tutti_loader *loader, const int64_t *index, int64_t n,
                                         int64_t batch, int64_t *order);

/** Begin an epoch in a new random order. Draws two numbers: the first is not used (torch's seed for
 * worker processes), the second seeds the permutation.
 *
 * @param random64  the generator that torch.manual_seed() seeds
 *
 * @errors   TUTTI_E_ARG  loader or random64 is NULL
 * @threads  one at a time for one loader
 * @numbers  the order of DataLoader(shuffle=True) with no workers, the generator being in the
 *           same state
 * @source   torch.utils.data.DataLoader, RandomSampler */
TUTTI_API tutti_status tutti_loader_shuffle(tutti_loader *loader, tutti_random64_fn random64,
                                            void *ctx);

/** Begin an epoch in the order of index, for instance to measure accuracy. Draws nothing.
 *
 * @errors   TUTTI_E_ARG  loader is NULL
 * @threads  one at a time for one loader
 * @source   ours: torch's DataLoader(shuffle=False) draws one number here */
TUTTI_API tutti_status tutti_loader_restart(tutti_loader *loader);

/** The next batch of the epoch.
 *
 * @param samples_out  its samples, inside of the loader's order: valid until the next epoch begins
 *
 * @shapes   returns how many: batch; fewer in the last one; 0 after it, samples_out untouched
 * @errors   none
 * @threads  one at a time for one loader
 * @source   ours */
TUTTI_API int64_t tutti_loader_next(tutti_loader *loader, const int64_t **samples_out);

/** Batches of an epoch: n / batch, rounded up.
 * @threads  any
 * @source   len(loader) */
TUTTI_API int64_t tutti_loader_batches(const tutti_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
