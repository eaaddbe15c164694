// SPDX-License-Identifier: MIT
//
// Marks what the library exports; exports.map has the same names, and a check compares them.
#ifndef GH_PRELOAD_EXPORT_H
#define GH_PRELOAD_EXPORT_H

#define GH_EXPORT __attribute__((visibility("default"), used))

#endif
