/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shaper.c - reads what the kernel says of queue disciplines; the design stands in shaper.h.
 *
 * Source  rtnetlink(7), netlink(7), linux/pkt_sched.h. Numbers are in this machine's byte order, and aligned to four bytes. */
#include "base/shaper.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ANCESTORS_MAX = 8, /* levels of an HTB */
    TICK_NS = 64,      /* of the time in which a bucket fills: the kernel's PSCHED_SHIFT of 6 */
};

#define RATE_MOST (UINT64_C(1) << 50)

_Static_assert((int)TTI_SHAPER_QUESTION_BYTES == (int)(NLMSG_HDRLEN + sizeof(struct tcmsg)), "a head, and which interface");

/* Bytes that lie inside of an answer. */
typedef struct piece {
    const uint8_t *at;
    size_t         bytes;
} piece;

static void ask(tti_shaper *shaper, uint16_t type, uint8_t out[TTI_SHAPER_QUESTION_BYTES])
{
    const struct nlmsghdr head = { .nlmsg_len = TTI_SHAPER_QUESTION_BYTES, .nlmsg_type = type,
                                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = ++shaper->sequence };
    const struct tcmsg    of = { .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)shaper->interface };

    memcpy(out, &head, sizeof head);
    memcpy(out + NLMSG_HDRLEN, &of, sizeof of);
    shaper->ended = false;
}

void tti_shaper_ask_disciplines(tti_shaper *shaper, uint8_t out[TTI_SHAPER_QUESTION_BYTES])
{
    ask(shaper, RTM_GETQDISC, out);
}

void tti_shaper_ask_classes(tti_shaper *shaper, uint8_t out[TTI_SHAPER_QUESTION_BYTES])
{
    ask(shaper, RTM_GETTCLASS, out);
}

/* ---- attributes -------------------------------------------------------------------------------------------------------- */

/* Take the next attribute off list; false: that was all, or the rest is none, which odd_out says. */
static bool next_attribute(piece *list, int *type_out, piece *value_out, bool *odd_out)
{
    struct rtattr head;
    size_t        whole;

    if (list->bytes == 0)
        return false;
    if (list->bytes >= sizeof head)
        memcpy(&head, list->at, sizeof head);
    if (list->bytes < sizeof head || head.rta_len < RTA_LENGTH(0) || head.rta_len > list->bytes) {
        *odd_out = true;
        return false;
    }
    *type_out = head.rta_type & NLA_TYPE_MASK;
    *value_out = (piece){ list->at + RTA_LENGTH(0), head.rta_len - RTA_LENGTH(0) };
    whole = RTA_ALIGN(head.rta_len);
    whole = whole < list->bytes ? whole : list->bytes;
    *list = (piece){ list->at + whole, list->bytes - whole };
    return true;
}

/* The attribute of a type, empty where there is none. False: the list is odd. */
static bool find(piece list, int type, piece *value_out)
{
    piece value;
    bool  odd = false;
    int   found;

    *value_out = (piece){ NULL, 0 };
    while (next_attribute(&list, &found, &value, &odd))
        if (found == type)
            *value_out = value;
    return !odd;
}

/* Numbers that an attribute begins with; kernels may append to them. False: it is there, and shorter. */
static bool copy(piece value, void *out, size_t bytes)
{
    if (value.at != NULL && value.bytes >= bytes)
        memcpy(out, value.at, bytes);
    return value.at == NULL || value.bytes >= bytes;
}

/* Rates of 4 GiB/s and more stand in an attribute of their own. */
static bool read_rate(piece options, int type, uint64_t *rate)
{
    piece value;

    return find(options, type, &value) && copy(value, rate, sizeof *rate);
}

/* ---- disciplines and classes ------------------------------------------------------------------------------------------- */

static bool read_tbf(tti_shaper *shaper, piece options)
{
    struct tc_tbf_qopt opt;
    piece              value;

    memset(&opt, 0, sizeof opt);
    if (!find(options, TCA_TBF_PARMS, &value) || !copy(value, &opt, sizeof opt))
        return false;
    shaper->rate = opt.rate.rate;
    if (!read_rate(options, TCA_TBF_RATE64, &shaper->rate))
        return false;
    if (opt.peakrate.rate == 0 && shaper->rate < RATE_MOST) /* else it does not pass at once; or no link has that */
        shaper->burst = (uint64_t)((double)opt.buffer * TICK_NS * 1e-9 * (double)shaper->rate + 0.5);
    return true;
}

static bool read_htb(tti_shaper *shaper, piece options)
{
    struct tc_htb_glob glob;
    piece              value;

    memset(&glob, 0, sizeof glob);
    if (!find(options, TCA_HTB_INIT, &value) || !copy(value, &glob, sizeof glob))
        return false;
    shaper->fallback = glob.defcls;
    return glob.defcls <= TC_H_MIN_MASK;
}

/* A name, with its NUL. */
static bool read_kind(piece attributes, char out[TTI_DISCIPLINE_MAX])
{
    piece kind;

    if (!find(attributes, TCA_KIND, &kind) || kind.bytes == 0 || kind.bytes > TTI_DISCIPLINE_MAX ||
        kind.at[kind.bytes - 1] != '\0')
        return false;
    memset(out, 0, TTI_DISCIPLINE_MAX);
    memcpy(out, kind.at, kind.bytes);
    return true;
}

