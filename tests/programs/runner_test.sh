#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The runner must see what a preload spoils: another output, another exit status,
# a new message, a crash, a failing check; and tell a skip and a broken test from
# a pass. Made-up programs and made-up libraries, one for each.
# shellcheck disable=SC2016 # the programs' own text
set -euo pipefail

here=$(readlink -f -- "$(dirname -- "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wrong=0
mkdir "$dir/programs"

library() { # library NAME BODY: BODY runs at start-up in each program that is called `victim`
	cat >"$dir/$1.c" <<-C
	#define _GNU_SOURCE
	#include <errno.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	#include <unistd.h>
	__attribute__((constructor)) static void spoil(void)
	{
	    if (strcmp(program_invocation_short_name, "victim") != 0) return;
	    $2
	}
	C
	gcc -shared -fPIC "$dir/$1.c" -o "$dir/$1.so"
}
library harmless ';'
library loud 'fputs("a new message\n", stderr);'
library other_output 'puts("more output"); fflush(stdout);'
library other_status '_exit(5);'
library crash 'abort();'

program() { printf '%s\n' "$2" >"$dir/programs/$1.prog"; }
program good 'run() { cp "$(type -P cat)" victim; echo text | ./victim; echo known >&2; }'
program missing 'commands="no-such-command-at-all"; run() { echo; }'
program broken 'run() { echo text; false; }'
program silent 'run() { true; }'
program late 'run() { echo text; }; check() { echo "not as it should be" >&2; }'
program prepared 'prepare() { echo "$RANDOM$RANDOM" >number; }; run() { cat "$prepared/number"; }'
program unprepared 'prepare() { false; }; run() { echo text; }'
program varying 'run() { echo "it took $RANDOM$RANDOM ms"; }; filter() { sed "s/[0-9]* ms/T ms/"; }'

expect() { # expect STATUS PATTERN LIBRARY PROGRAM
	local status=0
	"$here/run.sh" --programs "$dir/programs" --library "$dir/$3.so" "$4" >"$dir/log" 2>&1 || status=$?
	if [[ $status != "$1" ]] || ! grep -q -- "$2" "$dir/log"; then
		printf 'WRONG: %s with %s: status %s (wanted %s), and it said:\n' "$4" "$3" "$status" "$1"
		cat "$dir/log"
		wrong=1
	fi
}
expect 0 '| equal' harmless good
expect 1 'a new message' loud good
expect 1 '| worse' other_output good
expect 1 'exit status 5 instead of 0' other_status good
expect 1 'exit status 134 instead of 0' crash good
expect 77 'skip: missing: not installed' harmless missing
expect 1 'broken test' harmless broken
expect 1 'broken test' harmless silent
expect 1 'not as it should be' harmless late
expect 0 '| equal' harmless varying
expect 0 '| equal' harmless prepared
expect 1 'cannot be prepared' harmless unprepared
exit "$wrong"
