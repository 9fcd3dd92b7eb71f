/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder.h - libtutti's flight recorder for Python. */
#ifndef TUTTI_TORCH_RECORDER_H
#define TUTTI_TORCH_RECORDER_H

#include <pybind11/pybind11.h>

namespace tutti_torch {

/** What this process's recorder has, as plain values: {"groups": [{...}], "records": [{...}]} by the names that
 * tutti/recorder.h has for them; a record's "group" is a place in the list of groups, or -1. @throws as check() */
pybind11::dict read_recorder();

} // namespace tutti_torch
#endif