static bool read_discipline(tti_shaper *shaper, const struct tcmsg *of, piece attributes)
{
    piece options;

    if (of->tcm_parent != TC_H_ROOT)
        return true;
    shaper->handle = of->tcm_handle;
    if (!read_kind(attributes, shaper->discipline) || !find(attributes, TCA_OPTIONS, &options))
        return false;
    if (strcmp(shaper->discipline, "tbf") == 0)
        return read_tbf(shaper, options);
    return strcmp(shaper->discipline, "htb") != 0 || read_htb(shaper, options);
}

static bool read_class(tti_shaper *shaper, const struct tcmsg *of, piece attributes)
{
    tti_traffic_class cls = { .handle = of->tcm_handle, .parent = of->tcm_parent };
    struct tc_htb_opt opt;
    char              kind[TTI_DISCIPLINE_MAX];
    piece             options, value;

    if (TC_H_MAJ(cls.handle) != TC_H_MAJ(shaper->handle))
        return true; /* of a discipline further down */
    memset(&opt, 0, sizeof opt);
    if (!read_kind(attributes, kind) || strcmp(kind, "htb") != 0 || shaper->n_classes == TTI_CLASSES_MAX ||
        !find(attributes, TCA_OPTIONS, &options) || !find(options, TCA_HTB_PARMS, &value) || !copy(value, &opt, sizeof opt))
        return false;
    cls.leaf = opt.level == 0;
    cls.rate = opt.rate.rate;
    cls.ceiling = opt.ceil.rate;
    if (!read_rate(options, TCA_HTB_RATE64, &cls.rate) || !read_rate(options, TCA_HTB_CEIL64, &cls.ceiling))
        return false;
    shaper->classes[shaper->n_classes++] = cls;
    return true;
}

/* One message, behind its head. */
static bool read_message(tti_shaper *shaper, const struct nlmsghdr *head, piece body)
{
    struct tcmsg of;

    if ((head->nlmsg_flags & NLM_F_DUMP_INTR) != 0 || head->nlmsg_type == NLMSG_ERROR || head->nlmsg_type == NLMSG_OVERRUN)
        return false; /* it was changed meanwhile, or is refused */
    if (head->nlmsg_type != RTM_NEWQDISC && head->nlmsg_type != RTM_NEWTCLASS)
        return true;
    if (body.bytes < sizeof of)
        return false;
    memcpy(&of, body.at, sizeof of);
    if (of.tcm_ifindex != (int)shaper->interface)
        return true;
    body = (piece){ body.at + sizeof of, body.bytes - sizeof of };
    return head->nlmsg_type == RTM_NEWQDISC ? read_discipline(shaper, &of, body) : read_class(shaper, &of, body);
}

bool tti_shaper_read(tti_shaper *shaper, const void *packet, size_t bytes)
{
    struct nlmsghdr head;
    piece           rest = { packet, bytes };
    size_t          whole;

    while (rest.bytes > 0 && !shaper->ended) {
        if (rest.bytes < NLMSG_HDRLEN)
            return false;
        memcpy(&head, rest.at, sizeof head);
        if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > rest.bytes)
            return false;
        if (head.nlmsg_seq == shaper->sequence && head.nlmsg_type == NLMSG_DONE)
            shaper->ended = true;
        else if (head.nlmsg_seq == shaper->sequence &&
                 !read_message(shaper, &head, (piece){ rest.at + NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN }))
            return false;
        whole = NLMSG_ALIGN(head.nlmsg_len);
        whole = whole < rest.bytes ? whole : rest.bytes;
        rest = (piece){ rest.at + whole, rest.bytes - whole };
    }
    return true;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------------- */

bool tti_shaper_has_classes(const tti_shaper *shaper)
{
    return strcmp(shaper->discipline, "htb") == 0 && shaper->fallback != 0;
}

static const tti_traffic_class *class_of(const tti_shaper *shaper, uint32_t handle)
{
    int i;

    for (i = 0; i < shaper->n_classes; i++)
        if (shaper->classes[i].handle == handle)
            return &shaper->classes[i];
    return NULL;
}

/* From the default class up; 0: it is none, which lets everything through, or those above it do not lead to the root. A class sends at
 * its own rate whatever those above it have, and borrows the rest from them. */
static uint64_t rate_of_classes(const tti_shaper *shaper)
{
    const tti_traffic_class *cls = class_of(shaper, TC_H_MAKE(shaper->handle, shaper->fallback));
    uint64_t                 own = 0, ceiling = UINT64_MAX; /* of those so far */
    int                      levels;

    if (cls == NULL || !cls->leaf)
        return 0;
    for (levels = 0; cls != NULL && levels < ANCESTORS_MAX; levels++) {
        const uint64_t rate = cls->rate < ceiling ? cls->rate : ceiling;

        own = rate > own ? rate : own;
        if (cls->parent == TC_H_ROOT || cls->parent == shaper->handle)
            return own;
        ceiling = cls->ceiling < ceiling ? cls->ceiling : ceiling;
        cls = class_of(shaper, cls->parent);
    }
    return 0;
}

uint64_t tti_shaper_burst(const tti_shaper *shaper)
{
    return shaper->ended && strcmp(shaper->discipline, "tbf") == 0 ? shaper->burst : 0;
}

uint64_t tti_shaper_rate(const tti_shaper *shaper)
{
    if (!shaper->ended)
        return 0;
    return tti_shaper_has_classes(shaper) ? rate_of_classes(shaper) : shaper->rate;
}
