#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The benchmark, from a bare machine, in one command: installs what is missing,
# builds, measures libgpuhost against glibc, jemalloc, mimalloc and tcmalloc, and
# the GPU side against the simulated driver. Prints tables and lines
#     FIGURE name value unit
set -euo pipefail

usage() {
	cat <<'HELP'
usage: scripts/bench.sh [PART ...] [--quick] [--save] [OPTION ...]

  malloc    stress programs and real ones under each allocator; then the same
            before and after a GPU context exists (attached), and startup
  stress    the stress programs alone
  programs  the real programs alone
  wraps     a wrap, covered or not, few or a million; what the door adds
  import    number, slack and cost of imports; time until all is visible
  memory    resident memory over a long churn, and after everything is freed
  all       everything (the default)

  --quick           a fifth of the work
  --save            raw results (JSON) and the chart (SVG) into tests/bench/results
  --label NAME      with --save: results of another machine, beside the others, no chart
  --threads 1,2,16  thread counts of the stress programs
  --rounds N        interleaved rounds (5)
  --only NAMES      these programs only
  --library FILE    another build of libgpuhost.so
  --variant NAME:GPUHOST_X=VALUE,...   one more column: these settings
HELP
}

root=$(readlink -f -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..")
cd -- "$root"
for word in "$@"; do
	case $word in
	-h | --help) usage; exit 0 ;;
	esac
done

packages=(libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 redis-server redis-tools sqlite3 z3 python3
	python3-numpy python3-matplotlib perl gcc util-linux)
missing=()
for package in "${packages[@]}"; do
	command -v dpkg-query >/dev/null || break
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || missing+=("$package")
done
scripts/install-packages demo
if ((${#missing[@]} > 0)); then
	printf 'installing %s\n' "${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 # redis-server's service is not to be started
	apt-get -q -o DPkg::Lock::Timeout=300 update >/dev/null 2>&1 </dev/null || true
	if ! apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 install "${missing[@]}" \
		>/dev/null 2>&1 </dev/null; then
		printf 'please install: %s\n' "${missing[*]}" >&2
		exit 1
	fi
fi

build=${GPUHOST_BENCH_BUILD:-build}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo && cmake --build "$build" --parallel "$(nproc)"; } >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	exit 1
fi
/usr/bin/python3 tests/bench/bench.py --build "$build" "$@"
