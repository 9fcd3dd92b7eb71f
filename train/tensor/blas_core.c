/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blas_core.c - a word when the CBLAS does not know this processor.
 *
 * Why     OpenBLAS chooses its kernels while it is being loaded, by a table of models. On a processor
 *         younger than the table it falls back to SSE3, two times slower or worse, and says nothing.
 *         Nobody can change its choice afterwards, but the user can before: OPENBLAS_CORETYPE.
 * How     The first matrix product asks for the name of the chosen core. Another CBLAS has no such
 *         function; the weak symbol is then NULL and nothing is said. Of the ranks of a host, which
 *         all share its processor, the first one speaks. */
#include "tensor/tensor.h"

#include <cblas.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>

extern char *openblas_get_corename(void) __attribute__((weak));

#if defined(__x86_64__)
/* What to ask for instead of the fallback; NULL: the fallback is right. */
static const char *better_core(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return "SKYLAKEX";
    return __builtin_cpu_supports("avx2") ? "HASWELL" : NULL;
}
#else
static const char *better_core(void)
{
    return NULL;
}
#endif

static bool speaks_for_host(void)
{
    const char *local_rank = tti_env("LOCAL_RANK");

    return local_rank == NULL || strcmp(local_rank, "0") == 0;
}

static void look(void)
{
    const char *chosen = openblas_get_corename != NULL ? openblas_get_corename() : "";
    const char *better = better_core();

    if (better != NULL && speaks_for_host() &&
        (strcasecmp(chosen, "prescott") == 0 || strcasecmp(chosen, "core2") == 0))
        tti_log(TTI_LOG_WARN,
                "OpenBLAS does not know this processor and computes with its '%s' kernels\n"
                "  next: OPENBLAS_CORETYPE=%s in the environment",
                chosen, better);
}

void tti_blas_look(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* of the process, as OpenBLAS's choice is */

    pthread_once(&once, look);
}
