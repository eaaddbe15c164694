#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What a run under the library says and how it ends, compared with what is expected.
# Usage: check.sh LIBRARY FOLDER_OF_PROGRAMS CASE
set -euo pipefail

library=$1
programs=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0

# expect STATUS STDOUT STDERR COMMAND...: runs it with the preload; words of the form NAME=VALUE
# before the command set variables.
expect() {
	local want_status=$1 want_out=$2 want_err=$3 status=0
	shift 3
	env -u GPUHOST_LOG LD_PRELOAD="$library" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
	local out err
	out=$(<"$scratch/out")
	err=$(<"$scratch/err")
	if [[ $status != "$want_status" || $out != "$want_out" || $err != "$want_err" ]]; then
		printf '%s\n  status %s, wanted %s\n  stdout: %s\n  wanted: %s\n  stderr: %s\n  wanted: %s\n' \
			"$*" "$status" "$want_status" "$out" "$want_out" "$err" "$want_err"
		bad=1
	fi
}

says() { # says LINE VARIABLE=VALUE...: exactly this on stderr, and the program runs
	local line=$1
	shift
	expect 0 'hello' "$line" "$@" /bin/echo hello
}

case $3 in
double_free)
	expect 0 'handed out twice' '' "$programs/misuse_double_free"
	;;
options)
	says '' GPUHOST_LOG=debug
	says '' GPUHOST_MIN_SIZE=64K GPUHOST_DECAY_MS=0 GPUHOST_HUGEPAGES=yes GPUHOST_EXCLUSIVE_PAGES=on
	says '' GPUHOST_IMPORT= GPUHOST_MIN_SIZE= GPUHOST_STATS= GPUHOST_EXCLUDE=
	says "gpuhost: GPUHOST_MIN_SIZE='abc' is not understood (0 to 1G); using 0" GPUHOST_MIN_SIZE=abc
	says "gpuhost: GPUHOST_MIN_SIZE='12Q' is not understood (0 to 1G); using 0" GPUHOST_MIN_SIZE=12Q
	says "gpuhost: GPUHOST_MIN_SIZE='2G' is not understood (0 to 1G); using 0" GPUHOST_MIN_SIZE=2G
	says "gpuhost: GPUHOST_MIN_SIZE='99999999999999999999' is not understood (0 to 1G); using 0" \
		GPUHOST_MIN_SIZE=99999999999999999999
	says "gpuhost: GPUHOST_MIN_SIZE=' 1' is not understood (0 to 1G); using 0" 'GPUHOST_MIN_SIZE= 1'
	says "gpuhost: GPUHOST_MIN_SIZE='16777216T' is not understood (0 to 1G); using 0" GPUHOST_MIN_SIZE=16777216T
	says "gpuhost: GPUHOST_ENABLE='maybe' is not understood (0, 1); using 1" GPUHOST_ENABLE=maybe
	says "gpuhost: GPUHOST_ENABLE='2' is not understood (0, 1); using 1" GPUHOST_ENABLE=2
	says "gpuhost: GPUHOST_IMPORT='alwa_' is not understood (auto, always, never); using auto" GPUHOST_IMPORT=alwa_
	says "gpuhost: GPUHOST_LOG='9' is not understood (none, error, warning, info, debug); using warning" GPUHOST_LOG=9
	says 'gpuhost: GPUHOST_FOO is not an option of libgpuhost; ignored' GPUHOST_FOO=1
	says 'gpuhost: GPUHOST_min_size is not an option of libgpuhost; ignored' GPUHOST_min_size=1
	says 'gpuhost: GPUHOST_ is not an option of libgpuhost; ignored' GPUHOST_=1
	# Below its level nothing is said, and what is not ours is not looked at.
	says '' GPUHOST_LOG=none GPUHOST_FOO=1 GPUHOST_MIN_SIZE=abc
	says '' GPUHOST=1 XGPUHOST_FOO=1 gpuhost_foo=1
	# The first of two bad ones does not hide the second.
	says "gpuhost: GPUHOST_FOO is not an option of libgpuhost; ignored
gpuhost: GPUHOST_MIN_SIZE='x' is not understood (0 to 1G); using 0" GPUHOST_FOO=1 GPUHOST_MIN_SIZE=x
	# A value longer than a line is cut, and the line ends.
	long=$(printf 'y%.0s' {1..5000})
	LD_PRELOAD=$library GPUHOST_MIN_SIZE=$long /bin/true 2>"$scratch/err" || bad=1
	(($(wc -l <"$scratch/err") == 1 && $(wc -c <"$scratch/err") < 1000)) || { echo 'a long value: not one line'; bad=1; }
	;;
