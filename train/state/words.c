/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - pairs of words, sorted by key. */
#include "state/state.h"

#include <stdlib.h>
#include <string.h>

static int place(const tti_words *words, const char *key, bool *found_out)
{
    int low = 0, high = words->n;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (strcmp(words->word[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found_out = low < words->n && strcmp(words->word[low].key, key) == 0;
    return low;
}

static void remove_at(tti_words *words, int i)
{
    free(words->word[i].key);
    free(words->word[i].value);
    words->n--;
    memmove(words->word + i, words->word + i + 1, (size_t)(words->n - i) * sizeof *words->word);
}

/* value is handed over if that succeeds. */
static bool insert_at(tti_words *words, int i, const char *key, char *value)
{
    const int room = words->room == 0 ? 4 : 2 * words->room;
    char *copy = strdup(key);

    if (copy != NULL && words->n == words->room) {
        tti_word *word = realloc(words->word, (size_t)room * sizeof *word);

        if (word != NULL) {
            words->word = word;
            words->room = room;
        }
    }
    if (copy == NULL || words->n == words->room) {
        free(copy);
        return false;
    }
    memmove(words->word + i + 1, words->word + i, (size_t)(words->n - i) * sizeof *words->word);
    words->word[i] = (tti_word){ .key = copy, .value = value };
    words->n++;
    return true;
}

bool tti_words_set(tti_words *words, const char *key, const char *value)
{
    bool found, ok = true;
    const int i = place(words, key, &found);
    char *copy = value != NULL ? strdup(value) : NULL;

    if (value != NULL && copy == NULL)
        return false;
    if (found && value == NULL) {
        remove_at(words, i);
    } else if (found) {
        free(words->word[i].value);
        words->word[i].value = copy;
    } else if (value != NULL) {
        ok = insert_at(words, i, key, copy);
    }
    if (!ok)
        free(copy);
    return ok;
}

bool tti_words_append(tti_words *words, const char *key, const char *value)
{
    char *copy = strdup(value);

    if (copy != NULL && insert_at(words, words->n, key, copy))
        return true;
    free(copy);
    return false;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const tti_word *)a)->key, ((const tti_word *)b)->key);
}

void tti_words_sort(tti_words *words)
{
    if (words->n > 0)
        qsort(words->word, (size_t)words->n, sizeof *words->word, by_key);
}

const char *tti_words_get(const tti_words *words, const char *key)
{
    bool found;
    const int i = place(words, key, &found);

    return found ? words->word[i].value : NULL;
}

void tti_words_clear(tti_words *words)
{
    while (words->n > 0)
        remove_at(words, words->n - 1);
    free(words->word);
    *words = (tti_words){ 0 };
}
