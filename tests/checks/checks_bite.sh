#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# scripts/check-* must fail on trees that break their rules, and pass on a good
# one: each rule is broken once here.
set -euo pipefail

scripts=$(readlink -f -- "$(dirname -- "$0")/../../scripts")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wrong=0

fresh() { # a small good tree
	rm -rf "${dir:?}/tree"
	mkdir -p "$dir/tree/allocator" "$dir/tree/preload" "$dir/tree/tests" "$dir/tree/scripts"
	printf '// SPDX-License-Identifier: MIT\n// mentions getenv() and dlsym() only here\n#include "b.h"\n#include <stdint.h>\n' >"$dir/tree/allocator/a.c"
	printf '// SPDX-License-Identifier: MIT\n' >"$dir/tree/allocator/b.h"
	printf '// SPDX-License-Identifier: MIT\n' >"$dir/tree/preload/config.h"
}
check() { # check WANTED-STATUS NAME CHECK
	local status=0
	"$scripts/$3" "$dir/tree" >"$dir/log" 2>&1 || status=$?
	if ((status != $1)); then
		printf 'WRONG: %s: %s answered %d\n' "$2" "$3" "$status"
		cat "$dir/log"
		wrong=1
	fi
}
breaks() { # breaks NAME CHECK LINE: the line, added to a.c, must be found
	fresh
	printf '%s\n' "$3" >>"$dir/tree/allocator/a.c"
	check 1 "$1" "$2"
}

fresh
check 0 'a good tree' check-layers
check 0 'a good tree' check-style
breaks 'Level Zero header' check-layers '#include <level_zero/ze_api.h>'
breaks 'CUDA header' check-layers '# include <cuda.h>'
breaks 'dlfcn' check-layers '#include <dlfcn.h>'
breaks 'header of preload/' check-layers '#include "preload/config.h"'
breaks 'header of preload/, bare' check-layers '#include "config.h"'
breaks 'header of preload/, relative' check-layers '#include "../preload/config.h"'
breaks 'getenv' check-layers 'static const char *x(void) { return getenv("A"); }'
breaks 'dlsym' check-layers 'static void *y(void) { return dlsym(0, "a"); }'
fresh
sed -i 1d "$dir/tree/preload/config.h"
check 1 'no licence line' check-style
fresh
seq -f '// line %g' 400 >>"$dir/tree/allocator/a.c"
check 1 'too long' check-style
fresh
printf '#!/bin/sh\n' >"$dir/tree/scripts/tool"
check 1 'script without a licence line' check-style

# check-exports, on libraries made for it.
printf '{ global: malloc; calloc; realloc; free; posix_memalign; aligned_alloc; memalign; malloc_usable_size; _Znwm; _ZnamRKSt9nothrow_t; _ZdlPv; dlopen; dlsym; gpuhost_*; local: *; };\n' >"$dir/map"
library() { # library EXTRA-SYMBOL...
	local symbol
	for symbol in malloc calloc realloc free posix_memalign aligned_alloc memalign malloc_usable_size \
		_Znwm _ZnamRKSt9nothrow_t _ZdlPv dlopen dlsym gpuhost_version "$@"; do
		printf '__attribute__((visibility("default"))) void %s(void); void %s(void) {}\n' "$symbol" "$symbol"
	done >"$dir/lib.c"
	gcc -fno-builtin -shared -fPIC -nostdlib -o "$dir/lib.so" "$dir/lib.c"
}
exports() { # exports WANTED-STATUS NAME
	local status=0
	"$scripts/check-exports" "$dir/lib.so" "$dir/map" >"$dir/log" 2>&1 || status=$?
	if ((status != $1)); then
		printf 'WRONG: %s: check-exports answered %d\n' "$2" "$status"
		cat "$dir/log"
		wrong=1
	fi
}
library
exports 0 'the right exports'
library mallocx_internal
exports 1 'a name that is not in the map'
sed -i 's/gpuhost_\*/gpuhost_*; gh_region/' "$dir/map"
library gh_region
exports 1 'a name in the map that is none of the kinds'
exit "$wrong"
