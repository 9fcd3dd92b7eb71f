/* SPDX-License-Identifier: BSD-3-Clause
 *
 * capture_job.c - a rank of the job that capture.py listens to.
 *
 *   tutti run ... capture_job KEY VALUE BLOCK FILE
 *
 * Rank 0 writes the job's secret into FILE, as it stands in the launcher's, so that it can be looked for. The job leaves VALUE under KEY in
 * its store, where all ranks read it, and sends a tensor that is BLOCK again and again, in every way that ranks have: broadcast
 * from each, all-reduce, message. What comes must be what was sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum { TENSOR_BYTES = 256 << 10, TIMEOUT_MS = 60000, TAG = 7 };

static bool use_store(const char *key, const char *value)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    tutti_store            *store = NULL;
    tutti_bytes             got = { 0 };
    const char             *port = getenv("MASTER_PORT");
    bool                    ok;

    options.host = getenv("MASTER_ADDR");
    options.port = port != NULL ? atoi(port) : 0;
    options.timeout_ms = TIMEOUT_MS;
    ok = tutti_tcp_store_open(&options, &store) == TUTTI_OK &&
         (tutti_get_rank(NULL) != 0 || tutti_store_set(store, key, value, strlen(value)) == TUTTI_OK) &&
         tutti_store_get(store, key, TIMEOUT_MS, &got) == TUTTI_OK;
    if (ok && (got.size != strlen(value) || memcmp(got.data, value, got.size) != 0)) {
        fprintf(stderr, "the store gave another value than was set\n");
        ok = false;
    }
    tutti_bytes_free(&got);
    tutti_store_close(store);
    return ok;
}

/* The launcher's goes with the job. */
static bool copy_secret(const char *to)
{
    const char *from = getenv("TUTTI_SECRET_FILE");
    char        text[256] = "";
    FILE       *file = from != NULL ? fopen(from, "re") : NULL;
    size_t      bytes = file != NULL ? fread(text, 1, sizeof text, file) : 0;
    bool        ok;

    if (file != NULL)
        fclose(file);
    file = bytes > 0 ? fopen(to, "we") : NULL;
    ok = file != NULL && fwrite(text, 1, bytes, file) == bytes;
    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        fprintf(stderr, "the secret could not be copied to '%s'\n", to);
    return ok;
}

static void fill(char *out, const char *block)
{
    const size_t bytes = strlen(block);
    size_t       i;

    for (i = 0; i < TENSOR_BYTES; i++)
        out[i] = block[i % bytes];
}

static tutti_status send_all_ways(char *mine, const char *wanted)
{
    const int    size = tutti_get_world_size(NULL), rank = tutti_get_rank(NULL);
    tutti_status st = TUTTI_OK;
    int          root;

    for (root = 0; root < size && st == TUTTI_OK; root++) {
        memcpy(mine, wanted, rank == root ? TENSOR_BYTES : 0);
        st = tutti_broadcast(TUTTI_SPAN((uint8_t *)mine, TENSOR_BYTES), root, NULL);
    }
    if (st == TUTTI_OK)
        st = tutti_all_reduce(TUTTI_SPAN((uint8_t *)mine, TENSOR_BYTES), TUTTI_MAX, NULL);
    if (st == TUTTI_OK && rank == 0)
        st = tutti_send(TUTTI_SPAN((uint8_t *)mine, TENSOR_BYTES), size - 1, TAG, NULL);
    if (st == TUTTI_OK && rank == size - 1) {
        memset(mine, 0, TENSOR_BYTES);
        st = tutti_recv(TUTTI_SPAN((uint8_t *)mine, TENSOR_BYTES), 0, TAG, NULL, NULL);
    }
    return st;
}

static bool use_world(const char *block)
{
    char *mine = calloc(1, TENSOR_BYTES), *wanted = malloc(TENSOR_BYTES);
    bool  ok = mine != NULL && wanted != NULL;

    if (ok) {
        fill(wanted, block);
        ok = send_all_ways(mine, wanted) == TUTTI_OK;
    }
    if (ok && memcmp(mine, wanted, TENSOR_BYTES) != 0) {
        fprintf(stderr, "another tensor came than was sent\n");
        ok = false;
    }
    free(mine);
    free(wanted);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc != 5 || argv[3][0] == '\0') {
        fprintf(stderr, "usage: capture_job KEY VALUE BLOCK FILE, under tutti run\n");
        return 2;
    }
    if (tutti_init_process_group(NULL) == TUTTI_OK && (tutti_get_rank(NULL) != 0 || copy_secret(argv[4])) && use_store(argv[1], argv[2]) && use_world(argv[3]) &&
        tutti_destroy_process_group(NULL) == TUTTI_OK)
        return 0;
    fprintf(stderr, "capture_job: %s\n", tutti_last_error());
    return 1;
}
