#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs every case of the simulated driver's self-test with one driver, the other, and both, from a
# folder that holds sim_selftest, the two drivers and the kernels: for systems without ctest, such
# as a chroot with another loader. The environment (SIM_SELFTEST_INIT, GHSIM_DDI, ZE_ENABLE_…)
# passes through. Last line: counts; exit code 1 if a case failed.
set -euo pipefail
dir=${1:?usage: sim_selftest_all.sh FOLDER}
gpu=$dir/libze_sim_gpu.so npu=$dir/libze_sim_npu.so
passed=0 failed=0 skipped=0
for drivers in "$gpu" "$npu" "$gpu,$npu"; do
    while read -r case; do
        code=0
        out=$(ZE_ENABLE_ALT_DRIVERS=$drivers "$dir/sim_selftest" "$case" "$dir/gh_sim_kernels.so" 2>&1) || code=$?
        case $code in
            0) passed=$((passed + 1)) ;;
            77) skipped=$((skipped + 1)); echo "SKIP $case ($drivers): $out" ;;
            *) failed=$((failed + 1)); echo "FAIL $case ($drivers), exit code $code:"; echo "$out" | head -n 12 ;;
        esac
    done < <("$dir/sim_selftest" --list)
done
echo "sim_selftest: passed=$passed failed=$failed skipped=$skipped"
[ "$failed" -eq 0 ]
