#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs a command in the intel chroot, where the driver offers DEVICE although there is none:
#
#   on_device.sh DEVICE [--bind DIR]... [VARIABLE=VALUE]... CMD...
#
# The variables are set for CMD inside only. A run passes when CMD exits with 0 and wrote nothing to
# stderr. With EXPECT_ABORT=TEXT it passes only when SIGABRT kills CMD and TEXT was written.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
device=$1
shift
case $device in
tgllp | adlp) shape=1x6x16 ;; # Iris Xe
dg2) shape=8x4x16 ;;
bmg) shape=5x4x8 ;;
mtl) shape=2x4x16 ;;
lnl) shape=2x4x8 ;;
*)
    echo "unknown device: $device" >&2
    exit 2
    ;;
esac
binds=()
while [ "${1:-}" = --bind ]; do
    binds+=(--bind "$2")
    shift 2
done

output=$(mktemp)
errors=$(mktemp)
trap 'rm -f "$output" "$errors"' EXIT
status=0
# Debug keys of the driver; they belong to tests only.
"$here/chroot.sh" --run "${binds[@]}" env \
    NEOReadDebugKeys=1 UseAubStream=0 SetCommandStreamReceiver=5 UseBindlessMode=0 \
    UseExternalAllocatorForSshAndDsh=0 ProductFamilyOverride="$device" HardwareInfoOverride="$shape" \
    "$@" >"$output" 2>"$errors" || status=$?
cat "$output"

if [ -n "${EXPECT_ABORT:-}" ] && [ "$status" -ne 77 ]; then
    if [ "$status" -eq 134 ] && grep -qF "$EXPECT_ABORT" "$output" "$errors"; then
        echo "aborted, as expected"
        exit 0
    fi
    echo "FAILED: expected SIGABRT (134) and '$EXPECT_ABORT', got exit status $status"
    cat "$errors"
    exit 1
fi
if [ -s "$errors" ]; then
    echo "FAILED: wrote to stderr:"
    cat "$errors"
    [ "$status" -eq 0 ] && status=1
fi
exit "$status"
