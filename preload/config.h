// SPDX-License-Identifier: MIT
//
// The configuration: read once from the environment at start-up, constant afterwards. Reading
// allocates nothing and looks at `environ` itself, because it runs inside the first malloc.
#ifndef GH_PRELOAD_CONFIG_H
#define GH_PRELOAD_CONFIG_H

#include "allocator/util.h"
#include "log.h"

enum { GH_BACKEND_AUTO, GH_BACKEND_LEVEL_ZERO, GH_BACKEND_NONE };
enum { GH_IMPORT_AUTO, GH_IMPORT_ALWAYS, GH_IMPORT_NEVER };

#define GH_CONFIG_TYPE_BOOL uint64_t
#define GH_CONFIG_TYPE_CHOICE uint64_t
#define GH_CONFIG_TYPE_SIZE uint64_t
#define GH_CONFIG_TYPE_NUMBER uint64_t
#define GH_CONFIG_TYPE_TEXT const char *

struct gh_config {
#define GH_OPTION(field, name, kind, initial, minimum, maximum, choices, meaning) GH_CONFIG_TYPE_##kind field;
#include "config_options.def"
#undef GH_OPTION
};

extern GH_HIDDEN struct gh_config gh_config;

// Reads `environment` (an `environ`). A value that does not parse is reported and its default
// kept; an unknown GPUHOST_ name is reported. In a privileged process nothing is read. The other
// form of the argument makes the parser testable.
GH_HIDDEN void gh_config_read(char *const *environment, bool privileged);

// Parses one value into the option `name` (without prefix). Returns 0, EINVAL, or ENOENT for a
// name that is none. For gh_config_read and the tests.
GH_HIDDEN int gh_config_set(const char *name, size_t name_length, const char *value);

// True when `list`, names separated by ':', has the base name of `program`.
GH_HIDDEN bool gh_config_lists(const char *list, const char *program);

// GPUHOST_HELP=1, names, markdown or version: prints the table of options and what is in effect.
GH_HIDDEN void gh_config_print(const char *form);

#endif
