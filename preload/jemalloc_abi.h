// SPDX-License-Identifier: MIT
//
// Declares what jemalloc_abi.c exports; the prototypes are jemalloc's own.
#ifndef GH_PRELOAD_JEMALLOC_ABI_H
#define GH_PRELOAD_JEMALLOC_ABI_H

#include <jemalloc/jemalloc.h>

#endif
