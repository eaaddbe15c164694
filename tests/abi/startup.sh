#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Programs start with a shim in front of the library and behind it that interposes
# what start-up calls and allocates in it. None crashes, or hangs. Usage: startup.sh LIBRARY SHIM
set -euo pipefail

library=$1
shim=$2
bad=0
for order in "$library $shim" "$shim $library"; do
	for program in "/bin/true" "/bin/sh -c :" "perl -e 1" "python3 -c pass"; do
		command -v "${program%% *}" >/dev/null || continue
		read -ra words <<<"$program"
		status=0
		LD_PRELOAD=$order timeout 30 "${words[@]}" || status=$?
		if ((status != 0)); then
			printf 'LD_PRELOAD="%s" %s: status %d\n' "$order" "$program" "$status"
			bad=1
		fi
	done
done
((bad == 0)) && printf 'started in both orders\n'
exit "$bad"
