/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_frames.c - frames of the store, in both directions.
 *
 * Holds   What is read and written again is what was read, byte by byte; what is in it lies inside of it. */
#include "fuzz/fuzz.h"

#include "store/store_proto.h"

static bool lies_in(tti_slice slice, const uint8_t *body, size_t size)
{
    const uint8_t *at = slice.data;

    return slice.size == 0 || (at >= body && slice.size <= size && (size_t)(at - body) <= size - slice.size);
}

static void try_request(const uint8_t *data, size_t size)
{
    static tti_store_request request;
    tti_store_head           head;
    tti_buffer               again = { .memory = NULL };
    uint8_t                 *body;
    uint32_t                 k;

    if (size < TTI_STORE_HEAD_BYTES || tti_store_head_read(data, true, &head) != TUTTI_OK ||
        size - TTI_STORE_HEAD_BYTES < head.size)
        return;
    body = tt_copy(data + TTI_STORE_HEAD_BYTES, head.size);
    if (tti_store_request_read(&head, body, &request) == TUTTI_OK) {
        TT_MUST(request.n_keys <= TTI_STORE_KEYS_MAX && lies_in(request.value, body, head.size));
        for (k = 0; k < request.n_keys; k++)
            TT_MUST(request.keys[k].size > 0 && lies_in(request.keys[k], body, head.size));
        TT_MUST(tti_store_request_write(&request, &again) == TUTTI_OK);
        TT_MUST(again.size == TTI_STORE_HEAD_BYTES + head.size);
        TT_MUST(memcmp(tti_buffer_data(&again), data, again.size) == 0);
        tti_buffer_release(&again);
    }
    free(body);
}

static void try_reply(const uint8_t *data, size_t size)
{
    tti_store_head head;
    tti_buffer     again = { .memory = NULL };

    if (size < TTI_STORE_HEAD_BYTES || tti_store_head_read(data, false, &head) != TUTTI_OK ||
        size - TTI_STORE_HEAD_BYTES < head.size)
        return;
    TT_MUST(tti_store_op_name(head.op)[0] != '?');
    TT_MUST(tti_store_reply_write(head.op, head.id, (tutti_status)head.status, data + TTI_STORE_HEAD_BYTES, head.size,
                                  &again) == TUTTI_OK);
    TT_MUST(again.size == TTI_STORE_HEAD_BYTES + head.size && memcmp(tti_buffer_data(&again), data, again.size) == 0);
    tti_buffer_release(&again);
}

static void try_lists(const uint8_t *data, size_t size)
{
    static tti_slice slices[TTI_STORE_KEYS_MAX];
    tti_slice       *names;
    uint32_t         n = 0, m = 0, k;

    if (tti_store_values_read(data, size, TTI_STORE_KEYS_MAX, slices, &n) == TUTTI_OK) {
        TT_MUST(n > 0 && n <= TTI_STORE_KEYS_MAX);
        for (k = 0; k < n; k++)
            TT_MUST(lies_in(slices[k], data, size));
    }
    if (tti_store_names_read(data, size, NULL, &n) != TUTTI_OK)
        return;
    TT_MUST(n <= size);
    names = calloc((size_t)n + 1, sizeof *names);
    TT_MUST(names != NULL && tti_store_names_read(data, size, names, &m) == TUTTI_OK && m == n);
    for (k = 0; k < n; k++)
        TT_MUST(names[k].size > 0 && lies_in(names[k], data, size));
    free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_request(data, size);
    try_reply(data, size);
    try_lists(data, size);
    return 0;
}
