#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the demo program in each size, with libgpuhost preloaded and without, each
# in a process of its own (a driver that aborts takes only that one with it), and
# prints the table, then the times of a = sin(a) * 2. A machine with a GPU that
# the Level Zero loader finds is used; otherwise the simulated driver, which runs
# kernels on the CPU, and whose times are therefore no GPU's.
# Exit status: 0 every array was wrapped and right with libgpuhost, 1 not, 77 skipped.
set -euo pipefail

usage='usage: table.sh [--build DIR] [--library FILE] [--language c|python|julia] [--floats N] [--simulated] [--sizes "BYTES ..."]'
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(readlink -f -- "$here/../..")
build=$root/build
language=c
floats=100000000
simulated=''
library=''
asked_sizes=()
while (($# > 0)); do
	case $1 in
	--build) build=$(readlink -f -- "$2"); shift ;;
	--library) library=$(readlink -f -- "$2"); shift ;;
	--language) language=$2; shift ;;
	--floats) floats=$2; shift ;;
	--simulated) simulated=1 ;;
	--sizes) read -ra asked_sizes <<<"$2"; shift ;;
	*) printf '%s\n' "$usage" >&2; exit 2 ;;
	esac
	shift
done
library=${library:-$build/preload/libgpuhost.so}
skip() { printf 'skip: %s\n' "$*" >&2; exit 77; }
[[ -f $library ]] || { printf 'no library at %s\n' "$library" >&2; exit 1; }

sizes=(16 256 2048 4096 40960 4194304)
case $language in
c) program=("$build/tests/demo/gpuhost-demo") prefix= ;;
python)
	/usr/bin/python3 -c 'import numpy' 2>/dev/null || skip 'python3-numpy is not installed'
	program=(/usr/bin/python3 "$here/demo.py") prefix=python_
	;;
julia)
	julia=$("$root/tests/programs/julia.sh") || exit
	program=("$julia" --startup-file=no "$here/demo.jl") prefix=julia_
	;;
*) printf '%s\n' "$usage" >&2; exit 2 ;;
esac
while read -r variable; do unset "$variable"; done < <(compgen -A export GPUHOST_)
unset LD_PRELOAD

((${#asked_sizes[@]} == 0)) || sizes=("${asked_sizes[@]}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- which GPU ----------------------------------------------------------------
kernels=$build/tests/demo/spirv
if [[ -z $simulated && -d $kernels ]] && "$build/tests/demo/gpuhost-demo" case "$kernels" 16 1 >"$work/probe" 2>&1; then
	printf 'GPU: %s\n' "$(sed -n 's/^DEVICE //p' "$work/probe")"
else
	driver=$build/tests/sim/libze_sim_gpu.so
	kernels=$build/tests/sim/gh_sim_kernels.so
	[[ -f $driver && -f $kernels ]] || { printf 'no GPU here, and no simulated driver at %s\n' "$driver" >&2; exit 1; }
	export ZE_ENABLE_ALT_DRIVERS=$driver
	simulated=1
	printf 'GPU: none found; the simulated driver runs the kernels on the CPU\n'
fi

# ---- the table ------------------------------------------------------------------
name_of() { # name_of BYTES
	if (($1 % 1048576 == 0)); then printf '%d MB' $(($1 / 1048576));
	elif (($1 % 1024 == 0)); then printf '%d KB' $(($1 / 1024));
	else printf '%d B' "$1"; fi # sizes that are no round number are told in bytes
}

field() { sed -nE "s/^CASE .*\<$2 ([^ ]+).*/\1/p" "$1"; }

# result SIZE COUNT PRELOAD: the cell; the numbers stay in $work/out.
result() {
	local size=$1 count=$2 preload=$3 status=0 wrapped right
	# Without libgpuhost the simulated driver counts; a real one does as it does.
	{ env ${preload:+LD_PRELOAD="$preload"} ${simulated:+GHSIM_STRICT=$([[ -n $preload ]] && echo abort || echo refuse)} \
		timeout 120 "${program[@]}" case "$kernels" "$size" "$count" >"$work/out" 2>"$work/err"; } 2>/dev/null || status=$?
	wrapped=$(field "$work/out" wrapped)
	right=$(field "$work/out" right)
	case $status in
	0 | 4)
		printf '%s/%s' "$wrapped" "$count"
		[[ $right == "$wrapped" ]] || printf ', %s right' "$right"
		[[ $status == 0 ]] || printf ' (wrong)'
		;;
	134) printf 'abort%s' "$(sed -nE 's/^ABORT after_wraps ([0-9]+)/ after \1/p' "$work/out")" ;;
	124) printf 'hang' ;;
	*) printf 'exit %s' "$status" ;;
	esac
	printf '%d' "$status" >"$work/status"
}

bad=0
printf '%-6s | %-14s | %s\n' size wrapped 'without libgpuhost'
for size in "${sizes[@]}"; do
	count=100
	((size < 1048576)) || count=20
	without=$(result "$size" "$count" '')
	plain=$(field "$work/out" wrapped)
	with=$(result "$size" "$count" "$library")
	wrapped=$(field "$work/out" wrapped)
	right=$(field "$work/out" right)
	name=$(name_of "$size")
	printf '%-6s | %-14s | %s\n' "$name" "$with" "$without"
	{
		printf "FIGURE ${prefix}%s_${name// /} %d of_$count\n" wrapped "${wrapped:-0}" \
			right "${right:-0}" without_libgpuhost "${plain:-0}"
	} >>"$work/figures"
	if [[ $(<"$work/status") != 0 || $wrapped != "$count" || $right != "$count" ]]; then
		bad=1
		sed 's/^/    /' "$work/err" | tail -n 5
		sed -n 's/^CASE .*first_error /    first error of a wrap: /p' "$work/out"
	fi
done
cat "$work/figures"

# ---- a = sin(a) * 2 ---------------------------------------------------------------
# timed NAME LABEL MODE PRELOAD: runs it, prints its time and its figure.
timed() {
	local status=0 time
	env ${4:+LD_PRELOAD="$4"} ${simulated:+GHSIM_PLAIN_COPY=1} \
		"${program[@]}" broadcast "$kernels" "$floats" "$3" >"$work/out" 2>"$work/err" || status=$?
	time=$(sed -n 's/^TIME //p' "$work/out")
	if ((status == 0)); then
		printf '%-36s | %s ms\n' "$2" "$time"
		printf 'FIGURE %s %s ms\n' "$1" "$time" >>"$work/figures"
		[[ $3 != in_place ]] || sed -n 's/^WRAP \(.*\)/FIGURE broadcast_wrap \1 ms/p' "$work/out" >>"$work/figures"
	else
		printf '%-36s | failed with status %d\n' "$2" "$status"
		sed 's/^/    /' "$work/err" | tail -n 3
		bad=1
	fi
}

if [[ $language == c && $floats != 0 && ${#asked_sizes[@]} == 0 ]]; then
	printf '\na = sin(a) * 2 over %s floats%s\n' "$floats" "${simulated:+ (the kernel runs on the CPU: no GPU times)}"
	: >"$work/figures"
	timed broadcast_in_place 'in place, with libgpuhost' in_place "$library"
	timed broadcast_copies 'with copies, without libgpuhost' copies ''
	timed broadcast_copies_visible 'with copies, with libgpuhost' copies "$library"
	timed broadcast_cpu 'on the CPU' cpu ''
	cat "$work/figures"
	printf 'FIGURE broadcast_elements %s floats\n' "$floats"
fi
exit "$bad"
