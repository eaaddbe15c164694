#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A program that uses no GPU does nothing with the library that it would not do under jemalloc:
# no thread, no device node, no driver, no loader. Usage: quiet.sh LIBRARY
set -euo pipefail

library=$1
command -v strace >/dev/null || { echo 'SKIP: no strace'; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2016 # the variables are perl's
program=(perl -e 'my @a = map { "x" x ($_ * 50) } 1 .. 3000; @a = (); my @b = map { $_ } 1 .. 200000;')
command -v perl >/dev/null || program=(/bin/ls -lR /usr/lib/x86_64-linux-gnu)

trace() { # trace NAME [VARIABLE=VALUE...]: the system calls of the program
	local name=$1
	shift
	# The variables are for the program, not for strace.
	local options=()
	for variable in "$@"; do options+=(-E "$variable"); done
	if ! strace -f -o "$scratch/$name" "${options[@]}" "${program[@]}" >/dev/null 2>"$scratch/error"; then
		grep -qi 'ptrace' "$scratch/error" && { echo 'SKIP: strace may not trace here'; exit 77; }
		cat "$scratch/error"
		exit 1
	fi
	awk '{ sub(/^[0-9]+ +/, ""); sub(/\(.*/, ""); if ($0 ~ /^[a-z_0-9]+$/) print }' "$scratch/$name" |
		sort | uniq -c | awk '{ print $2, $1 }' >"$scratch/$name.calls"
}

trace plain
trace preloaded "LD_PRELOAD=$library"
bad=0
if grep -E '^[0-9]+ +(clone|clone3|fork|vfork)\(' "$scratch/preloaded"; then
	echo 'a thread or process was started'
	bad=1
fi
if grep -E 'open(at)?\(.*(/dev/dri|/dev/accel|/dev/nvidia|/dev/kfd|libze|level_zero|libcuda|/sys/class|/sys/dev|/sys/bus)' "$scratch/preloaded"; then
	echo 'a device or a driver was looked for'
	bad=1
fi
grep -q "libgpuhost" "$scratch/preloaded" || { echo 'the library was not even loaded'; bad=1; }

# Kinds of calls that the program does not make by itself.
join -v 2 "$scratch/plain.calls" "$scratch/preloaded.calls" | awk '{ print $1 }' >"$scratch/new"
jemalloc=$(ldconfig -p | awk '/libjemalloc\.so\.2 .*x86-64/ && !seen++ { print $NF }')
if [[ -n $jemalloc ]]; then
	trace jemalloc "LD_PRELOAD=$jemalloc"
	join -v 2 "$scratch/plain.calls" "$scratch/jemalloc.calls" | awk '{ print $1 }' >"$scratch/new_jemalloc"
	printf 'new kinds of system calls: %s; with jemalloc: %s\n' "$(paste -sd ' ' "$scratch/new")" \
		"$(paste -sd ' ' "$scratch/new_jemalloc")"
fi
while IFS= read -r call; do
	case $call in
	# jemalloc's look at the kernel's settings, start-up's at the processors and at stderr.
	open | openat | read | close | readlink | sched_getaffinity | newfstatat | fstat | madvise | munmap | mmap) ;;
	*)
		printf 'a call that nothing explains: %s\n' "$call"
		bad=1
		;;
	esac
done <"$scratch/new"
printf 'calls: %d without, %d with\n' "$(wc -l <"$scratch/plain")" "$(wc -l <"$scratch/preloaded")"
exit "$bad"
