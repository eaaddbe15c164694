#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Each way of ends.c with the library: the status must be the expected one, and nobody may say
# anything. Usage: ends.sh LIBRARY PROGRAM KERNELS CLIENT
set -euo pipefail

library=$1
program=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
bad=0
count=0
while read -r way expected; do
	status=0
	{ LD_PRELOAD=$library "$program" "$way" "$@" >out 2>err; } 2>/dev/null || status=$?
	count=$((count + 1))
	if [[ $status != "$expected" || -s err || -s out ]]; then
		printf '%s: status %d instead of %d\n' "$way" "$status" "$expected"
		cat out err
		bad=1
	fi
done < <("$program" list)
((count > 10)) || bad=1
printf '%d ways to end\n' "$count"
exit "$bad"
