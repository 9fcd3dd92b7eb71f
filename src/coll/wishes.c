/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wishes.c - TUTTI_ALGO: operations and algorithms by their names. */
#include <string.h>
#include <tutti/private.h>
#include <tutti/tune.h>
#include "coll/choose.h"

enum { WORD_MAX = 32 };

tutti_call_kind tti_kind_named(const char *op)
{
    int kind = 1;

    while (kind < TUTTI_CALL_KIND_COUNT && strcmp(tti_call_kind_name((tutti_call_kind)kind), op) != 0)
        kind++;
    return (tutti_call_kind)kind;
}

int tti_algorithm_named(tutti_call_kind kind, const char *name)
{
    int                  n, i;
    const tti_algorithm *rows = tti_algorithms(&n);

    for (i = 0; i < n; i++)
        if (rows[i].kind == kind && strcmp(rows[i].name, name) == 0)
            return i;
    return -1;
}

const char *tutti_algorithm_name(const char *op, int i)
{
    const tutti_call_kind kind = op == NULL ? TUTTI_CALL_KIND_COUNT : tti_kind_named(op);
    int                   n, row, left = i;
    const tti_algorithm  *rows = tti_algorithms(&n);

    for (row = 0; row < n && i >= 0; row++)
        if (rows[row].kind == kind && left-- == 0)
            return rows[row].name;
    return NULL;
}

void tti_add_kinds(tti_words *words)
{
    int kind;

    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        tti_words_add(words, "%s%s", kind > 1 ? ", " : "", tti_call_kind_name((tutti_call_kind)kind));
}

void tti_add_algorithms(tti_words *words, tutti_call_kind kind)
{
    int                  n, i, said = 0;
    const tti_algorithm *rows = tti_algorithms(&n);

    for (i = 0; i < n; i++)
        if (rows[i].kind == kind)
            tti_words_add(words, "%s%s", said++ > 0 ? ", " : "", rows[i].name);
}

static tutti_status add_wish(const char *text, const char *op, const char *name, tti_wishes *wishes)
{
    const tutti_call_kind kind = tti_kind_named(op);
    tti_words             words = { .used = 0 };
    int                   row;

    if (kind == TUTTI_CALL_KIND_COUNT) {
        tti_add_kinds(&words);
        return tti_fail(TUTTI_E_ARG, "TUTTI_ALGO is '%s': no operation is called '%s'\n  next: take one of %s",
                        text, op, words.text);
    }
    row = tti_algorithm_named(kind, name);
    if (row < 0) {
        tti_add_algorithms(&words, kind);
        return tti_fail(TUTTI_E_ARG, "TUTTI_ALGO is '%s': %s has no algorithm '%s'\n  next: take one of %s",
                        text, op, name, words.text);
    }
    if (wishes->rows[kind] >= 0)
        return tti_fail(TUTTI_E_ARG, "TUTTI_ALGO is '%s': %s is there twice\n  next: name each operation once", text, op);
    wishes->rows[kind] = (int16_t)row;
    return TUTTI_OK;
}

/* Copy the word before any of ends; what follows it, or NULL if it is empty or too long. */
static const char *word(const char *from, const char *ends, char out[WORD_MAX])
{
    const size_t length = strcspn(from, ends);

    if (length == 0 || length >= WORD_MAX)
        return NULL;
    memcpy(out, from, length);
    out[length] = '\0';
    return from + length;
}

tutti_status tti_wishes_parse(const char *text, tti_wishes *wishes_out)
{
    tti_wishes   wishes;
    char         op[WORD_MAX], name[WORD_MAX];
    const char  *at = text;
    tutti_status st = TUTTI_OK;

    memset(wishes.rows, -1, sizeof wishes.rows);
    while (at != NULL && *at != '\0' && st == TUTTI_OK) {
        at = word(at, "=,", op);
        at = at != NULL && *at == '=' ? word(at + 1, ",", name) : NULL;
        if (at == NULL)
            return tti_fail(TUTTI_E_ARG, "TUTTI_ALGO is '%s', not op=name,op=name,...\n"
                                        "  next: give for example all_reduce=sliced; a wrong name is answered with "
                                        "the right ones", text);
        if (strpbrk(op, " \t;") != NULL || strpbrk(name, " \t;=") != NULL)
            return tti_fail(TUTTI_E_ARG, "TUTTI_ALGO is '%s': '%s=%s' is not one op=name\n"
                                        "  next: put a comma, and no space, between two", text, op, name);
        at += *at == ',';
        st = add_wish(text, op, name, &wishes);
    }
    if (st == TUTTI_OK)
        *wishes_out = wishes;
    return st;
}
