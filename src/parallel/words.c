/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - what is said when a step does not come out: which parameters, by number and by name, and what to do. */
#include "parallel/parallel.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { LIST_MAX = 600, NAMES_MAX = 600 };

const char *tti_param_text(const tutti_reducer *r, int i, char *out, size_t size)
{
    if (r->slots[i].name != NULL)
        snprintf(out, size, "parameter %d ('%s')", i, r->slots[i].name);
    else
        snprintf(out, size, "parameter %d", i);
    return out;
}

/* Add to a list, or say that there is more, once.
 * @return whether it was added */
static bool add(char *list, size_t size, size_t *used, const char *fmt, ...) TUTTI_PRINTF(4, 5);

static bool add(char *list, size_t size, size_t *used, const char *fmt, ...)
{
    static const char more[] = " ...";
    char              text[256];
    size_t            bytes;
    va_list           args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    bytes = strlen(text);
    if (*used + bytes + sizeof more > size) {
        if (*used < size - sizeof more + 1) {
            memcpy(list + *used, more, sizeof more);
            *used = size;
        }
        return false;
    }
    memcpy(list + *used, text, bytes + 1);
    *used += bytes;
    return true;
}

/* Their numbers, blank separated, and their names, as far as they have some. */
static void list_missing(const tutti_reducer *r, char numbers[LIST_MAX], char names[NAMES_MAX])
{
    size_t n_numbers = 0, n_names = 0;
    int    i;

    numbers[0] = names[0] = '\0';
    for (i = 0; i < r->n; i++) {
        if (r->slots[i].ready)
            continue;
        add(numbers, LIST_MAX, &n_numbers, "%s%d", n_numbers > 0 ? " " : "", i);
        if (r->slots[i].name != NULL)
            add(names, NAMES_MAX, &n_names, "%s%s", n_names > 0 ? ", " : "", r->slots[i].name);
    }
}

static const char *unfinished_advice(const tutti_reducer *r)
{
    if (r->caps.static_graph)
        return "make every step like the first one, or do not set static_graph: the graph has changed";
    if (r->caps.find_unused)
        return "hand what this backward does not reach to tutti_reducer_prepare_for_backward()";
    return "set find_unused_parameters and name what a step does not use, or let all outputs take part in the loss";
}

tutti_status tti_fail_unfinished(const tutti_reducer *r)
{
    char numbers[LIST_MAX], names[NAMES_MAX];

    list_missing(r, numbers, names);
    return tti_fail(TUTTI_E_STATE,
                    "Expected to have finished reduction in the prior iteration: step %lld has parameters that did not "
                    "receive gradients, as if not used in the loss%s%s\n"
                    "  Parameters which did not receive grad for rank %d: %s\n"
                    "  Parameter indices which did not receive grad for rank %d: %s\n"
                    "  next: %s",
                    (long long)r->iterations, r->name != NULL ? ", in module " : "", r->name != NULL ? r->name : "",
                    r->rank, names[0] != '\0' ? names : "(they have no names)", r->rank, numbers,
                    unfinished_advice(r));
}

tutti_status tti_fail_twice(const tutti_reducer *r, int i)
{
    const char *name = r->slots[i].name;

    return tti_fail(TUTTI_E_STATE,
                    "Expected to mark a variable ready only once: Parameter at index %d%s%s has been marked as ready "
                    "twice on rank %d, in step %lld\n"
                    "  either it was used outside of the forward pass or in several passes at once, or in several "
                    "reentrant backwards%s\n"
                    "  next: mark each parameter once a step, or set static_graph if it is the same in every step",
                    i, name != NULL ? " with name " : "", name != NULL ? name : "", r->rank, (long long)r->iterations,
                    r->unused_marked && r->caps.find_unused ? ", or it was among the unused ones and is used" : "");
}

tutti_status tti_fail_changed(const tutti_reducer *r, int i)
{
    char text[256];

    return tti_fail(TUTTI_E_STATE,
                    "Your training graph has changed in this iteration: %s was marked %d times in the first step, and "
                    "more often in step %lld on rank %d, although static_graph is set\n"
                    "  next: make every step like the first one, or do not set static_graph",
                    tti_param_text(r, i, text, sizeof text), r->slots[i].triggers, (long long)r->iterations, r->rank);
}

tutti_status tti_fail_unknown(const tutti_reducer *r, int i)
{
    char text[256];

    return tti_fail(TUTTI_E_STATE,
                    "%s is used by rank %d, and was used by no rank in the first step of the static graph, for which rank "
                    "%d had no input: the others take it for unused\n"
                    "  next: let every rank make the first step, or do not set static_graph",
                    tti_param_text(r, i, text, sizeof text), r->rank, r->rank);
}
