#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs the table for Julia's arrays:
#     julia_table.sh sim KERNELS NAME              with the environment as it is
#     julia_table.sh intel LIBRARY NAME MMAP       with Intel's driver without hardware
# Exit status: Julia's; 77 skipped, why.
set -euo pipefail

here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
preload=${LD_PRELOAD:-}
unset LD_PRELOAD # this shell and its tools do without
julia=$("$here/../programs/julia.sh") || exit

case $1 in
sim)
	LD_PRELOAD=$preload exec "$julia" --startup-file=no "$here/wraps.jl" "$2" "$3"
	;;
intel)
	exec "$here/../intel/on_device.sh" tgllp --bind "$(dirname -- "$julia")" --bind "$here" \
		--bind "$(dirname -- "$2")" LD_PRELOAD="$2" GPUHOST_MMAP="$4" \
		"$julia" --startup-file=no "$here/wraps.jl" - "$3"
	;;
*)
	printf 'usage: julia_table.sh sim KERNELS NAME | intel LIBRARY NAME MMAP\n' >&2
	exit 2
	;;
esac
