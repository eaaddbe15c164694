#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a program without and with the library; what it prints and its exit
# status must be equal. Usage: both.sh LIBRARY PROGRAM [ARGS...]
# A status of 77 without the library is a skip, and the program has said why.
set -euo pipefail

library=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

observe() { # observe NAME COMMAND...: its output, and its status on the last line
	local name=$1 status=0
	shift
	"$@" >"$scratch/$name" 2>"$scratch/$name.err" || status=$?
	printf 'exit status %d\n' "$status" >>"$scratch/$name"
	printf '%d' "$status" >"$scratch/$name.status"
}

observe plain "$@"
if [[ $(<"$scratch/plain.status") == 77 ]]; then
	cat "$scratch/plain"
	exit 77
fi
observe preloaded env LD_PRELOAD="$library" "$@"
if ! diff -u --label without --label with "$scratch/plain" "$scratch/preloaded" >"$scratch/diff"; then
	head -n 60 "$scratch/diff"
	printf 'stderr with the library:\n'
	head -n 20 "$scratch/preloaded.err"
	exit 1
fi
if ! diff -u --label without --label with "$scratch/plain.err" "$scratch/preloaded.err"; then
	printf 'stderr differs\n'
	exit 1
fi
# A program that could print nothing would always be equal.
(($(wc -l <"$scratch/plain") > 1)) || { printf 'the program printed nothing\n'; exit 1; }
printf '%d lines equal, exit status %d\n' "$(wc -l <"$scratch/plain")" "$(<"$scratch/plain.status")"
