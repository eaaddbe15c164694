// SPDX-License-Identifier: MIT
//
// What the client library (client.c) gives to the program that loads it.
#ifndef GH_TEST_CLIENT_H
#define GH_TEST_CLIENT_H

// Opens a GPU, wraps blocks and lets a kernel change them in place; 1 when all was right. The
// wraps and the context stay.
int client_open(const char *kernels);
void client_close(void);

#endif
