#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The launchers: what they set, what they refuse and with which status and line,
# that signals and exit status pass, and that options reach the library.
# Argument: the library. Checks that lack a tool here are named as left out.
# shellcheck disable=SC2016,SC2053 # inner shells expand; patterns are meant
set -euo pipefail

library=$(readlink -f -- "$1")
scripts=$(readlink -f -- "$(dirname -- "$0")/../../scripts")
run=$scripts/gpuhost-run
export GPUHOST_LIBRARY=$library
unset LD_PRELOAD PYTHON JULIA VIRTUAL_ENV
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failed=0 passed=0

# expect NAME STATUS STDOUT-PATTERN STDERR-PATTERN COMMAND...
expect() {
	local name=$1 want=$2 out=$3 err=$4 status=0
	shift 4
	"$@" >out 2>err </dev/null || status=$?
	if [[ $status == "$want" ]] && [[ $(<out) == $out && $(<err) == $err ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED %s: status %s (wanted %s)\n  out: %s\n  err: %s\n' "$name" "$status" "$want" "$(<out)" "$(<err)" >&2
	fi
}
left_out() { printf 'left out: %s (%s)\n' "$1" "$2"; }

# ---- it preloads, and execs --------------------------------------------------
expect 'is mapped' 0 "*$library*" '' "$run" cat /proc/self/maps
expect 'exit status' 7 '' '' "$run" sh -c 'exit 7'
expect 'dies of the signal' 143 '' '*' bash -c "\"$run\" sh -c 'kill -TERM \$\$'; exit \$?"
expect 'same process id' 0 same '' bash -c 'echo $$ >pid; exec "$0" sh -c "[ \$\$ = \$(cat pid) ] && echo same"' "$run"
expect 'arguments untouched' 0 '\[a b]\[]\[\*]\[--x=1]' '' "$run" printf '[%s]' 'a b' '' '*' --x=1
expect 'own preload first' 0 "$library:/lib/other.so" '*' env LD_PRELOAD=/lib/other.so "$run" sh -c 'echo $LD_PRELOAD'
expect 'not twice' 0 "$library" '' "$run" "$run" sh -c 'echo $LD_PRELOAD'
expect 'double dash' 0 hello '' "$run" -- echo hello
expect 'reads stdin' 0 through '' bash -c 'echo through | "$0" cat' "$run"
expect 'option becomes variable' 0 'warn' '' "$run" --log=warn sh -c 'echo $GPUHOST_LOG'
expect 'dashes in options' 0 '4096' '' "$run" --min-size=4096 sh -c 'echo $GPUHOST_MIN_SIZE'
expect 'library variable does not leak' 0 unset '' "$run" sh -c 'echo ${GPUHOST_LIBRARY-unset}'
expect 'unknown option' 2 '' 'gpuhost-run: no option --no-such-thing; there are: *min-size*' "$run" --no-such-thing=1 true
expect 'option without value' 2 '' 'gpuhost-run: not an option: --stats *' "$run" --stats true
expect 'no program' 2 '' 'gpuhost-run: no program given*' "$run"
expect 'help' 0 'usage: gpuhost-run*' '' "$run" --help
expect 'version' 0 'libgpuhost [0-9]*.[0-9]*' '' "$run" --version
expect 'bad library' 2 '' 'gpuhost-run: GPUHOST_LIBRARY names no file*' env GPUHOST_LIBRARY=/no/such.so "$run" true
mkdir 'with space' && cp "$library" 'with space/libgpuhost.so'
expect 'space in the path' 2 '' '*cannot name a path with a space*' env GPUHOST_LIBRARY="$PWD/with space/libgpuhost.so" "$run" true

# ---- an installed layout -----------------------------------------------------
mkdir -p prefix/bin prefix/lib/some-triplet
cp "$scripts"/gpuhost-* prefix/bin/
cp "$library" prefix/lib/some-triplet/libgpuhost.so
expect 'installed' 0 "$PWD/prefix/lib/some-triplet/libgpuhost.so" '' env -u GPUHOST_LIBRARY prefix/bin/gpuhost-run sh -c 'echo $LD_PRELOAD'
ln -s "$PWD/prefix/bin/gpuhost-run" link
expect 'through a symlink' 0 "$PWD/prefix/lib/some-triplet/libgpuhost.so" '' env -u GPUHOST_LIBRARY ./link sh -c 'echo $LD_PRELOAD'
rm prefix/lib/some-triplet/libgpuhost.so
expect 'not found' 2 '' '*libgpuhost.so not found*' env -u GPUHOST_LIBRARY prefix/bin/gpuhost-run true

# ---- what cannot work --------------------------------------------------------
one_line() { # the refusal is one line, and the program did not run
	expect "$@"
	[[ $(wc -l <err) == 1 ]] || { failed=$((failed + 1)); printf 'FAILED %s: not one line\n' "$1" >&2; }
}
one_line 'missing' 127 '' '*nosuch*not found in PATH' "$run" nosuch
one_line 'missing path' 127 '' '*./nosuch: no such file' "$run" ./nosuch
one_line 'directory' 126 '' '*is a directory' "$run" /tmp
: >plain
one_line 'not executable' 126 '' '*not executable' "$run" ./plain
printf 'int puts(const char *); int main(void) { puts("ran"); return 0; }\n' >p.c
if type -P gcc >/dev/null; then
	gcc p.c -o dynamic
	expect 'a compiled program' 0 ran '' "$run" ./dynamic
	gcc -static p.c -o static
	one_line 'static' 2 '' '*statically linked*' "$run" ./static
	gcc -static-pie p.c -o static-pie
	one_line 'static pie' 2 '' '*statically linked*' "$run" ./static-pie
	cp dynamic setuid && chmod u+s setuid
	one_line 'setuid' 2 '' '*setuid*' "$run" ./setuid
	cp dynamic setgid && chmod g+s setgid
	one_line 'setgid' 2 '' '*setgid*' "$run" ./setgid
	cp dynamic capable
	if PATH=$PATH:/usr/sbin:/sbin setcap cap_net_raw+ep capable 2>/dev/null; then
		one_line 'file capabilities' 2 '' '*file capabilities*' "$run" ./capable
	else
		left_out 'file capabilities' 'setcap does not work here'
	fi
	gcc p.c -o musl -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
	one_line 'another C library' 2 '' '*another C library*ld-musl*' "$run" ./musl
	gcc p.c -o lost -Wl,--dynamic-linker=/nowhere/ld-linux-x86-64.so.2
	one_line 'loader missing' 127 '' '*its loader /nowhere/*' "$run" ./lost
	cp dynamic foreign # the same file, saying that it is for another machine
	printf '\xb7\x00' | dd of=foreign bs=1 seek=18 conv=notrunc 2>/dev/null
	one_line 'other architecture' 2 '' '*another architecture*' "$run" ./foreign
	for kind in address thread leak; do
		if gcc -fsanitize=$kind p.c -o sanitized 2>/dev/null; then
			one_line "sanitizer $kind" 2 '' '*built with a sanitizer (*san*' "$run" ./sanitized
		else
			left_out "sanitizer $kind" 'gcc has no runtime for it here'
		fi
	done
	if gcc -fsanitize=undefined p.c -o ubsan 2>/dev/null; then
		expect 'UBSan is no obstacle' 0 ran '' "$run" ./ubsan
	fi
	printf 'const char *names = "__asan_init"; int puts(const char *); int main(void) { puts(names); return 0; }\n' >names.c
	gcc names.c -o names
	expect 'the name alone is no sanitizer' 0 __asan_init '' "$run" ./names
	printf '#!%s/static\n' "$PWD" >script-static && chmod +x script-static
	one_line 'script of a static interpreter' 2 '' '*statically linked*' "$run" ./script-static
	printf '#!/usr/bin/env -S X=1 %s/static -u\n' "$PWD" >script-env && chmod +x script-env
	one_line 'script through env' 2 '' '*statically linked*' "$run" ./script-env
else
	left_out 'compiled programs' 'no gcc'
fi
printf '#!/no/such/interpreter\n' >script-lost && chmod +x script-lost
one_line 'script without interpreter' 127 '' '*interpreter /no/such/interpreter*' "$run" ./script-lost
printf '#!/bin/sh\necho "script $1"; grep -c libgpuhost /proc/$$/maps >/dev/null && echo mapped\n' >script && chmod +x script
expect 'script' 0 $'script x\nmapped' '' "$run" ./script x
sed 1d script >bare && chmod +x bare
expect 'script without a first line' 0 $'script x\nmapped' '' "$run" ./bare x

# ---- python and julia --------------------------------------------------------
if [[ -x /usr/bin/python3 ]]; then
	python=(env PYTHON=/usr/bin/python3 "$scripts/gpuhost-python")
	expect 'python' 0 "$library 5" '' "${python[@]}" -c 'import os, sys; print(os.environ["LD_PRELOAD"], sys.argv[1])' 5
	expect 'python small objects' 0 'malloc warn' '' "${python[@]}" --log=warn --small-objects -c 'import os; print(os.environ["PYTHONMALLOC"], os.environ["GPUHOST_LOG"])'
	mkdir -p venv/bin && ln -s /usr/bin/python3 venv/bin/python && printf 'home = /usr/bin\n' >venv/pyvenv.cfg
	expect 'virtual environment' 0 "$PWD/venv" '' env VIRTUAL_ENV="$PWD/venv" "$scripts/gpuhost-python" -c 'import sys; print(sys.prefix)'
	printf '#!/bin/sh\nexec /usr/bin/python3 "$@"\n' >shim && chmod +x shim
	expect 'shim is resolved' 0 '/usr/bin/python3*' '' env PYTHON=./shim "$scripts/gpuhost-python" -c 'import sys; print(sys.executable)'
	expect 'python status' 9 '' '' "${python[@]}" -c 'import sys; sys.exit(9)'
else
	left_out 'gpuhost-python' 'no /usr/bin/python3'
fi
expect 'no python' 127 '' '*PYTHON names no program*' env PYTHON=nosuch "$scripts/gpuhost-python"
expect 'no julia' 127 '' '*nosuch: not found*' env JULIA=nosuch "$scripts/gpuhost-julia"
printf '#!/bin/sh\necho "julia $*, log $GPUHOST_LOG"\n' >fake-julia && chmod +x fake-julia
expect 'julia keeps its own options' 0 'julia --startup-file=no --log=x, log warn' '' \
	env JULIA=./fake-julia "$scripts/gpuhost-julia" --log=warn --startup-file=no --log=x

# ---- gpuhost-info ------------------------------------------------------------
expect 'info' 0 '*libgpuhost*MIN_SIZE*drivers on this machine*device nodes*' '' "$scripts/gpuhost-info"
expect 'names' 0 '*MIN_SIZE*' '' "$scripts/gpuhost-info" --names
expect 'markdown' 0 '*|*MIN_SIZE*|*' '' "$scripts/gpuhost-info" --markdown
expect 'value in effect' 0 '*MIN_SIZE*12345*' '' env GPUHOST_MIN_SIZE=12345 "$scripts/gpuhost-info"

printf '%d checks passed, %d failed\n' "$passed" "$failed"
((failed == 0))
