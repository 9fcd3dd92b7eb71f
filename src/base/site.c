/* SPDX-License-Identifier: BSD-3-Clause
 *
 * site.c - where the program has called the library from.
 *
 * How     The return addresses on this thread's stack, innermost first: what stands behind those of the library, which is the
 *         first one in another object. In front of them there may be whoever stands in for backtrace().
 * Cost    A walk over the stack, and a search for each address: for those who look for mistakes, and asked by nobody else.
 * Not     In a program that has the static library inside the two are one object, and the place is not told. Nor is it where
 *         the C library has no backtrace(). */
#include "base/site.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAS_BACKTRACE 1
#else
#define HAS_BACKTRACE 0
#endif

enum { FRAMES = 64 };

static const char here;

/* Where the object that address lies in begins; NULL: in none. */
static const void *object_of(const void *address)
{
    Dl_info info;

    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static const void *program(void)
{
    return object_of((const void *)(uintptr_t)getauxval(AT_PHDR));
}

const void *tti_site_now(void)
{
    const void *own = object_of(&here);
    void       *frames[FRAMES];
    bool        inside = false;
    int         n = 0, i;

    if (own == NULL || own == program())
        return NULL;
#if HAS_BACKTRACE
    n = backtrace(frames, FRAMES);
#endif
    for (i = 0; i < n; i++) {
        const bool is_own = object_of(frames[i]) == own;

        if (inside && !is_own)
            return frames[i];
        inside |= is_own;
    }
    return NULL;
}

void tti_site_describe(const void *site, char out[TTI_SITE_TEXT])
{
    const char *call = site != NULL ? (const char *)site - 1 : NULL; /* the call itself: what it returns to may be another line's */
    const char *slash;
    Dl_info     info;
    int         used;

    out[0] = '\0';
    if (call == NULL || dladdr(call, &info) == 0 || info.dli_fname == NULL)
        return;
    slash = strrchr(info.dli_fname, '/');
    used = snprintf(out, TTI_SITE_TEXT, "%.48s+0x%zx", slash != NULL ? slash + 1 : info.dli_fname,
                    (size_t)(call - (const char *)info.dli_fbase));
    if (info.dli_sname != NULL)
        snprintf(out + used, TTI_SITE_TEXT - (size_t)used, " (%.40s+0x%zx)", info.dli_sname,
                 (size_t)(call - (const char *)info.dli_saddr));
}
