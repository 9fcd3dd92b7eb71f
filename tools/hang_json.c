/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_json.c - what was found, for programs. */
#include "hang.h"

static json_t *list_of(const int *ranks, int n)
{
    json_t *list = json_array();
    int i;

    for (i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ranks[i]));
    return list;
}

static json_t *json_of_rank(const hang *h, const hang_rank *r)
{
    char op[HANG_LINE_MAX] = "", last[HANG_LINE_MAX] = "";

    if (r->wait != NULL)
        hang_write_op(h, r->wait, op);
    if (r->last != NULL)
        hang_write_op(h, r->last, last);
    return json_pack("{si sI ss so sf so so}", "rank", r->rank, "pid", (json_int_t)r->pid, "is", hang_at_words(r->at), "operation",
                     view_text(op), "since_s", r->wait != NULL ? r->since_s : 0.0, "last", view_text(last), "waits_for",
                     list_of(r->awaits, r->n_awaits));
}

static json_t *json_of_other(const hang *h, const hang_rank *r)
{
    return json_pack("{sI ss si si}", "pid", (json_int_t)r->pid, "is", hang_other_words(r), "rank", r->seen->rank, "world",
                     r->seen->is_left ? h->view->worlds[r->seen->left].generation : 0);
}

json_t *hang_json(const hang *h)
{
    json_t *ranks = json_array(), *causes = json_array(), *others = json_array();
    int i;

    for (i = 0; i < h->n_others; i++)
        json_array_append_new(others, json_of_other(h, &h->others[i]));

    for (i = 0; i < h->n; i++)
        json_array_append_new(ranks, json_of_rank(h, &h->ranks[i]));
    for (i = 0; i < h->n_causes; i++)
        json_array_append_new(causes, json_pack("{ss so so}", "is",
                                                h->causes[i].circle ? "a circle" : hang_at_words(h->ranks[h->causes[i].ranks[0]].at),
                                                "ranks", list_of(h->causes[i].ranks, h->causes[i].n), "waiting",
                                                list_of(h->causes[i].waiters, h->causes[i].n_waiters)));
    return json_pack("{ss so si si so so so}", "doctor", "hang", "job", view_text(h->job), "world", h->world >= 0 ? h->view->worlds[h->world].generation : 0,
                     "waiting", h->n_waiting, "causes", causes, "ranks", ranks, "not_in_it", others);
}
