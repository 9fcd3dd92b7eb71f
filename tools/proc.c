/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proc.c - reading them. */
#include "proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool proc_line(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
    bool ok;

    text[0] = '\0';
    if (file == NULL)
        return false;
    ok = fgets(text, (int)bytes, file) != NULL;
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return ok;
}

int proc_numbers(const char *path, long long *out, int n)
{
    FILE *file = fopen(path, "re");
    int got = 0;

    if (file == NULL)
        return 0;
    while (got < n && fscanf(file, "%lld", &out[got]) == 1)
        got++;
    fclose(file);
    return got;
}

long long proc_value(const char *path, const char *key)
{
    const size_t len = strlen(key);
    char line[512];
    long long value = -1;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return -1;
    while (value < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, len) == 0 && line[len] == ':')
            value = strtoll(line + len + 1, NULL, 10);
    fclose(file);
    return value;
}
