/* SPDX-License-Identifier: BSD-3-Clause
 *
 * foreign.c - the registered memory of other processes of the host: mapped whole, and reached by offsets. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tutti/private.h>
#include "transport/heap.h"
#include "transport/registered_core.h"

struct tti_foreign {
    uint8_t *base;
    uint64_t bytes;
    bool     ours;
};

static tutti_status check_heap(int fd, struct stat *info_out)
{
    if (fstat(fd, info_out) != 0)
        return tti_fail_errno(errno, "cannot look at the descriptor of registered memory");
    if (info_out->st_size < (off_t)TTI_REGISTERED_BYTES_MIN || info_out->st_size > (off_t)TTI_REGISTERED_BYTES_MAX ||
        info_out->st_size % TTI_REGISTERED_LARGE != 0 ||
        !tti_is_sealed_memory(fd, TTI_REGISTERED_SEALS))
        return tti_fail(TUTTI_E_AUTH, "a peer sent a descriptor that is no sealed heap of registered memory");
    return TUTTI_OK;
}

static tutti_status map_foreign(int fd, const struct stat *info, tti_foreign *foreign)
{
    tutti_status st = TUTTI_OK;
    void        *base;

    foreign->bytes = (uint64_t)info->st_size;
    pthread_mutex_lock(&tti_registered_lock);
    foreign->ours = tti_registered_is_own(info);
    if (foreign->ours) {
        st = tti_registered_map();
        foreign->base = tti_registered.base;
    }
    pthread_mutex_unlock(&tti_registered_lock);
    if (foreign->ours)
        return st;
    base = tti_registered_map_large(fd, foreign->bytes);
    if (base == MAP_FAILED)
        return tti_fail_errno(errno, "cannot map a peer's registered memory: %llu GiB of address space",
                              (unsigned long long)(foreign->bytes >> 30));
    foreign->base = base;
    return TUTTI_OK;
}

tutti_status tti_foreign_map(int fd, tti_foreign **foreign_out)
{
    tti_foreign *foreign;
    struct stat  info;
    tutti_status st = check_heap(fd, &info);

    if (st != TUTTI_OK)
        return st;
    foreign = calloc(1, sizeof *foreign);
    if (foreign == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the handle of a peer's registered memory");
    st = map_foreign(fd, &info, foreign);
    if (st != TUTTI_OK) {
        free(foreign);
        return st;
    }
    *foreign_out = foreign;
    return TUTTI_OK;
}

void tti_foreign_free(tti_foreign *foreign)
{
    if (foreign != NULL && !foreign->ours)
        munmap(foreign->base, foreign->bytes);
    free(foreign);
}

bool tti_foreign_is_ours(const tti_foreign *foreign)
{
    return foreign->ours;
}

void *tti_foreign_at(const tti_foreign *foreign, uint64_t offset, size_t bytes)
{
    if (offset > foreign->bytes || bytes > foreign->bytes - offset)
        return NULL;
    return foreign->base + offset;
}
