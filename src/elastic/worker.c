/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker.c - the variables and arguments of one rank, made before anything is forked. */
#include "elastic/worker.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tutti/private.h>

/* A growing list; once memory has run out, nothing more is added and the end says so. */
typedef struct list {
    char **items;
    size_t n;
    size_t cap;
    bool failed;
} list;

static void list_add(list *l, char *item)
{
    char **more;

    if (item == NULL)
        l->failed = true;
    if (!l->failed && l->n + 1 >= l->cap) {
        more = realloc(l->items, (l->cap * 2 + 16) * sizeof *more);
        l->failed = more == NULL;
        if (more != NULL) {
            l->items = more;
            l->cap = l->cap * 2 + 16;
        }
    }
    if (l->failed) {
        free(item);
        return;
    }
    l->items[l->n++] = item;
    l->items[l->n] = NULL;
}

static tutti_status list_end(list *l, const char *what, char ***out)
{
    if (l->failed) {
        tti_strings_free(l->items);
        return tti_fail(TUTTI_E_NOMEM, "no memory for a rank's %s", what);
    }
    *out = l->items;
    return TUTTI_OK;
}

static bool is_variable(const char *item, const char *name, size_t len)
{
    return strncmp(item, name, len) == 0 && item[len] == '=';
}

/* Take a variable out, however often it is there. */
static void unset(list *l, const char *name)
{
    size_t len = strlen(name);
    size_t kept = 0;
    size_t i;

    for (i = 0; i < l->n; i++)
        if (is_variable(l->items[i], name, len))
            free(l->items[i]);
        else
            l->items[kept++] = l->items[i];
    l->n = kept;
    if (l->items != NULL)
        l->items[kept] = NULL;
}

/* Set a variable to text, or to a number. */
static void set(list *l, const char *name, const char *text)
{
    char *item = NULL;

    unset(l, name);
    if (asprintf(&item, "%s=%s", name, text) < 0)
        item = NULL;
    list_add(l, item);
}

static void set_int(list *l, const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    set(l, name, text);
}

static void set_or_unset(list *l, const char *name, const char *text)
{
    if (text != NULL)
        set(l, name, text);
    else
        unset(l, name);
}

static void set_fd(list *l, const char *name, int fd)
{
    if (fd > 0)
        set_int(l, name, fd);
    else
        unset(l, name);
}

static void set_ranks(list *l, const tti_place *place, int local_rank)
{
    int rank = place->node_rank * place->nproc + local_rank;
    int world = place->nnodes * place->nproc;

    set_int(l, "RANK", rank);
    set_int(l, "WORLD_SIZE", world);
    set_int(l, "LOCAL_RANK", local_rank);
    set_int(l, "LOCAL_WORLD_SIZE", place->nproc);
    set_int(l, "GROUP_RANK", place->node_rank);
    set_int(l, "GROUP_WORLD_SIZE", place->nnodes);
    set_int(l, "ROLE_RANK", rank);
    set_int(l, "ROLE_WORLD_SIZE", world);
    set(l, "ROLE_NAME", "default");
}

/* One that is started in the place of a rank that has failed: it asks to come in. */
static void set_replacement(list *l, int number)
{
    unset(l, "RANK");
    unset(l, "ROLE_RANK");
    set_int(l, "TUTTI_REPLACEMENT", number);
}

static void set_job(list *l, const tti_place *place)
{
    set(l, "MASTER_ADDR", place->master_addr);
    set_int(l, "MASTER_PORT", place->master_port);
    set_int(l, "TORCHELASTIC_RESTART_COUNT", 0);
    set_int(l, "TORCHELASTIC_MAX_RESTARTS", 0);
    set(l, "TORCHELASTIC_RUN_ID", place->run_id);
    set(l, "TORCHELASTIC_USE_AGENT_STORE", "True");
    set(l, "TORCHELASTIC_ERROR_FILE", "");
    set(l, "TUTTI_AGENT_STORE", "1");
    set_or_unset(l, "TUTTI_SECRET_FILE", place->secret_file);
    unset(l, "TUTTI_REPLACEMENT");
    set_or_unset(l, "TUTTI_SPAWN_NAME", place->spawn_name);
    set_or_unset(l, "TUTTI_SPAWN_ARG", place->spawn_arg);
    set_fd(l, "TUTTI_RECORDER_FD", place->recorder_fd);
    set_fd(l, "TUTTI_LAUNCHER_FD", place->bulletin_fd);
    /* A threaded BLAS would start a thread per core in every rank. */
    if (place->nproc > 1 && tti_env("OMP_NUM_THREADS") == NULL)
        set_int(l, "OMP_NUM_THREADS", 1);
}

tutti_status tti_worker_env(const tti_place *place, int local_rank, char ***envp_out)
{
    list l = { .items = NULL };
    char **item;

    for (item = environ; item != NULL && *item != NULL; item++)
        list_add(&l, strdup(*item));
    set_ranks(&l, place, local_rank);
    set_job(&l, place);
    if (local_rank >= place->nproc)
        set_replacement(&l, local_rank - place->nproc + 1);
    return list_end(&l, "environment", envp_out);
}

static size_t word_len(const char *text)
{
    size_t n = 0;

    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n;
}

/* How many bytes a place-holder at text takes, its "$" included; 0: there is none. */
static size_t local_rank_len(const char *text)
{
    static const char word[] = "local_rank";
    size_t len = sizeof word - 1;

    if (strncmp(text, "${local_rank}", len + 3) == 0)
        return len + 3;
    if (text[0] == '$' && word_len(text + 1) == len && strncmp(text + 1, word, len) == 0)
        return len + 1;
    return 0;
}

static char *fill_in(const char *arg, int local_rank)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    while (*arg != '\0') {
        size_t len = local_rank_len(arg);

        if (len > 0) {
            fprintf(out, "%d", local_rank);
            arg += len;
        } else {
            fputc(*arg, out);
            arg += arg[0] == '$' && arg[1] == '$' ? 2 : 1;
        }
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

tutti_status tti_worker_args(char *const *argv, int local_rank, char ***argv_out)
{
    list l = { .items = NULL };
    int i;

    for (i = 0; argv[i] != NULL; i++)
        list_add(&l, i == 0 ? strdup(argv[i]) : fill_in(argv[i], local_rank));
    return list_end(&l, "arguments", argv_out);
}

void tti_strings_free(char **strings)
{
    size_t i;

    for (i = 0; strings != NULL && strings[i] != NULL; i++)
        free(strings[i]);
    free(strings);
}
