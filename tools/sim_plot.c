/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_plot.c - a picture of what is best: a line for each cluster, points in the algorithms' signs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tune.h>
#include "bench_files.h"
#include "bench_options.h"
#include "sim_options.h"

enum { PATH_BYTES = 1024 };

static bool was_best(const sim_best *best, int n, const char *algorithm)
{
    int i;

    for (i = 0; i < n; i++)
        if (strcmp(best[i].algorithm, algorithm) == 0)
            return true;
    return false;
}

/* Those of best that an algorithm has, or all that there are, as a block that gnuplot reads by name. */
static void write_block(FILE *script, const char *name, const sim_best *best, int n, const char *algorithm)
{
    int i;

    fprintf(script, "$%s << END\n", name);
    for (i = 0; i < n; i++)
        if (best[i].algorithm[0] != '\0' && (algorithm == NULL || strcmp(best[i].algorithm, algorithm) == 0))
            fprintf(script, "%" PRId64 " %.4g\n", best[i].bytes, best[i].us);
    fprintf(script, "END\n");
}

static void write_plot(FILE *script, const sim_options *o, const char *op, const sim_best *best)
{
    const int n = sim_n_clusters(o) * o->sizes.n;
    const char *algorithm;
    char name[128];
    int i;

    fprintf(script, "plot");
    for (i = 0; i < sim_n_clusters(o); i++) {
        const sim_cluster c = sim_cluster_at(o, i);

        sim_name_cluster(&c, name, sizeof name);
        fprintf(script, "%s $cluster%d using 1:2 with lines lt %d lw 2 title '%s'", i > 0 ? "," : "", i, i + 1, name);
    }
    for (i = 0; (algorithm = tutti_algorithm_name(op, i)) != NULL; i++)
        if (was_best(best, n, algorithm))
            fprintf(script, ", $best%d using 1:2 with points pt %d lc rgb 'black' title '%s'", i, i + 1, algorithm);
    fprintf(script, "\n");
}

static void write_script(FILE *script, const sim_options *o, const char *op, const sim_best *best)
{
    const int n = sim_n_clusters(o) * o->sizes.n;
    const char *algorithm;
    char name[32];
    int i;

    bench_begin_script(script, o->plot);
    fprintf(script, "set title '%s: predicted, by the best algorithm of each size' noenhanced\n", op);
    fprintf(script, "set xlabel 'bytes'\nset ylabel 'us'\nset format x '%%.0s%%c'\nset key noenhanced\n");
    if (o->sizes.n == 1 && o->sizes.values[0] > 0) /* of which gnuplot would warn, as an empty range */
        fprintf(script, "set xrange [%.17g:%.17g]\n", o->sizes.values[0] / 2, o->sizes.values[0] * 2);
    for (i = 0; i < sim_n_clusters(o); i++) {
        snprintf(name, sizeof name, "cluster%d", i);
        write_block(script, name, best + i * o->sizes.n, o->sizes.n, NULL);
    }
    for (i = 0; (algorithm = tutti_algorithm_name(op, i)) != NULL; i++)
        if (was_best(best, n, algorithm)) {
            snprintf(name, sizeof name, "best%d", i);
            write_block(script, name, best, n, algorithm);
        }
    write_plot(script, o, op, best);
}

int sim_draw(const sim_options *o, const char *op, const sim_best *best)
{
    char path[PATH_BYTES];
    FILE *script;

    snprintf(path, sizeof path, "%s.gp", o->plot); /* it fits: bench_can_draw() has looked */
    script = fopen(path, "we");
    if (script == NULL)
        return bench_cannot_write(path);
    write_script(script, o, op, best);
    if (fclose(script) != 0)
        return bench_cannot_write(path);
    return bench_run_gnuplot(path);
}
