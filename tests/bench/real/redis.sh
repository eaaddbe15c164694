#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A redis server under the allocator in BENCH_PRELOAD, and redis-benchmark, which is not, over a
# socket: redis.sh FOLDER PERCENT. Debian's server links jemalloc; for glibc's malloc the caller
# preloads libc itself.
set -euo pipefail

folder=$(mktemp -d "$1/redis.XXXXXX")
requests=$(($2 * 140))
server=''
cleanup() {
	[[ -z $server ]] || kill "$server" 2>/dev/null || true
	rm -rf "$folder"
}
trap cleanup EXIT

LD_PRELOAD=${BENCH_PRELOAD:-} redis-server --port 0 --unixsocket "$folder/s" --save '' --dir "$folder" \
	>/dev/null 2>&1 &
server=$!
for ((i = 0; i < 200; i++)); do
	[[ ! -S $folder/s ]] || break
	sleep 0.01
done
redis-benchmark -s "$folder/s" -q -P 32 -c 20 -n "$requests" -r 100000 -d 120 -t set,get,incr,lpush,sadd,hset,zadd,lrange_100 \
	>/dev/null
redis-cli -s "$folder/s" shutdown nosave >/dev/null 2>&1 || true
wait "$server"
server=''
