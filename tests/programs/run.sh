#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs real programs without and with libgpuhost preloaded and compares: exit
# status, output, and that no new message appears on stderr. Prints a row
#     program | without | with | verdict
# for each, the verdict being `equal` or `worse`.
#
# One program is one file NAME.prog beside this one, a piece of bash:
#     packages="..."    Debian packages that bring it (installed when missing)
#     commands="..."    commands that it needs; missing ones mean: install
#     pypi="..."        PyPI packages, laid into a virtual environment: $PYTHON
#     probe() { ...; }  optional: fails when something else must be installed
#     prepare() { ...; } optional: once, before both runs, not preloaded, in the
#                       folder $prepared, for what must be the same for both
#     run() { ...; }    the run, in an empty folder; all of it is preloaded
#     filter() { ...; } optional: stdin to stdout, takes out what differs from
#                       run to run (times, process ids)
#     check() { ...; }  optional: more that must hold, not preloaded, in the
#                       folder of the run with the preload; $library, $root
#                       (source tree) and $prog are set
# Adding a program is adding a file; CMake finds it.
#
# Exit status: 0 all equal, 1 one is worse (or the test itself is broken),
# 77 nothing was compared, with the reason.
set -euo pipefail

usage='usage: run.sh [--library FILE] [--rows FILE] [--programs DIR] [--keep] [--list] [PROGRAM ...]'
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(readlink -f -- "$here/../..")
programs=$here
library=''
rows=''
keep=''
list=''
names=()
while (($# > 0)); do
	case $1 in
	--library) library=$(readlink -f -- "$2"); shift ;;
	--rows) rows=$2; shift ;;
	--programs) programs=$(readlink -f -- "$2"); shift ;;
	--keep) keep=1 ;;
	--list) list=1 ;;
	-*) printf '%s\n' "$usage" >&2; exit 2 ;;
	*) names+=("$1") ;;
	esac
	shift
