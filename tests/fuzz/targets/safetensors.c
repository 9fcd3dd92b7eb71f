/* SPDX-License-Identifier: BSD-3-Clause
 *
 * safetensors.c - files of tensors.
 *
 * How     The input is the file: opened, all entries looked at, and loaded as a state dict.
 * Holds   Entries lie inside of the file and can be read to their end; names find their entries, and their tensors. */
#include "fuzz/fuzz.h"

#include <tutti/state.h>
#include <tutti/tensor.h>

static size_t sum; /* of what came, so that reading it is not left out */

static void look_at_entry(const tutti_safetensors *f, const tutti_safetensors_entry *e)
{
    int64_t numel = 1;
    size_t  i;
    int     d;

    for (d = 0; d < e->nd; d++) {
        TT_MUST(e->shape[d] >= 0);
        numel *= e->shape[d];
    }
    for (i = 0; i < e->bytes; i++)
        sum += ((const uint8_t *)e->data)[i];
    TT_MUST(tutti_safetensors_find(f, e->name) == e && numel >= 0);
}

static void look(const char *path)
{
    tutti_safetensors *f = NULL;
    int64_t            i;

    if (tutti_safetensors_open(path, &f) != TUTTI_OK)
        return;
    for (i = 0; i < tutti_safetensors_length(f); i++)
        look_at_entry(f, tutti_safetensors_at(f, i));
    TT_MUST(tutti_safetensors_at(f, i) == NULL && tutti_safetensors_find(f, "no such name, surely") == NULL);
    (void)tutti_safetensors_metadata(f, "format");
    tutti_safetensors_close(f);
}

/* Names are found, and each tensor's bytes are there. */
static void look_at_dict(const tutti_state_dict *sd)
{
    const char *key;
    int64_t     i;
    int         k;

    for (i = 0; i < tutti_state_dict_length(sd); i++) {
        tutti_tensor *t = tutti_state_dict_tensor(sd, i);

        TT_MUST(t != NULL && tutti_state_dict_get(sd, tutti_state_dict_name(sd, i)) == t);
        if (tutti_tensor_numel(t) > 0)
            sum += ((const uint8_t *)tutti_tensor_data(t))[0];
    }
    for (k = 0; (key = tutti_state_dict_metadata_key(sd, k)) != NULL; k++)
        TT_MUST(tutti_state_dict_metadata(sd, key) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char       *path = tt_file(data, size);
    tutti_state_dict *sd = NULL;

    look(path);
    if (tutti_safetensors_load(path, &sd) == TUTTI_OK) {
        look_at_dict(sd);
        tutti_state_dict_free(sd);
    }
    return 0;
}
