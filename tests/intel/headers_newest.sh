#!/bin/bash
# SPDX-License-Identifier: MIT
# The library compiles against the newest Level Zero headers too: builds it from SOURCE in BUILD, aside
# from the real build, with the headers of the intel chroot in front of the machine's.
set -euo pipefail

source=$1 build=$2
headers=$("$(dirname "$(readlink -f "$0")")/chroot.sh" --headers) || {
    status=$?
    echo "$headers"
    exit "$status"
}
cmake -S "$source" -B "$build" -DGPUHOST_TESTS=OFF -DGPUHOST_WERROR=ON -DCMAKE_C_FLAGS="-I$headers" >/dev/null
cmake --build "$build" --target gpuhost
# Otherwise the machine's own headers were what got tested.
grep -rqF "$headers/level_zero/ze_api.h" "$build" --include='*.d' || {
    echo "FAILED: nothing included $headers/level_zero/ze_api.h"
    exit 1
}
