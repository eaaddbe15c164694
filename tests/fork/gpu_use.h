// SPDX-License-Identifier: MIT
//
// The parent's use of a GPU while it makes processes (kinds.c, churn.c): blocks that a kernel changes in place.
// One thread. Without WITH_GPU (a build without a Level Zero loader) there is none.
#ifndef GH_TEST_GPU_USE_H
#define GH_TEST_GPU_USE_H

#ifdef WITH_GPU

// Wraps blocks of many sizes and starts the kernel; ends the program when that fails.
void gpu_use_open(const char *kernels);
// A kernel over all of them, and over a new block: 1 when every byte is the expected one.
int gpu_use_is_right(void);
void gpu_use_close(void);

#else

static inline void gpu_use_open(const char *kernels) { (void)kernels; }
static inline int gpu_use_is_right(void) { return 0; }
static inline void gpu_use_close(void) {}

#endif

#endif
