#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Line coverage of allocator/ and preload/ together: builds with --coverage in a folder of its
# own, runs the unit, sim and injection tests and some programs with the instrumented library
# preloaded, and prints gcovr's table by file, then
#     FIGURE line_coverage N percent
# Exit status 1 below 90 %, or when a run failed. Arguments: the build folder
# (default: build-coverage), and --uncovered to list the lines that no run reached.
set -euo pipefail

root=$(readlink -f -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..")
folder=$root/build-coverage
uncovered=0
for argument in "$@"; do
	case $argument in
	--uncovered) uncovered=1 ;;
	-*) printf 'usage: scripts/coverage.sh [--uncovered] [BUILD-FOLDER]\n' >&2; exit 2 ;;
	*) folder=$(readlink -m -- "$argument") ;;
	esac
done
wanted=90
failed=0

"$root/scripts/install-packages" coverage

# Atomic counters, since threads count too. A process adds its counts to the files at its exit;
# gcov then calls malloc and stdio, which is fine: the library serves until the very end.
flags='--coverage -fprofile-update=atomic -O1 -g'
cmake -S "$root" -B "$folder" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="$flags" \
	-DCMAKE_CXX_FLAGS_DEBUG="$flags" -DGPUHOST_FUZZ_SECONDS=1 >/dev/null
cmake --build "$folder" --parallel "$(nproc)" >"$folder/build.log" 2>&1 || {
	tail -n 40 "$folder/build.log"
	exit 1
}
find "$folder" -name '*.gcda' -delete

without='' # a pattern of the tests that are left out
leave_out() { # leave_out WHY PATTERN...
	local pattern
	for pattern in "${@:2}"; do
		without+="${without:+|}^$pattern"
	done
}
leave_out 'judge the sources, not the library' check_ layers style
leave_out 'judge the simulated driver' sim_selftest
leave_out 'repeat what another test reaches, with another driver' 'inject_direct_ze.*_npu'
leave_out 'programs that a full run has to fetch or to compile first; they reach nothing that others do not' demo_
leave_out 'gcov writes files at each exit: system calls, time, and files that a limit forbids' abi_quiet abi_startup_time abi_under lifecycle_few_files
leave_out 'gcov calls malloc and mmap through the linkage table' abi_symbols
leave_out 'gcov counts behind each call that may throw, so that none is a jump; this test needs the jump' abi_operators_plugin_static
ctest --test-dir "$folder" -L '^(unit|sim)$' -E "$without" --parallel "$(nproc)" --output-on-failure \
	--timeout 600 >"$folder/ctest.log" 2>&1 || failed=1
grep -E 'tests passed|\*\*\*|Not Run' "$folder/ctest.log" || true

preload=$folder/preload/libgpuhost.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() { # run WHAT COMMAND...: with the library, its output to a file
	local what=$1
	shift
	if ! env LD_PRELOAD="$preload" "$@" >"$work/out" 2>&1 </dev/null; then
		printf 'coverage: %s failed: %s\n' "$what" "$(tail -n 3 "$work/out")"
		failed=1
	fi
}
for form in 1 names markdown version; do
	run "help $form" env GPUHOST_HELP=$form true
done
run statistics env GPUHOST_STATS="$work/stats-%p" GPUHOST_LOG=debug sort "$root/README.md"
run 'statistics nowhere' env GPUHOST_STATS=/nonexistent/%p true
run 'unknown option' env GPUHOST_NONE=1 GPUHOST_DECAY_MS=x GPUHOST_LIMIT=1Q GPUHOST_LOG=what GPUHOST_BACKEND=x true
run excluded env GPUHOST_EXCLUDE=true:false true
run disabled env GPUHOST_ENABLE=0 ls -l "$root"
# shellcheck disable=SC2016 # for the inner shell
run shell bash -c 'for i in 1 2 3; do x=$(echo $i | sed s/1/2/); done; echo "$x"'
run python python3 -c 'import json, threading, subprocess
[t.start() for t in [threading.Thread(target=lambda: json.dumps(list(range(20000)))) for _ in range(4)]]
subprocess.run(["true"], check=True)'
run compiler gcc -x c -c -O2 "$root/allocator/page_runs.c" -D_GNU_SOURCE -I"$root" -o "$work/o"
run compress sh -c "tar -C '$root' -cf - allocator preload | xz -T2 >'$work/xz'"
for setting in GPUHOST_EXCLUSIVE_PAGES=1 GPUHOST_MIN_SIZE=1K GPUHOST_HUGEPAGES=1 GPUHOST_DECAY_MS=0 GPUHOST_ARENAS=3; do
	run "$setting" env "$setting" python3 -c 'x = [bytes(i) for i in range(3000)]; y = bytes(30000000); del x, y'
done

gcovr --root "$root" --object-directory "$folder" --filter "$root/allocator/" --filter "$root/preload/" \
	--gcov-ignore-parse-errors --exclude-unreachable-branches --json "$work/coverage.json" "$folder" >/dev/null 2>"$work/gcovr.log" || {
	tail -n 5 "$work/gcovr.log"
	exit 1
}
gcovr --root "$root" --add-tracefile "$work/coverage.json"
gcovr --root "$root" --add-tracefile "$work/coverage.json" --json-summary "$work/summary.json" >/dev/null
percent=$(sed -n 's/.*"line_percent": \([0-9.]*\).*/\1/p' "$work/summary.json" | tail -n 1)
if ((uncovered)); then
	python3 - "$work/coverage.json" "$root" <<'LINES'
import json, sys
for file in json.load(open(sys.argv[1], encoding="utf-8"))["files"]:
    text = open(f"{sys.argv[2]}/{file['file']}", encoding="utf-8").read().splitlines()
    hits = {}
    for line in file["lines"]:
        if not line.get("gcovr/noncode"):
            hits[line["line_number"]] = hits.get(line["line_number"], 0) + line["count"]
    for number, count in sorted(hits.items()):
        if count == 0:
            print(f"{file['file']}:{number}: {text[number - 1].strip()}")
LINES
fi
printf 'FIGURE line_coverage %s percent\n' "$percent"
((failed == 0)) || exit 1
awk -v have="$percent" -v want="$wanted" 'BEGIN { exit !(have >= want) }'
