#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs every case of wraps_cases, each in a process of its own, with the environment given:
#     cases_all.sh PROGRAM KERNELS
# Prints the cases that these drivers skip, and why. Exit status: 0 all that ran are right, 1 not.
set -euo pipefail

program=$1
kernels=$2
preload=${LD_PRELOAD:-}
unset LD_PRELOAD # this shell and its tools do without
failed=0
run=0
while read -r name; do
	strict=abort
	page_check=always
	case $name in
	stale | stack) strict=refuse ;; # the driver is asked about memory that is gone
	unseen) strict=refuse page_check=off ;;
	esac
	status=0
	output=$(LD_PRELOAD=$preload GHSIM_STRICT=$strict GHSIM_PAGE_CHECK=$page_check \
		timeout 60 "$program" "$kernels" "$name" 2>&1) || status=$?
	case $status in
	0) run=$((run + 1)) ;;
	77) printf '%s: %s\n' "$name" "$output" ;;
	*)
		printf 'FAILED %s (status %d): %s\n' "$name" "$status" "$output"
		failed=1
		;;
	esac
done < <("$program" --list)
printf '%d cases\n' "$run"
((run > 0)) || failed=1
exit "$failed"
