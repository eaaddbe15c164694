#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# All tests, from a bare machine, in one command: installs what is missing,
# builds, runs each label, then the sanitizer builds. Its last line is
#     N passed, N failed, N skipped
# over all runs; a skip is no pass, and its reason stands above that line.
# Arguments name labels (unit, sim, programs, intel, ...) or sanitizer builds
# (asan, tsan); without any, everything runs. Exit status 1 if a test failed.
set -euo pipefail

root=$(readlink -f -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..")
cd -- "$root"
case ${1:-} in
-*) printf 'usage: scripts/test.sh [LABEL | asan | tsan ...]\n' >&2; exit 2 ;;
esac

work=$(mktemp -d)
jobs=$(nproc)
passed=0 failed=0 skipped=0
: >"$work/reasons"
: >"$work/table"

finish() { # the last lines, whatever happened before
	local status=$?
	if ((status != 0 && failed == 0)); then
		printf 'broken off with status %d\n' "$status"
		failed=1
	fi
	printf '\n%-10s | %6s | %6s | %7s | %s\n' run passed failed skipped seconds
	cat "$work/table"
	if [[ -s $work/reasons ]]; then
		printf '\n'
		cat "$work/reasons"
	fi
	rm -rf "$work"
	printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
	((failed == 0)) || exit 1
	exit 0
}
trap finish EXIT

# count RUN FILE: adds ctest's report (JUnit XML) to the sums. A test that ctest
# could not start at all counts as failed.
count() {
	local run=$1 file=$2 seconds=$3 kind test reason p=0 f=0 s=0
	while IFS=$'\t' read -r kind test reason; do
		case $kind in
		passed) p=$((p + 1)) ;;
		skipped)
			s=$((s + 1))
			printf 'skipped %s %s: %s\n' "$run" "$test" "$reason" >>"$work/reasons"
			;;
		*)
			f=$((f + 1))
			printf 'FAILED  %s %s\n' "$run" "$test" >>"$work/reasons"
			;;
		esac
	done < <(awk '
		function attribute(name,    at) {
			at = match($0, " " name "=\"[^\"]*\"")
			return at ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : ""
		}
		/<testcase / { test = attribute("name"); kind = attribute("status") == "run" ? "passed" : "failed"; reason = ""; last = "" }
		/<failure/ { kind = "failed" }
		/<skipped/ { if (kind != "failed" || attribute("message") ~ /SKIP_/) kind = "skipped"; else kind = "failed" }
		/<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
		inside {
			line = $0
			sub(/<\/system-out>.*/, "", line)
			if (line ~ /[^ \t]/) last = line
			if (line ~ /^[ \t]*skip(ped)?[: ]/ || line ~ /SKIP/) reason = line
		}
		/<\/system-out>/ { inside = 0 }
		/<\/testcase>/ {
			if (reason == "") reason = last
			gsub(/&lt;/, "<", reason); gsub(/&gt;/, ">", reason); gsub(/&quot;/, "\"", reason)
			gsub(/&apos;/, "\047", reason); gsub(/&amp;/, "\\&", reason); sub(/^[ \t]*skip(ped)?: */, "", reason)
			printf "%s\t%s\t%s\n", kind, test, reason
		}' "$file")
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%-10s | %6d | %6d | %7d | %d\n' "$run" "$p" "$f" "$s" "$seconds" >>"$work/table"
}

one_failure() { # one_failure RUN WHAT: something that is not a test went wrong
	failed=$((failed + 1))
	printf '%-10s | %6d | %6d | %7d |\n' "$1" 0 1 0 >>"$work/table"
	printf 'FAILED  %s %s\n' "$1" "$2" >>"$work/reasons"
}

build() { # build PRESET
	printf '== building %s\n' "$1"
	if ! { cmake --preset "$1" && cmake --build --preset "$1" --parallel "$jobs"; } >"$work/build.log" 2>&1; then
		tail -n 60 "$work/build.log"
		one_failure "$1" "the preset $1 does not build"
		return 1
	fi
}

# run NAME FOLDER MUST CTEST-ARGUMENT...: MUST=1 when having no such test is wrong.
run() {
	local name=$1 folder=$2 must=$3 start=$SECONDS
	shift 3
	if [[ $(ctest --test-dir "$folder" "$@" -N | sed -n 's/^Total Tests: //p') == 0 ]]; then
		((must == 0)) || one_failure "$name" "there is no test of that name"
		return 0
	fi
	printf '== %s\n' "$name"
	rm -f "$work/junit.xml"
	ctest --test-dir "$folder" "$@" --parallel "$jobs" --timeout 900 --output-on-failure \
		--output-junit "$work/junit.xml" 2>&1 </dev/null | grep -vE '^(Internal ctest|Errors while running|Output from these tests are in|Use "--rerun-failed)' || true
	if [[ -s $work/junit.xml ]]; then
		count "$name" "$work/junit.xml" $((SECONDS - start))
	else
		one_failure "$name" "ctest wrote no report"
	fi
}

run_sanitizer() { # run_sanitizer PRESET MUST: its unit tests, and those labelled for it
	if ! cmake --list-presets 2>/dev/null | grep -qF "\"$1\""; then
		(($2 == 0)) || one_failure "$1" "there is no preset $1"
		return 0
	fi
	build "$1" || return 0
	run "$1" "build-$1" "$2" -L "^(unit|$1)\$"
}

scripts/install-packages test

asked=("$@")
labels=() sanitizers=()
for label in "${asked[@]}"; do
	case $label in
	asan | tsan) sanitizers+=("$label") ;;
	*) labels+=("$label") ;;
	esac
done
must=1
if ((${#asked[@]} == 0)); then
	labels=(unit sim programs intel)
	sanitizers=(asan tsan)
fi

if ((${#labels[@]} > 0)) && build default; then
	rm -f build/tests/programs/rows
	before= # a test with two labels runs once
	for label in "${labels[@]}"; do
		run "$label" build "$must" -L "^$label\$" ${before:+-LE "^($before)\$"}
		before+=${before:+|}$label
	done
	((${#asked[@]} > 0)) || run other build 0 -LE "^($before)\$"
	if [[ -s build/tests/programs/rows ]]; then
		printf '\n%-14s | %-16s | %-16s | %s\n' program without with verdict
		sort build/tests/programs/rows
	fi
fi
for sanitizer in "${sanitizers[@]}"; do
	run_sanitizer "$sanitizer" "$must"
done
