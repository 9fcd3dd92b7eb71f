/* SPDX-License-Identifier: BSD-3-Clause
 *
 * admission.c - the folders in which processes come into a world; admission.h has the design. */
#include "regroup/admission.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

enum { NAME_MAX_BYTES = TTI_ADMISSION_NAME_MAX };

const char *tti_admission_name(const char *name)
{
    return name != NULL ? name : "default";
}

bool tti_is_passed_over(const tutti_bytes *asked)
{
    return asked->size == strlen(TTI_PASSED_OVER) && memcmp(asked->data, TTI_PASSED_OVER, asked->size) == 0;
}

tutti_status tti_admission_open(const char *what, tutti_store *root, const char *name, tti_admission *to)
{
    const char *known = tti_admission_name(name);
    char        prefix[NAME_MAX_BYTES + 16];

    if (known[0] == '\0' || strnlen(known, NAME_MAX_BYTES + 1) > NAME_MAX_BYTES)
        return tti_fail(TUTTI_E_ARG, "%s: name is empty, or longer than %d bytes\n  next: use another one, the same on all, or NULL",
                        what, NAME_MAX_BYTES);
    snprintf(prefix, sizeof prefix, "tutti/grow/%s", known);
    return tutti_prefix_store_open(prefix, root, &to->folder);
}

tutti_status tti_admission_meet(tti_admission *to, tutti_group *old)
{
    char         key[TTI_ADMISSION_KEY_MAX];
    tutti_status st;

    to->join.world_size = to->size;
    snprintf(key, sizeof key, "%" PRId64, to->attempt);
    st = tutti_prefix_store_open(key, to->folder, &to->part);
    if (st == TUTTI_OK)
        st = tti_gathering_begin(&to->gathering, to->port, &to->join, to->part, "0", old, NULL, old != NULL ? old->size : 0);
    return st;
}

tutti_status tti_admission_found(tti_admission *to, const tti_backing *backing, tutti_group **group_out)
{
    const tutti_status st = tti_world_found(to->port, backing, &to->join, "0:grow", "0", to->part, group_out);

    if (st == TUTTI_OK)
        to->gathering.made = tti_made_by(*group_out);
    return st;
}

void tti_admission_close(tti_admission *to, tutti_status st)
{
    tti_gathering_end(&to->gathering, st);
    tutti_store_close(to->part);
    tutti_store_close(to->folder);
}
