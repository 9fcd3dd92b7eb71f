/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tune.c - tables of algorithms, and what TUTTI_ALGO says.
 *
 * Holds   Rows of what is accepted are of operations and algorithms that there are, with ranges that are not empty; what is
 *         refused is refused with words and leaves no table. */
#include "fuzz/fuzz.h"

#include <tutti/status.h>
#include "coll/choose.h"
#include "coll/tune.h"

static void try_wishes(const uint8_t *data, size_t size)
{
    char      *text = tt_text(data, size);
    tti_wishes wishes;
    int        k, n = 0;

    (void)tti_algorithms(&n);
    if (tti_wishes_parse(text, &wishes) == TUTTI_OK)
        for (k = 0; k < TUTTI_CALL_KIND_COUNT; k++)
            TT_MUST(wishes.rows[k] >= -1 && wishes.rows[k] < n);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t     *copy = tt_copy(data, size);
    tti_tune     tune = { .n = 0 };
    tutti_status st;
    int          i;

    if (size % 16 == 7)
        st = tti_tune_read(tt_file(data, size), &tune);
    else
        st = tti_tune_parse("a table", (const char *)copy, size, &tune);
    if (st == TUTTI_OK) {
        for (i = 0; i < tune.n; i++) {
            const tti_tune_row *row = &tune.rows[i];

            TT_MUST(row->kind >= 0 && row->kind < TUTTI_CALL_KIND_COUNT && row->row >= 0);
            TT_MUST(row->bytes_least >= 0 && row->bytes_least <= row->bytes_most);
            TT_MUST(row->ranks_least >= 0 && row->ranks_least <= row->ranks_most && (row->one_host || row->many_hosts));
            (void)tti_tune_fits(row, row->kind, row->bytes_least, row->ranks_most, true);
        }
        tti_tune_release(&tune);
    } else {
        TT_MUST(tune.n == 0 && tune.rows == NULL && strlen(tutti_last_error()) > 0);
    }
    free(copy);
    try_wishes(data, size);
    return 0;
}
