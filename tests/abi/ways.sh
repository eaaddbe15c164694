#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The library by other ways than the preload. Linked in, it serves. Loaded late, it either does
# not load, with a plain message of ld.so's (its thread-local data needs room that is given out at
# start), or loads and stays aside with one line; two heaps there must never be.
# Usage: ways.sh LIBRARY LATE_PROGRAM NEEDED_PROGRAM
set -euo pipefail

library=$1
late=$2
needed=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0
fail() {
	printf '%s\n' "$*"
	cat "$scratch"/* || true
	bad=1
}
aside='gpuhost: the process has another malloc (its own, another preloaded one, or libgpuhost was loaded late); not active'

"$needed" >"$scratch/out" 2>"$scratch/err" || fail "linked in: status $?"
grep -q '^active 1, version .*, heap grows here: 1$' "$scratch/out" || fail "linked in, the heap is not ours"
LD_PRELOAD=$library "$needed" >"$scratch/out" 2>"$scratch/err" || fail "linked in and preloaded: status $?"
[[ ! -s $scratch/err ]] || fail "linked in, it says something"

# Without room for thread-local data: refused by ld.so, one line, the program goes on.
"$late" "$library" >"$scratch/out" 2>"$scratch/err" || fail "late dlopen: status $?"
(($(wc -l <"$scratch/out") == 3)) || fail "late dlopen: not three answers"
if grep -q 'refused' "$scratch/out"; then
	grep -q 'static TLS' "$scratch/err" || fail "late dlopen was refused for another reason"
fi
# With room: loaded, aside, one line a load.
GLIBC_TUNABLES=glibc.rtld.optional_static_tls=20000 "$late" "$library" >"$scratch/out" 2>"$scratch/err" ||
	fail "late dlopen with room: status $?"
(($(grep -c 'loaded, .*active 0$' "$scratch/out") == 3)) || fail "late dlopen with room: not three times aside"
(($(grep -cxF -- "$aside" "$scratch/err") == 3)) || fail "late dlopen with room: not one line a load"
(($(wc -l <"$scratch/err") == 3)) || fail "late dlopen with room: more than one line a load"

if command -v python3 >/dev/null; then
	load='import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).gpuhost_active()); print(len(str(list(range(100000)))))'
	status=0
	python3 -c "$load" "$library" >"$scratch/out" 2>"$scratch/err" || status=$?
	((status == 0)) || grep -q 'OSError: .*static TLS' "$scratch/err" || fail "ctypes: status $status"
	GLIBC_TUNABLES=glibc.rtld.optional_static_tls=20000 python3 -c "$load" "$library" >"$scratch/out" 2>"$scratch/err" ||
		fail "ctypes with room: status $?"
	[[ $(head -n 1 "$scratch/out") == 0 ]] || fail "ctypes with room: active"
	grep -qxF -- "$aside" "$scratch/err" || fail "ctypes with room: no line"
fi

# Behind another allocator in the preload it stays aside.
other=$(ldconfig -p | awk '/libjemalloc\.so\.2 .*x86-64/ && !seen++ { print $NF }')
if [[ -n $other ]]; then
	LD_PRELOAD="$other:$library" perl -e 'print length("x" x 1000000), "\n"' >"$scratch/out" 2>"$scratch/err" ||
		fail "behind another allocator: status $?"
	[[ $(<"$scratch/out") == 1000000 ]] || fail "behind another allocator: wrong output"
	grep -qxF -- "$aside" "$scratch/err" || fail "behind another allocator: no line"
fi
((bad == 0)) && printf 'every way serves or stays aside\n'
exit "$bad"
