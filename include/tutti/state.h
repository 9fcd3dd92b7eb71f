/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/state.h - named tensors, and files of them.
 *
 * A state dict is a list of names and tensors, in the order in which they were put in, with words about them
 * (metadata). Models and optimizers give theirs (tutti/nn.h, tutti/optim.h) and take one to go on from; several of
 * them go into one under prefixes. Tensors share memory with where they came from: a state dict is no copy.
 *
 * Files are safetensors: a length, a JSON header, then the elements. Nothing in them is code. What is read is
 * checked against the whole format before the first tensor is given out: sizes, ranges, overlaps, names that come
 * twice. Files are mapped, not read: opening costs the header, and memory is taken page by page as it is
 * looked at. */
#ifndef TUTTI_STATE_H
#define TUTTI_STATE_H

#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- state dicts ------------------------------------------------------------------------------ */

/** Names and tensors. Used by one thread at a time. */
typedef struct tutti_state_dict tutti_state_dict;

/** An empty one.
 * @errors  TUTTI_E_NOMEM
 * @threads any
 * @source  the dict that torch.nn.Module.state_dict returns */
TUTTI_API tutti_status tutti_state_dict_create(tutti_state_dict **sd_out);

/** Free it and drop its tensors. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_state_dict_free(tutti_state_dict *sd);

/** Put t under a name, in the place of what stands there, else at the end. What is kept is a view of t that is cut
 * off from the graph: it shares t's memory.
 * @param name  not empty, copied
 * @errors  TUTTI_E_ARG  sd is NULL, the name is NULL or empty; t is NULL: the failure that is kept
 *          TUTTI_E_NOMEM
 * @threads one at a time
 * @source  dict[name] = tensor */
TUTTI_API tutti_status tutti_state_dict_set(tutti_state_dict *sd, const char *name,
                                            const tutti_tensor *t);

/** The tensor of that name, borrowed; NULL if there is none.
 * @threads one at a time
 * @cost    logarithmic
 * @source  dict[name] */
TUTTI_API tutti_tensor *tutti_state_dict_get(const tutti_state_dict *sd, const char *name);

/** Take a name out. Returns false if it is not there.
 * @threads one at a time
 * @cost    linear
 * @source  dict.pop(name) */
TUTTI_API bool tutti_state_dict_remove(tutti_state_dict *sd, const char *name);

/** How many names there are; of NULL: 0.
 * @threads one at a time
 * @source  len(dict) */
TUTTI_API int64_t tutti_state_dict_length(const tutti_state_dict *sd);

/** The i-th name, in the order of putting in; borrowed until it changes; NULL if there is none.
 * @threads one at a time
 * @source  list(dict)[i] */
TUTTI_API const char *tutti_state_dict_name(const tutti_state_dict *sd, int64_t i);

/** The i-th tensor, borrowed; NULL if there is none.
 * @threads one at a time
 * @source  list(dict.values())[i] */
TUTTI_API tutti_tensor *tutti_state_dict_tensor(const tutti_state_dict *sd, int64_t i);

/** Put all of from into sd, each name with the prefix before it; metadata without it. Both share the tensors.
 * @param prefix  "model.", for instance; NULL: none
 * @errors  as tutti_state_dict_set(); what came before stays
 * @threads one at a time
 * @source  dict.update */
TUTTI_API tutti_status tutti_state_dict_merge(tutti_state_dict *sd, const tutti_state_dict *from,
                                              const char *prefix);

/** A new state dict of the names of sd that begin with prefix, without it; and of all metadata.
 * @errors  TUTTI_E_ARG  a NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  torch.nn.modules.utils.consume_prefix_in_state_dict_if_present */
TUTTI_API tutti_status tutti_state_dict_extract(const tutti_state_dict *sd, const char *prefix,
                                                tutti_state_dict **sd_out);

/** Keep a word about the whole under a key, in the place of an older one; value NULL takes the key out.
 * @errors  TUTTI_E_ARG  sd or key is NULL; TUTTI_E_NOMEM
 * @threads one at a time
 * @source  the argument metadata of safetensors' save_file */
TUTTI_API tutti_status tutti_state_dict_set_metadata(tutti_state_dict *sd, const char *key,
                                                     const char *value);

/** The word of that key, borrowed; NULL if there is none.
 * @threads one at a time
 * @source  safetensors.safe_open(...).metadata() */
TUTTI_API const char *tutti_state_dict_metadata(const tutti_state_dict *sd, const char *key);

/** The i-th key of metadata, in the order of the alphabet; NULL if there is none.
 * @threads one at a time
 * @source  safetensors.safe_open(...).metadata() */
TUTTI_API const char *tutti_state_dict_metadata_key(const tutti_state_dict *sd, int i);

/* ---- files ------------------------------------------------------------------------------------ */