done
every_program() { local file; for file in "$programs"/*.prog; do basename -- "$file" .prog; done; }
if [[ -n $list ]]; then
	every_program
	exit 0
fi
library=${library:-$("$root/scripts/gpuhost-run" --library)}
[[ -f $library ]] || { printf 'skip: no library at %s\n' "$library" >&2; exit 77; }
((${#names[@]} > 0)) || mapfile -t names < <(every_program)

cache=${GPUHOST_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpuhost-tests}
limit_seconds=${GPUHOST_TEST_TIMEOUT:-600}
# The programs see no setting of the caller's.
while read -r variable; do unset "$variable"; done < <(compgen -A export GPUHOST_)
unset LD_PRELOAD
export LC_ALL=C.UTF-8 TZ=UTC

work=$(mktemp -d "${TMPDIR:-/tmp}/gpuhost-programs.XXXXXX")
[[ -n $keep ]] && printf 'keeping %s\n' "$work" >&2
trap '[[ -n $keep ]] || rm -rf "$work"' EXIT

# A preload that does not take effect would make everything equal.
if ! LD_PRELOAD=$library grep -qF -- "$library" /proc/self/maps; then
	printf '%s cannot be preloaded here\n' "$library" >&2
	exit 1
fi

missing() { # missing: what the sourced program file lacks, nothing if all is there
	local command
	# shellcheck disable=SC2154 # set by the program file
	for command in ${commands:-}; do
		type -P -- "$command" >/dev/null || printf '%s ' "$command"
	done
	if declare -F probe >/dev/null && ! (probe) >/dev/null 2>&1; then printf 'probe '; fi
}

# A bare machine has no package list, or an old one: a second try gets it first.
apt_install() {
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o "DPkg::Lock::Timeout=300")
	# shellcheck disable=SC2086 # a list of packages
	"${apt[@]}" --no-install-recommends install $packages ||
		{ "${apt[@]}" update && "${apt[@]}" --no-install-recommends install $packages; }
}

install() { # install: puts the program there; prints why it cannot
	local why
	why=$(missing)
	if [[ -n $why ]]; then
		if [[ $(id -u) != 0 || -z ${packages:-} ]] || ! type -P apt-get >/dev/null; then
			printf 'not installed and cannot be: %s' "$why"
			return 1
		fi
		mkdir -p "$cache"
		(flock 9 && apt_install) 9>"$cache/apt.lock" >"$work/apt.log" 2>&1 </dev/null ||
			{ printf 'cannot be installed: %s' "$(grep -m1 '^E:' "$work/apt.log" || tail -n 1 "$work/apt.log")"; return 1; }
		hash -r
		why=$(missing)
		[[ -z $why ]] || { printf 'still missing after installing %s: %s' "$packages" "$why"; return 1; }
	fi
	if [[ -n ${pypi:-} ]]; then
		local venv
		venv=$cache/venv-$(sha256sum <<<"$pypi" | cut -c 1-12)
		if [[ ! -e $venv/.complete ]]; then
			# shellcheck disable=SC2086 # a list of packages
			{ /usr/bin/python3 -m venv "$venv" && "$venv/bin/pip" -q install $pypi && touch "$venv/.complete"; } \
				>"$work/pip.log" 2>&1 || { printf 'cannot be installed: %s' "$(tail -n 1 "$work/pip.log")"; return 1; }
		fi
		printf '%s' "$venv/bin/python" >"$work/python"
	fi
}

# once MODE PROG PRELOAD: one run; leaves MODE.out, MODE.err, MODE.status, MODE.time.
once() {
	local mode=$1 prog=$2 preload=$3 status=0 start
	rm -rf "$work/run" "$work/tmp"
	mkdir "$work/run" "$work/tmp"
	start=${EPOCHREALTIME/./}
	(
		cd "$work/run"
		if [[ -e $work/python ]]; then
			PYTHON=$(<"$work/python")
			export PYTHON
		fi
		export HOME=$work/tmp TMPDIR=$work/tmp prepared=$work/prepared root prog cache
		# shellcheck disable=SC2016 # the inner shell expands it
		exec timeout --kill-after=10 "$limit_seconds" env ${preload:+LD_PRELOAD="$preload"} \
			bash -c 'set -euo pipefail; source "$prog"; run'
	) >"$work/$mode.out" 2>"$work/$mode.err" </dev/null || status=$?
	printf '%d' "$status" >"$work/$mode.status"
	printf '%d' $(((${EPOCHREALTIME/./} - start) / 1000)) >"$work/$mode.ms"
	if declare -F filter >/dev/null; then
		filter <"$work/$mode.out" >"$work/$mode.cmp"
		filter <"$work/$mode.err" >"$work/$mode.msg"
	else
		cp "$work/$mode.out" "$work/$mode.cmp"
		cp "$work/$mode.err" "$work/$mode.msg"
	fi
}

cell() { printf 'exit %s, %d.%02d s' "$(<"$work/$1.status")" $(($(<"$work/$1.ms") / 1000)) $(($(<"$work/$1.ms") % 1000 / 10)); }

# compare: reasons why the run with the preload is worse, nothing if it is not.
compare() {
	local new
	[[ $(<"$work/with.status") == $(<"$work/without.status") ]] ||
		printf 'exit status %s instead of %s\n' "$(<"$work/with.status")" "$(<"$work/without.status")"
	cmp -s "$work/without.cmp" "$work/with.cmp" ||
		printf 'the output differs:\n%s\n' "$(diff "$work/without.cmp" "$work/with.cmp" | head -n 20 || true)"
	new=$(comm -13 <(sort "$work/without.msg") <(sort "$work/with.msg"))
	[[ -z $new ]] || printf 'new messages:\n%s\n' "$(head -n 20 <<<"$new")"
}

# one NAME: one program, in a subshell of its own, since the file is sourced.
one() (
	name=$1
	prog=$programs/$name.prog
	[[ -r $prog ]] || { printf 'no program %s\n' "$name" >&2; exit 1; }
	rm -f "$work/python"
	# shellcheck disable=SC1090 # the table's files
	source "$prog"
	if ! why=$(install); then
		printf 'skip: %s: %s\n' "$name" "$why" >&2
		exit 77
	fi
	if declare -F prepare >/dev/null; then
		rm -rf "$work/prepared"
		mkdir "$work/prepared"
		if ! (cd "$work/prepared" && export root prog && set -e && prepare) >"$work/prepare.log" 2>&1 </dev/null; then
			printf '%s: broken test, it cannot be prepared:\n' "$name" >&2
			tail -n 20 "$work/prepare.log" >&2
			exit 1
		fi
	fi
	once without "$prog" ''
	if [[ $(<"$work/without.status") == 77 ]]; then
		printf 'skip: %s: %s\n' "$name" "$(tail -n 1 "$work/without.err")" >&2
		exit 77
	fi
	if [[ $(<"$work/without.status") != 0 || ! -s $work/without.cmp ]]; then
		printf '%s: broken test, it fails or prints nothing without libgpuhost (%s):\n' "$name" "$(cell without)" >&2
		tail -n 20 "$work/without.out" "$work/without.err" >&2
		exit 1
	fi
	once with "$prog" "$library"
	worse=$(compare)
	if declare -F check >/dev/null; then
		worse+=$(cd "$work/run" && export library root prog && (set -e; check) 2>&1 >/dev/null || printf 'check failed (%d)\n' $?)
	fi
	verdict=equal
	[[ -z $worse ]] || verdict=worse
	row=$(printf '%-14s | %-16s | %-16s | %s' "$name" "$(cell without)" "$(cell with)" "$verdict")
	printf '%s\n' "$row"
	[[ -z $rows ]] || printf '%s\n' "$row" >>"$rows"
	if [[ -n $worse ]]; then
		printf '%s: %s\n' "$name" "$worse" >&2
		exit 1
	fi
)

equal=0 worse=0 skipped=0
printf '%-14s | %-16s | %-16s | %s\n' program without with verdict
for name in "${names[@]}"; do
	status=0
	one "$name" || status=$?
	case $status in
	0) equal=$((equal + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) worse=$((worse + 1)) ;;
	esac
done
((${#names[@]} == 1)) || printf '%d equal, %d worse, %d skipped\n' "$equal" "$worse" "$skipped"
((worse == 0)) || exit 1
((equal > 0)) || exit 77
