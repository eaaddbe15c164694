#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Runs inject_victim with libgpuhost preloaded while one thing after the other fails, and judges:
# it ends with status 0, in time, and libgpuhost says at most a few lines. For calls: n = 1, 2, ...
# until a run meets no failure, once at that call and once from it on. For limits: wherever the
# program runs without the library, it must run with it.
#
#   run.py calls|functions|switches|limits LIBRARY SHIM VICTIM GPU-DRIVER NPU-DRIVER
import concurrent.futures
import os
import re
import resource
import signal
import subprocess
import sys
import time
import uuid

LINES_MOST = 6
TIMEOUT = 40
WORKERS = len(os.sched_getaffinity(0))
what, library, shim, victim, gpu, npu = sys.argv[1:7]
bad = []
runs = 0


def start(driver, variables, limit=None, preload=True):
    """One run: (status, failures met or None, stderr)."""
    global runs
    runs += 1
    environment = {"PATH": os.environ["PATH"], "GPUHOST_DECAY_MS": "50", "GPUHOST_REGION_MIN": "1M", **variables}
    command = ["env"]
    if preload:
        command.append(f"LD_PRELOAD={library}:{shim}")
    command.append(victim)
    if driver:
        command.append(driver)
        environment["ZE_ENABLE_ALT_DRIVERS"] = driver
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT,
                              preexec_fn=limit, check=False)
    except subprocess.TimeoutExpired:
        return 124, None, "timed out"
    met = re.search(r"^victim: active (\d), failures (\d+)$", done.stdout, re.M)
    return done.returncode, int(met.group(2)) if met else None, done.stderr


def judge(name, result):
    status, met, errors = result
    # libstdc++ ends the program, with this line, when it has no memory for an exception; the loader is C++,
    # and under a limit it may come first to the last of the memory.
    no_memory = "mmap" in name or "RLIMIT_" in name
    if status == -signal.SIGABRT and no_memory and "terminate called without an active exception" in errors:
        print(f"inject: {name}: the C++ runtime had no memory for an exception", flush=True)
        return True
    lines = [line for line in errors.splitlines() if line.startswith("gpuhost:")]
    if status != 0 or met is None or len(lines) > LINES_MOST or "internal error" in errors:
        bad.append(name)
        print(f"inject: {name}: status {status}, {len(lines)} lines; {errors.strip()[-400:]}", flush=True)
        return False
    return True


def loop(name, driver, variables, spec):
    """spec(n): the variables for call n. Until nothing fails, or it went wrong three times."""
    wrong = 0
    for n in range(1, 400):
        result = start(driver, {**variables, **spec(n)})
        wrong += not judge(f"{name} call {n}", result)
        if result[1] == 0 or wrong == 3:
            return
    bad.append(name)
    print(f"inject: {name}: still failing after 400 calls")


def in_parallel(jobs):
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for job in [pool.submit(*job) for job in jobs]:
            job.result()


def calls():
    jobs = []
    for driver in (None, gpu, npu):
        name = os.path.basename(driver) if driver else "no GPU"
        for kind in ("mmap", "munmap", "madvise", "thread"):
            jobs.append((loop, f"{name}: {kind}", driver, {"INJECT_SINGLE": "1"},
                         lambda n, kind=kind: {"INJECT": f"{kind}:{n}"}))
            if driver != npu:
                jobs.append((loop, f"{name}: {kind} and later", driver, {},
                             lambda n, kind=kind: {"INJECT": f"{kind}:{n}:from"}))
    in_parallel(jobs)


def functions():
    names = ["zeInit", "zeDriverGet", "zeDriverGetProperties", "zeDriverGetExtensionProperties", "zeDeviceGet",
             "zeDeviceGetProperties", "zeDeviceGetMemoryAccessProperties", "zeContextCreate", "zeContextCreateEx",
             "zeMemAllocHost", "import", "zeMemFree", "zeMemGetAllocProperties"]
    jobs = []
    for name in names:
        driver = npu if name in ("zeMemGetAllocProperties", "zeContextCreate") else gpu
        variables = {"INJECT_SINGLE": "1"}
        if name == "zeMemFree":
            variables.update(INJECT_KEEPS="1", GHSIM_STRICT="refuse")
        jobs.append((loop, f"{name}", driver, variables,
                     lambda n, name=name: {"GHSIM_FAIL": f"{name}:{n}:0x70000003"}))
        every = {**variables, "GHSIM_FAIL": f"{name}:0:0x70000001", "INJECT_REFUSES": "1"}
        every.pop("INJECT_SINGLE")
        jobs.append((lambda name=name, driver=driver, every=every:
                     judge(f"{name} always", start(driver, every)),))
    in_parallel(jobs)