help)
	for form in 1 names markdown; do
		LD_PRELOAD=$library GPUHOST_HELP=$form /bin/echo hello >"$scratch/out" 2>"$scratch/$form" || bad=1
		[[ $(<"$scratch/out") == hello ]] || { echo "the program did not run with GPUHOST_HELP=$form"; bad=1; }
	done
	options=$(wc -l <"$scratch/names")
	((options >= 16)) || { echo "only $options options are listed"; bad=1; }
	[[ $(grep -cE '^GPUHOST_[A-Z_]+$' "$scratch/names") == "$options" ]] || { echo 'names: not only names'; bad=1; }
	[[ $(grep -cE '^GPUHOST_[A-Z_]+=.*\(default .*; .*\)  .+$' "$scratch/1") == "$options" ]] || { echo 'not a line an option'; bad=1; }
	# shellcheck disable=SC2016 # the quotes are the table's
	[[ $(grep -cE '^\| `GPUHOST_[A-Z_]+` \| .* \| .+ \| .+ \|$' "$scratch/markdown") == "$options" ]] || { echo 'not a row an option'; bad=1; }
	# What is in effect is shown, not only the defaults.
	LD_PRELOAD=$library GPUHOST_HELP=1 GPUHOST_DECAY_MS=1234 /bin/true 2>&1 | grep -q '^GPUHOST_DECAY_MS=1234 ' || { echo 'help does not show what is in effect'; bad=1; }
	expect 0 'hello' '' GPUHOST_HELP= /bin/echo hello
	;;
aside)
	who=$programs/misuse_who_serves
	expect 0 'active 1, another heap' '' "$who"
	expect 0 "active 0, glibc's heap" '' GPUHOST_ENABLE=0 "$who"
	expect 0 "active 0, glibc's heap" '' GPUHOST_ENABLE=off GPUHOST_STATS= "$who"
	expect 0 "active 0, glibc's heap" '' GPUHOST_EXCLUDE=misuse_who_serves "$who"
	expect 0 "active 0, glibc's heap" '' GPUHOST_EXCLUDE=a:b::misuse_who_serves:c "$who"
	expect 0 'active 1, another heap' '' GPUHOST_EXCLUDE=misuse_who:who_serves:misuse_who_serves_2 "$who"
	expect 0 'active 1, another heap' '' GPUHOST_EXCLUDE="$who" "$who" # names, not paths
	[[ $("$who") == "active -1, glibc's heap" ]] || { echo 'without the preload there is no gpuhost_active'; bad=1; }
	;;
closed_stderr)
	expect 0 '' '' GPUHOST_LOG=debug GPUHOST_STATS=stderr "$programs/misuse_closed_stderr" "$scratch/file"
	[[ ! -s $scratch/file ]] || { echo 'written into a file of the program:'; cat "$scratch/file"; bad=1; }
	;;
stats_file)
	expect 0 'hello' '' GPUHOST_STATS="$scratch/stats.%p" /bin/echo hello
	grep -q 'regions' "$scratch"/stats.[0-9]* || { echo 'no statistics in the file'; bad=1; }
	# Not echo: it closes stderr at its exit, before us, and what is said then is lost.
	expect 0 '' 'gpuhost: the file that GPUHOST_STATS names cannot be written; no statistics' \
		GPUHOST_STATS=/does/not/exist /bin/true
	;;
setuid)
	# ld.so drops LD_PRELOAD for a privileged program, so this one is linked with the library. Its
	# environment must not be read: neither options nor the name of a file to write.
	[[ $(id -u) == 0 ]] || { echo 'SKIP: only root can make a setuid program'; exit 77; }
	command -v setpriv >/dev/null || { echo 'SKIP: no setpriv'; exit 77; }
	chmod 755 "$scratch"
	cp "$programs/misuse_linked" "$scratch/program"
	chmod 4755 "$scratch/program"
	user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	if ! "${user[@]}" "$scratch/program" >/dev/null 2>&1; then
		echo 'SKIP: another user cannot read the library or the folder of temporary files'
		exit 77
	fi
	out=$("${user[@]}" env GPUHOST_ENABLE=0 GPUHOST_FOO=1 GPUHOST_HELP=1 GPUHOST_STATS=stderr "$scratch/program" 2>"$scratch/err")
	if [[ $out != *'privileged 1, active 1'* ]]; then
		[[ $out == *'privileged 0'* ]] && { echo 'SKIP: the temporary folder is mounted nosuid'; exit 77; }
		printf 'it said: %s\n' "$out"
		bad=1
	fi
	[[ ! -s $scratch/err ]] || { cat "$scratch/err"; bad=1; }
	# The same program, not privileged, does read them.
	out=$(GPUHOST_ENABLE=0 "$programs/misuse_linked")
	[[ $out == *'privileged 0, active 0'* ]] || { printf 'unprivileged it said: %s\n' "$out"; bad=1; }
	;;
*)
	echo "no case $3"
	exit 2
	;;
esac
exit "$bad"
