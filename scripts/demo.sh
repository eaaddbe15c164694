#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# From a bare Debian 12 to the main job: installs what is missing, builds, then
# wraps arrays of each size for the GPU and runs kernels on them in place, with
# libgpuhost and without, from C, Python (NumPy) and Julia; and a = sin(a) * 2.
set -euo pipefail

usage() {
	cat <<'HELP'
usage: scripts/demo.sh [--floats N] [--simulated] [c] [python] [julia]

Runs the demo in the named languages, else in all three. A GPU that the Level
Zero loader finds is used; otherwise, or with --simulated, the project's
simulated driver, which runs kernels on the CPU.

  --floats N    elements of a = sin(a) * 2 (100000000; a multiple of 256 runs best)
HELP
}

root=$(readlink -f -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..")
languages=()
arguments=()
while (($# > 0)); do
	case $1 in
	--floats) arguments+=("$1" "$2"); shift ;;
	--simulated) arguments+=("$1") ;;
	c | python | julia) languages+=("$1") ;;
	--help | -h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
((${#languages[@]} > 0)) || languages=(c python julia)

cd -- "$root"
scripts/install-packages demo
printf 'building ...\n'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { cmake --preset default && cmake --build --preset default --parallel "$(nproc)"; } >"$log" 2>&1; then
	tail -n 40 "$log" >&2
	exit 1
fi

status=0
for language in "${languages[@]}"; do
	printf '\n== %s\n' "$language"
	answer=0
	tests/demo/table.sh --language "$language" "${arguments[@]}" || answer=$?
	((answer == 0 || answer == 77)) || status=1
	((answer != 77)) || printf '(left out)\n'
done
if ((status == 0)); then
	printf '\nEvery array was wrapped and its result is right.\n'
else
	printf '\nNot every array was wrapped and right.\n'
fi
exit "$status"
