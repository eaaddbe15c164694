#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every shell script and program file is clean under shellcheck.
# Argument: shellcheck.
set -euo pipefail

cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
mapfile -t files < <(
	grep -lrE '^#!.*(/| )(ba)?sh$' scripts tests .ci
	find tests -name '*.prog'
)
((${#files[@]} > 0)) || { printf 'no scripts found\n' >&2; exit 1; }
# What a script sources from the system is not ours to check.
"$1" --exclude=SC1091 "${files[@]}"
printf '%d scripts are clean\n' "${#files[@]}"
