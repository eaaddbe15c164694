#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A command under another policy of the kernel for memory that is promised and not there. The
# policy is the whole machine's: a second process puts it back, also when this one is killed. With policy 2 there is room for ROOM_MIB more than is promised now.
# Usage: overcommit.sh 1|2 ROOM_MIB COMMAND...
set -euo pipefail

policy=$1
room=$2
shift 2
file=/proc/sys/vm/overcommit_memory
limit=/proc/sys/vm/overcommit_kbytes
ratio=/proc/sys/vm/overcommit_ratio
was=$(<$file)
was_limit=$(<$limit)
was_ratio=$(<$ratio)
if ! { printf '%s' "$was" >$file && printf '%s' "$was_limit" >$limit; } 2>/dev/null; then
	echo "SKIP: the policy of overcommitting cannot be set here (vm.overcommit_memory is read-only)"
	exit 77
fi
# Writing one of the two limits clears the other.
put_back() {
	printf '%s' "$was" >$file
	if [[ $was_limit != 0 ]]; then printf '%s' "$was_limit" >$limit; else printf '%s' "$was_ratio" >$ratio; fi
}
# Puts back when the pipe's other end closes: with this process, however it ends.
exec 9> >(
	trap '' INT TERM HUP
	cat >/dev/null
	put_back
)
keeper=$!
if [[ $policy == 2 ]]; then
	promised=$(awk '/^Committed_AS:/ { print $2 }' /proc/meminfo)
	swap=$(awk '/^SwapTotal:/ { print $2 }' /proc/meminfo)
	wanted=$((promised + room * 1024 - swap))
	printf '%d' $((wanted > 65536 ? wanted : 65536)) >$limit
fi
printf '%d' "$policy" >$file
status=0
"$@" 9>&- || status=$?
exec 9>&-
wait "$keeper" || true
exit "$status"
