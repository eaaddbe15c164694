#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a command in a mount namespace of its own, with /proc and /sys read-only or not there.
# Usage: fs.sh read-only|missing COMMAND...
set -euo pipefail

if ! unshare -m true 2>/dev/null; then
	echo 'SKIP: no new mount namespace allowed here (needs root)'
	exit 77
fi
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare -m bash -c '
	set -e
	how=$1
	shift
	for folder in /proc /sys; do
		if [[ $how == missing ]]; then
			mount -t tmpfs none $folder
		else
			mount --bind $folder $folder
			mount -o remount,bind,ro $folder
		fi
	done
	if [[ $how == missing ]]; then
		[[ ! -e /proc/self && ! -e /sys/kernel ]]
	else
		[[ -e /proc/self ]] && ! { echo 0 >/proc/self/oom_score_adj; } 2>/dev/null
	fi
	exec "$@"' bash "$@"