def switches():
    takes = [{"GHSIM_NOISY": "1"}, {"GHSIM_DELAY_US": "2000"}, {"GHSIM_HOST_TYPE": "host_imported"},
             {"GHSIM_DEVICES": "2"}, {"GHSIM_DDI": "0"}, {"GHSIM_EXPLICIT_RESIDENCY": "1"}, {"GHSIM_NO_ZEX": "1"},
             {"GHSIM_MAX_ALLOC": "65536"}, {"ZE_ENABLE_LOADER_INTERCEPT": "1"}, {"GPUHOST_HIDE": "1"},
             {"GPUHOST_MMAP": "1"}, {"GPUHOST_DECAY_MS": "0"}, {"GPUHOST_MIN_SIZE": "4K"},
             {"GPUHOST_EXCLUSIVE_PAGES": "1"}, {"GPUHOST_HUGEPAGES": "1"}, {"GPUHOST_RESIDENT": "0"},
             {"GPUHOST_LIMIT": "8M"}, {"GPUHOST_STATS": "/dev/null"}, {"GPUHOST_LOG": "none"}]
    refuses = [{"GHSIM_NO_MEMMAP": "1"}, {"GHSIM_REFUSE_MEMMAP": "1"}, {"GHSIM_OTHER_ADDRESS": "1"},
               {"GHSIM_MEMORY_LIMIT": "1M"}, {"GHSIM_MEMORY_LIMIT": "0"}, {"GHSIM_SYSTEM_USM": "1"},
               {"GPUHOST_BACKEND": "none"}, {"GPUHOST_IMPORT": "never"}, {"GPUHOST_ENABLE": "0"}]
    jobs = []
    for driver in (gpu, npu):
        for variables in takes:
            jobs.append((lambda driver=driver, variables=variables: judge(
                f"{os.path.basename(driver)} {variables}", start(driver, {"INJECT_SINGLE": "1", **variables})),))
        for variables in refuses:
            jobs.append((lambda driver=driver, variables=variables: judge(
                f"{os.path.basename(driver)} {variables}", start(driver, {"INJECT_REFUSES": "1", **variables})),))
    in_parallel(jobs)


def memory_group(mebibytes):
    """A cgroup with a limit of memory, or None and the reason."""
    name = f"gpuhost-inject-{uuid.uuid4().hex[:8]}"
    for root, file in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        folder = os.path.join(root, name)
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            with open(os.path.join(folder, file), "r+", encoding="ascii") as out:  # the kernel makes it
                out.write(str(mebibytes << 20))
            return folder
        except OSError:
            os.rmdir(folder)
    return None


def limits():
    def compare(name, driver, limit):
        bare = start(driver, {"INJECT_REFUSES": "1"}, limit, preload=False)
        ours = start(driver, {"INJECT_REFUSES": "1"}, limit)
        if ours[0] == 127 and "failed to map segment" in ours[2]:
            print(f"{name}: too little for the dynamic linker to map the library")
        elif bare[0] == 0:
            judge(name, ours)
        elif ours[0] < 0 and ours[0] != bare[0]:
            judge(f"{name} (status {bare[0]} without)", ours)

    def set_limit(which, value):
        return lambda: resource.setrlimit(which, (value, value))

    jobs = []
    for driver in (None, gpu):
        name = os.path.basename(driver) if driver else "no GPU"
        for mebibytes in (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512):
            jobs.append((compare, f"{name} RLIMIT_AS {mebibytes} MiB", driver,
                         set_limit(resource.RLIMIT_AS, mebibytes << 20)))
        for mebibytes in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64):
            jobs.append((compare, f"{name} RLIMIT_DATA {mebibytes} MiB", driver,
                         set_limit(resource.RLIMIT_DATA, mebibytes << 20)))
        jobs.append((compare, f"{name} RLIMIT_MEMLOCK 0", driver, set_limit(resource.RLIMIT_MEMLOCK, 0)))
        jobs.append((compare, f"{name} RLIMIT_STACK 64 KiB", driver, set_limit(resource.RLIMIT_STACK, 65536)))
        jobs.append((compare, f"{name} RLIMIT_CORE 0, FSIZE 0", driver, set_limit(resource.RLIMIT_FSIZE, 0)))
    jobs.append((compare, "no GPU RLIMIT_NOFILE 4", None, set_limit(resource.RLIMIT_NOFILE, 4)))
    in_parallel(jobs)
    folder = memory_group(96)
    if folder is None:
        print("part left out: no cgroup can be made here")
        return

    def enter():
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as out:
            out.write(str(os.getpid()))

    compare("cgroup memory 96 MiB", gpu, enter)
    compare("cgroup memory 96 MiB, no GPU", None, enter)
    for _ in range(50):  # what left it may still be on its way out
        try:
            os.rmdir(folder)
            return
        except OSError:
            time.sleep(0.1)


{"calls": calls, "functions": functions, "switches": switches, "limits": limits}[what]()
print(f"FIGURE inject_{what}_runs {runs} runs")
sys.exit(1 if bad else 0)