/** The longest header of a file; a longer one is refused before memory is taken for it. Reading one takes some tens of times
 * its bytes for a while; lists in it may be 2048 deep, of which one is ever of use. */
enum { TUTTI_SAFETENSORS_HEADER_MAX = 100000000 };

/** Write all tensors and metadata of sd as a safetensors file.
 *
 * The file appears under its name when it is whole and on the disk: it is written beside it, without a name where
 * the file system can do that, then renamed. A reader that has the old file mapped keeps it.
 * Tensors that are one and the same (tied weights) are written once, under the first of their names; the others
 * stand in the metadata, as in safetensors' save_model: name, and the name that was written. Other tensors that
 * share memory are written each for itself.
 *
 * @errors  TUTTI_E_ARG  a NULL; a name that is "__metadata__" or no UTF-8; a metadata key that is the name of a
 *                       tied tensor
 *          TUTTI_E_IO   the system's word; the old file, if any, is untouched
 *          TUTTI_E_NOMEM  also where the disk is full; the old file is untouched
 * @threads one at a time for sd
 * @numbers the same bytes for the same state: largest types first, then names; metadata sorted
 * @source  safetensors.torch.save_file, save_model */
TUTTI_API tutti_status tutti_safetensors_save(const tutti_state_dict *sd, const char *path);

/** Read a whole file as a state dict. Its tensors look at the mapped file, so that nothing is read before it is
 * needed, and may be written to without changing the file; those that do not lie at a multiple of their element's
 * size are copied. Names that the metadata ties to tensors are there, too.
 * The file may be replaced (by a rename) while it is mapped, but must not be made shorter in place.
 *
 * @errors  TUTTI_E_ARG  a NULL; TUTTI_E_IO  cannot be opened or mapped, or is no sound safetensors file: the text
 *          has the file, the place and what is wrong there; TUTTI_E_UNSUPPORTED  elements of a type that tensors do
 *          not have here: tutti_safetensors_open() reads the others; TUTTI_E_NOMEM
 * @threads any
 * @source  safetensors.torch.load_file, load_model */
TUTTI_API tutti_status tutti_safetensors_load(const char *path, tutti_state_dict **sd_out);

/** A mapped file, of which tensors are taken one by one. Used by any threads at a time. */
typedef struct tutti_safetensors tutti_safetensors;

/** What a file says about one of its tensors. Borrowed from the file. */
typedef struct tutti_safetensors_entry {
    const char *name;
    const char *dtype_name; /* of the format: "F32", "BF16", "F8_E4M3", ... */
    tutti_dtype dtype;      /* TUTTI_DTYPE_COUNT: none that tutti has */
    int nd;
    const int64_t *shape; /* nd sizes */
    const void *data;     /* inside of the mapped file; at any address */
    size_t bytes;
} tutti_safetensors_entry;

/** Map a file and check all of its header.
 * @errors  as tutti_safetensors_load(), but for types of elements
 * @threads any
 * @source  safetensors.safe_open */
TUTTI_API tutti_status tutti_safetensors_open(const char *path, tutti_safetensors **file_out);

/** Close it. Tensors that were taken from it keep its memory. NULL does nothing.
 * @threads one at a time
 * @source  ours */
TUTTI_API void tutti_safetensors_close(tutti_safetensors *file);

/** How many tensors it has; of NULL: 0.
 * @threads any
 * @source  len(safetensors.safe_open(...).keys()) */
TUTTI_API int64_t tutti_safetensors_length(const tutti_safetensors *file);

/** The i-th tensor, in the order of the data; NULL if there is none.
 * @threads any
 * @source  safetensors.safe_open(...).keys() */
TUTTI_API const tutti_safetensors_entry *tutti_safetensors_at(const tutti_safetensors *file,
                                                              int64_t i);

/** The tensor of that name; NULL if there is none.
 * @threads any
 * @cost    logarithmic
 * @source  safetensors.safe_open(...).get_slice */
TUTTI_API const tutti_safetensors_entry *tutti_safetensors_find(const tutti_safetensors *file,
                                                                const char *name);

/** The word of that key, borrowed; NULL if there is none.
 * @threads any
 * @source  safetensors.safe_open(...).metadata() */
TUTTI_API const char *tutti_safetensors_metadata(const tutti_safetensors *file, const char *key);

/** The tensor of that name, over the mapped file where its place allows that, else a copy.
 * @errors  TUTTI_E_ARG  a NULL, no such name; TUTTI_E_UNSUPPORTED  its elements are of a type that tensors do not
 *          have here, or it has more than 8 dimensions; TUTTI_E_NOMEM
 * @param t_out  the caller's reference, whatever scopes do
 * @threads any
 * @source  safetensors.safe_open(...).get_tensor */
TUTTI_API tutti_status tutti_safetensors_tensor(const tutti_safetensors *file, const char *name,
                                                tutti_tensor **t_out);

#ifdef __cplusplus
}
#endif
#endif
