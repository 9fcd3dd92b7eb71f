/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen_env_md.c - docs/env.md from the table of src/base/env.c.
 *
 *     gen_env_md             print the page
 *     gen_env_md --check F   compare it with a file: exit code 1 when they differ
 *     gen_env_md --write F   write it into a file */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"

static const char head[] =
    "# Environment variables\n"
    "\n"
    "<!-- Made from the table of src/base/env.c: cmake --build build/dev --target env_md -->\n"
    "\n"
    "What tutti reads from the environment. An empty variable counts as unset. `RANK`, `WORLD_SIZE`,\n"
    "`MASTER_ADDR` and the other names without `TUTTI_` mean what they mean to torchrun. Other names that\n"
    "begin with `TUTTI_` get a warning when a process joins, but for `TUTTI_TEST_...`, which are free.\n"
    "\n"
    "| variable | when unset | meaning |\n"
    "|---|---|---|\n";

/* A cell that stands for a default: as code, or words where there is nothing to show. */
static void put_default(FILE *out, const char *value)
{
    if (value == NULL)
        fputs("-", out);
    else if (value[0] == '\0')
        fputs("empty", out);
    else
        fprintf(out, "`%s`", value);
}

static void page(FILE *out)
{
    const tti_env_entry *table;
    size_t               n;
    size_t               i;

    table = tti_env_table(&n);
    fputs(head, out);
    for (i = 0; i < n; i++) {
        fprintf(out, "| `%s` | ", table[i].name);
        put_default(out, table[i].value);
        fprintf(out, " | %s |\n", table[i].what);
    }
}

static int check(const char *path, const char *want, size_t size)
{
    char  *have = calloc(1, size + 1);
    FILE  *f = fopen(path, "r");
    size_t got = 0;
    int    differs = 1;

    if (f != NULL && have != NULL) {
        got = fread(have, 1, size + 1, f); /* one more: a longer file differs too */
        differs = got != size || memcmp(have, want, size) != 0;
    }
    if (f != NULL)
        fclose(f);
    free(have);
    if (differs)
        fprintf(stderr, "%s is stale: it does not say what src/base/env.c says\n"
                        "  next: cmake --build build/dev --target env_md\n", path);
    return differs;
}

static int write_page(const char *path)
{
    FILE *f = fopen(path, "w");

    if (f == NULL) {
        perror(path);
        return 1;
    }
    page(f);
    return fclose(f) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *memory;
    int    code;

    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_page(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--check") == 0) {
        memory = open_memstream(&text, &size);
        if (memory == NULL)
            return 1;
        page(memory);
        fclose(memory);
        code = check(argv[2], text, size);
        free(text);
        return code;
    }
    page(stdout);
    return 0;
}
