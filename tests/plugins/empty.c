/* SPDX-License-Identifier: BSD-3-Clause
 *
 * empty.c - a shared object that is no plug-in. */
extern int tutti_plugin_of_another_kind;
int        tutti_plugin_of_another_kind;
