/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - `tutti run`: options in, tutti_launch(), exit code out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/launch.h>
#include "run_options.h"
#include "tool.h"

enum { MANY_HOSTS_PORT = 29500 };

/* As torchrun: --standalone wins over what speaks of other hosts, and says so. The job keeps its name, which `tutti doctor`
 * asks for. */
static void make_standalone(run_options *o)
{
    if (o->nnodes != 1 || o->node_rank != 0 || o->master_addr != NULL || o->master_port > 0)
        fprintf(stderr, "tutti run: --standalone: other hosts, addresses and ports are ignored\n");
    o->nnodes = 1;
    o->node_rank = 0;
    o->master_addr = NULL;
    o->master_port = -1;
}

static bool is_python(const run_options *o)
{
    size_t len = strlen(o->program[0]);

    return !o->no_python && len > 3 && strcmp(o->program[0] + len - 3, ".py") == 0;
}

/* The words to execute: the program's, or those of an interpreter that reads it. Only the list is
 * allocated. */
static char **command(const run_options *o)
{
    static char python[] = "python3";
    static char unbuffered[] = "-u";
    char *interpreter = getenv("PYTHON_EXEC");
    size_t n = 0;
    size_t used = 0;
    char **argv;

    while (o->program[n] != NULL)
        n++;
    argv = calloc(n + 3, sizeof *argv);
    if (argv == NULL)
        return NULL;
    if (is_python(o)) {
        argv[used++] = interpreter != NULL && interpreter[0] != '\0' ? interpreter : python;
        argv[used++] = unbuffered;
    }
    memcpy(argv + used, o->program, n * sizeof *argv);
    return argv;
}

static int launch(const run_options *o, char **argv)
{
    tutti_launch_options l = TUTTI_LAUNCH_OPTIONS;
    tutti_status st;
    int code = EXIT_FAILURE;

    l.argv = argv;
    l.nproc = o->nproc;
    l.nnodes = o->nnodes;
    l.node_rank = o->node_rank;
    l.master_addr = o->master_addr;
    l.master_port = o->master_port > 0 ? o->master_port : o->nnodes > 1 ? MANY_HOSTS_PORT : 0;
    l.run_id = o->rdzv_id;
    l.shutdown_ms = o->shutdown_ms;
    l.keep = o->keep;
    l.replacements = o->replacements;
    st = tutti_launch(&l, &code);
    if (st == TUTTI_OK)
        return code;
    fprintf(stderr, "tutti run: %s\n", tutti_last_error());
    return st == TUTTI_E_ARG ? TOOL_USAGE : EXIT_FAILURE;
}

int tool_run(int argc, char **argv)
{
    run_options o;
    char **words;
    int code;

    if (!run_options_read(&o, argc, argv)) {
        fprintf(stderr, "tutti run: %s\n", o.words);
        return TOOL_USAGE;
    }
    if (o.help) {
        run_options_help(stdout);
        return EXIT_SUCCESS;
    }
    if (o.standalone)
        make_standalone(&o);
    words = command(&o);
    if (words == NULL) {
        fprintf(stderr, "tutti run: no memory\n");
        return EXIT_FAILURE;
    }
    code = launch(&o, words);
    free(words);
    return code;
}
