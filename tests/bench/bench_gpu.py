# SPDX-License-Identifier: MIT
"""The parts that need a driver: wraps, import, memory, and programs before and after attach. All
with the simulated driver; imports really pin (io_uring) where the kernel allows it."""
import os
import statistics
import subprocess

import bench_report as report
import bench_run as run
from bench_report import figure


def client(options, words, preload, env=None, limit=None):
    """Runs gh-bench-gpu; {name: value}, and the samples apart."""
    environment = run.clean_environment()
    environment.update(options.attach_env)
    environment.update(env or {})
    if preload:
        environment["LD_PRELOAD"] = preload
    done = subprocess.run([*(limit or []), f"{options.programs}/gh-bench-gpu", *map(str, words)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: gh-bench-gpu {words} failed ({done.returncode}): {done.stderr.strip()[-600:]}")
    values, samples = {}, []
    for line in done.stdout.splitlines():
        name, *rest = line.split()
        if name == "sample":
            samples.append([float(word) for word in rest])
        else:
            values[name] = float(rest[0])
    return values, samples


def middle(dictionaries):
    return {name: statistics.median(one[name] for one in dictionaries) for name in dictionaries[0]}


def wraps(options):
    """A wrap's cost, the driver's own import's, and what passing the door adds."""
    env = {"GHSIM_DELAY_US": "2", "GHSIM_PIN": "0"}
    ours, theirs, with_us, without = [], [], [], []
    for _ in range(options.rounds):
        ours.append(client(options, ["wraps"], options.library, env)[0])
        theirs.append(client(options, ["wraps"], "", env)[0])
    for _ in range(2 * options.rounds):
        with_us.append(client(options, ["door"], options.library, env)[0])
        without.append(client(options, ["door"], "", env)[0])
    values = {**middle(ours), **middle(theirs)}
    report.table("a wrap of one page, nanoseconds", ["ns"], [(name, [value]) for name, value in values.items()], 1)
    print()
    for name, value in values.items():
        figure(name, value, "ns")
    figure("wrap_8_threads_vs_1", values["wrap_unwrap_8_threads"] / values["wrap_unwrap_1_thread"], "ratio")
    figure("wrap_covered_1m_vs_few", values["wrap_covered_1m_median"] / values["wrap_covered_median"], "ratio")
    figure("driver_import_vs_wrap_covered", values["driver_import_median"] / values["wrap_covered_median"], "ratio")
    added = {name: statistics.median(a[name] for a in with_us) - statistics.median(b[name] for b in without)
             for name in with_us[0]}
    for name, value in added.items():
        figure(f"{name}_added_ns", value, "ns")
    figure("door_added_ns", added["door_set_argument"], "ns")
    return {"ours": ours, "driver": theirs, "door_with": with_us, "door_without": without}


def imports(options):
    """Cost for each MiB, number of imports and slack by heap size, time until all is visible."""
    raw, rows = [], []
    sizes = (16, 64, 256, 1024, 8192)
    for kind in ("equal", "mixed", "equal_attached", "mixed_attached"):
        for size in sizes:
            # Counts do not depend on pinning; 8 GiB of pinned pages would be felt by the machine.
            env = {"GHSIM_PIN": "0"} if size > 1024 else {}
            values = client(options, ["import", kind, size], options.library, env)[0]
            raw.append({"kind": kind, "mib": size, **values})
            slack = (values["imported_mib"] - values["heap_mib"]) / values["heap_mib"]
            rows.append((f"{kind} {size} MiB", [values["imports"], slack, values["invisible_blocks"],
                                                values["attach_ms"]]))
            if size == 8192:
                figure(f"import_count_8gib_{kind}", int(values["imports"]), "imports")
                figure(f"import_slack_8gib_{kind}", slack, "fraction")
            if values["invisible_blocks"]:
                raise SystemExit(f"bench: {kind} {size}: {values['invisible_blocks']:.0f} blocks are not visible")
    report.table("a heap that was never touched, at attach, or grown after it (8 GiB: not pinned)",
                 ["imports", "slack", "invisible", "attach ms"], rows, 3)
    print()
    count = {row["kind"]: row for row in raw if row["mib"] == 8192 and "attached" not in row["kind"]}
    figure("import_count_8gib", int(max(row["imports"] for row in count.values())), "imports")
    figure("import_slack_8gib", max((row["imported_mib"] - row["heap_mib"]) / row["heap_mib"]
                                    for row in count.values()), "fraction")
    for huge in ("0", "1"):
        for kind in ("equal_touched", "equal"):
            runs = [client(options, ["import", kind, 512], options.library, {"GPUHOST_HUGEPAGES": huge})[0]
                    for _ in range(options.rounds)]
            value = statistics.median(one["import_ms"] / one["imported_mib"] * 1000 for one in runs)
            word = "touched" if "touched" in kind else "untouched"
            figure(f"import_cost_{word}{'_huge' if huge == '1' else ''}", value, "us/MiB")
            raw.append({"kind": kind, "huge": huge, "runs": runs})
    visible = [client(options, ["import", "equal_touched", 1024], options.library)[0]["attach_ms"]
               for _ in range(options.rounds)]
    figure("attach_to_all_visible_1gib", statistics.median(visible), "ms")
    return raw


def cgroup_of_1gib():
    """A command that runs the rest in a cgroup of 1 GiB, and the cgroup; or None with the reason. Only
    below a folder that the user names: whose cgroups the others are cannot be known here."""
    folder = os.environ.get("GPUHOST_BENCH_CGROUP")
    if not folder:
        return None, "GPUHOST_BENCH_CGROUP names no folder in which memory cgroups may be made"
    group = os.path.join(folder, f"gpuhost-bench-{os.getpid()}")
    try:
        os.mkdir(group)
    except OSError as error:
        return None, f"{group}: {error.strerror}"
    for limit in ("memory.max", "memory.limit_in_bytes"):
        if os.path.exists(os.path.join(group, limit)):
            with open(os.path.join(group, limit), "w", encoding="ascii") as out:
                out.write(str(1 << 30))
            return ["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec \"$@\"", "sh"], group
    os.rmdir(group)
    return None, f"{folder} has no memory controller"


def memory(options):
    """Resident memory over a long churn and after everything is freed."""
    seconds = 4 if options.quick else 16
    plan = [("jemalloc", options.peers["jemalloc"], 0, {}, None),
            ("jemalloc, driver loaded", options.peers["jemalloc"], 1, {}, None),
            ("before attach", options.library, 0, {}, None),
            ("attached", options.library, 1, {}, None),
            ("attached, LIMIT=64M", options.library, 1, {"GPUHOST_LIMIT": "64M"}, None),
            ("attached, huge pages", options.library, 1, {"GPUHOST_HUGEPAGES": "1"}, None)]
    command, group = cgroup_of_1gib()
    if command is None:
        print(f"left out: 1 GiB cgroup ({group}); in its place an address space of 16 GiB (RLIMIT_AS)")
        plan.append(("attached, RLIMIT_AS", options.library, 1, {},
                     ["prlimit", f"--as={16 << 30}", "--"]))
    else:
        plan.append(("attached, 1 GiB cgroup", options.library, 1, {}, command))
    raw, rows = {}, []
    for name, preload, attach, env, limit in plan:
        values, samples = client(options, ["memory", attach, seconds], preload, env, limit)
        raw[name] = {"values": values, "samples": samples}
        rows.append((name, [values[key] for key in ("start_mib", "peak_mib", "freed_mib", "after_10s_mib",
                                                    "above_start_mib")] + [values["rounds"] / seconds]))
    if command is not None:
        os.rmdir(group)
    report.table(f"resident MiB: a churn of {seconds} s, then everything freed",
                 ["start", "peak", "freed", "after 10 s", "above", "rounds/s"], rows, 1)
    print()
    values = {name: one["values"] for name, one in raw.items()}
    figure("rss_after_free_mib", values["attached"]["above_start_mib"], "MiB")
    figure("rss_after_free_unattached_mib", values["before attach"]["above_start_mib"], "MiB")
    figure("rss_after_free_limited_mib", values["attached, LIMIT=64M"]["above_start_mib"], "MiB")
    figure("churn_peak_rss_vs_jemalloc", values["before attach"]["peak_mib"] / values["jemalloc"]["peak_mib"], "ratio")
    figure("churn_peak_rss_attached_vs_jemalloc",
           values["attached"]["peak_mib"] / values["jemalloc, driver loaded"]["peak_mib"], "ratio")
    figure("churn_speed_attached_vs_before", values["attached"]["rounds"] / values["before attach"]["rounds"], "ratio")
    return raw


def attached(options, rows):
    """The same programs with a context and a knock at the door every 10 ms, and without. jemalloc has
    the context and the knocks too: a loaded driver takes memory itself, under any malloc."""
    both = f"{options.library}:{options.programs}/gh_bench_attach.so"
    peer = f"{options.peers['jemalloc']}:{options.programs}/gh_bench_attach.so"
    variants = [run.Variant("unattached", both, {"BENCH_ATTACH": "0"}),
                run.Variant("attached", both, {"BENCH_ATTACH": "1", **options.attach_env}),
                run.Variant("jemalloc", peer, {"BENCH_ATTACH": "1", **options.attach_env}),
                run.Variant("jemalloc alone", peer, {"BENCH_ATTACH": "0"})]
    raw = run.interleave(options.programs, rows, variants, options.rounds, options.percent)
    values = run.medians(raw)
    tables = {key: run.ratios(values, key, "unattached") for key in run.MEASURES}
    report.table("attached, ratio to unattached; peak RSS in MiB and as ratio to jemalloc's, with the driver too",
                 ["time", "CPU", "before", "attached", "jemalloc", "ratio"],
                 [(name, [tables["wall"][name]["attached"], tables["cpu"][name]["attached"],
                          values[name]["unattached"]["rss"] / 1024, values[name]["attached"]["rss"] / 1024,
                          values[name]["jemalloc"]["rss"] / 1024,
                          tables["rss"][name]["attached"] / tables["rss"][name]["jemalloc"]]) for name in values])
    print()
    own = statistics.median(one["jemalloc"]["rss"] - one["jemalloc alone"]["rss"] for one in values.values())
    figure("driver_own_rss", own / 1024, "MiB")
    figure("rss_attach_added", statistics.median(one["attached"]["rss"] - one["unattached"]["rss"]
                                                 for one in values.values()) / 1024 - own / 1024, "MiB (median)")
    figure("malloc_time_attached_vs_unattached", run.geometric_means(tables["wall"])["attached"], "ratio")
    figure("malloc_cpu_attached_vs_unattached", run.geometric_means(tables["cpu"])["attached"], "ratio")
    figure("rss_attached_vs_unattached", run.geometric_means(tables["rss"])["attached"], "ratio")
    figure("rss_attached_vs_jemalloc",
           run.geometric_means(run.ratios(values, "rss", "jemalloc"))["attached"], "ratio")
    return raw


def startup(options):
    """/bin/true, many times, in turn under each."""
    variants = [("glibc", ""), ("jemalloc", options.peers["jemalloc"]), ("gpuhost", options.library)]
    times = {name: [] for name, _ in variants}
    for _ in range(60 if options.quick else 240):
        for name, preload in variants:
            times[name].append(run.measure(options.programs, preload, ["/bin/true"])["wall"] * 1000)
    values = {name: statistics.median(each) for name, each in times.items()}
    for name, value in values.items():
        figure(f"startup_{name}", value, "ms")
    figure("startup_vs_jemalloc_ms", values["gpuhost"] - values["jemalloc"], "ms")
    figure("startup_vs_glibc_ms", values["gpuhost"] - values["glibc"], "ms")
    return times
