/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/site.h - where the program has called the library from. */
#ifndef TTI_BASE_SITE_H
#define TTI_BASE_SITE_H

enum { TTI_SITE_TEXT = 128 };

/** The place on this thread's stack from which the library was entered; NULL: it cannot be told. Takes microseconds. */
const void *tti_site_now(void);

/** "train+0x1a2f (step+0x4f)": the object, where in it, as addr2line takes it, and the function, if its name is shown.
 * "": site is NULL, or lies in no object. */
void tti_site_describe(const void *site, char out[TTI_SITE_TEXT]);

#endif
