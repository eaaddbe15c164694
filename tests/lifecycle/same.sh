#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a program under a limit without and with the library. Output and exit status must be equal;
# on stderr the library may say one line, that the GPU side stepped back, and nobody anything else.
# Usage: same.sh LIBRARY COMMAND... with LAUNCHER -- PROGRAM ARGS: only what follows the last
# `--` is preloaded (without a `--`: all of it). Status 77 without the library is a skip.
set -euo pipefail

library=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
before=() after=("$@")
for ((i = $#; i > 0; i--)); do
	if [[ ${!i} == -- ]]; then
		before=("${@:1:i}")
		after=("${@:i+1}")
		break
	fi
done
run() { # run NAME [PRELOAD]
	local status=0
	"${before[@]}" /usr/bin/env ${2:+LD_PRELOAD="$2"} "${after[@]}" >"$scratch/$1" 2>"$scratch/$1.err" || status=$?
	printf 'exit status %d\n' "$status" >>"$scratch/$1"
	printf '%d' "$status" >"$scratch/status"
}
run plain
if [[ $(<"$scratch/status") == 77 ]]; then
	cat "$scratch/plain" "$scratch/plain.err"
	exit 77
fi
run preloaded "$library"
lines=$(grep -c '^gpuhost: ' "$scratch/preloaded.err" || true)
grep -v '^gpuhost: ' "$scratch/preloaded.err" >"$scratch/others" || true
if ! diff -u "$scratch/plain" "$scratch/preloaded" || ! diff -u "$scratch/plain.err" "$scratch/others" || ((lines > 1)); then
	printf 'stderr with the library:\n'
	head -n 20 "$scratch/preloaded.err"
	exit 1
fi
(($(wc -l <"$scratch/plain") > 1)) || { printf 'the program printed nothing\n'; exit 1; }
cat "$scratch/preloaded.err"
printf '%d lines equal\n' "$(wc -l <"$scratch/plain")"
