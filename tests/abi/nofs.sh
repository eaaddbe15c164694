#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A program in a mount namespace without /proc and /sys, compared as both.sh does.
# Usage: nofs.sh LIBRARY PROGRAM [ARGS...]
set -euo pipefail

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
if ! unshare -m true 2>/dev/null; then
	echo 'SKIP: no new mount namespace allowed here (needs root)'
	exit 77
fi
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare -m bash -c '
	set -e
	mount -t tmpfs none /proc
	mount -t tmpfs none /sys
	[[ ! -e /proc/self && ! -e /sys/kernel ]]
	exec "$@"' bash "$here/both.sh" "$@"
