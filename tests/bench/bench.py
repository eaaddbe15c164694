#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The benchmark behind scripts/bench.sh, which builds what it needs and names the build folder."""
import argparse
import os
import subprocess
import sys

import bench_gpu
import bench_report as report
import bench_rows
import bench_run as run
from bench_report import figure

SOURCE = os.path.dirname(os.path.realpath(__file__))
PARTS = ("malloc", "attached", "startup", "wraps", "import", "memory")  # stress and programs are parts of malloc


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["all"], choices=[*PARTS, "stress", "programs", "all"])
    parser.add_argument("--build", required=True)
    parser.add_argument("--library")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work, three rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--percent", type=int, help="of the work, in each program")
    parser.add_argument("--threads", default="1,2", help="thread counts of the stress programs, as 1,2,16")
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--allocators", default="", help="names of allocators, separated by commas")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME:VARIABLE=VALUE,...",
                        help="another run of libgpuhost, with these settings (LIBRARY=FILE: another build)")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--label", default="", help="of another machine: kept beside the others, as PART-LABEL.json")
    parser.add_argument("--results", default=os.path.join(SOURCE, "results"), help="folder to save into")
    options = parser.parse_args()
    options.build = os.path.realpath(options.build)
    options.programs = os.path.join(options.build, "tests/bench")
    options.library = os.path.realpath(options.library or os.path.join(options.build, "preload/libgpuhost.so"))
    options.inputs = os.path.join(options.programs, "inputs")
    options.percent = options.percent or (20 if options.quick else 100)
    options.rounds = options.rounds or (3 if options.quick else 5)
    options.thread_counts = [int(count) for count in options.threads.split(",")]
    options.peers = bench_rows.allocators(options.library)
    options.label = f"-{options.label}" if options.label else ""
    options.attach_env = {"ZE_ENABLE_ALT_DRIVERS": os.path.join(options.build, "tests/sim/libze_sim_gpu.so"),
                          "GHSIM_PAGE_CHECK": "off"}
    return options


def variants_of(options):
    chosen = [name for name in options.allocators.split(",") if name]
    every = [run.Variant(name, preload) for name, preload in bench_rows.allocators(options.library).items()
             if not chosen or name in chosen or name == "glibc"]
    for text in options.variant:
        name, _, settings = text.partition(":")
        env = dict(setting.split("=", 1) for setting in settings.split(",") if setting)
        every.append(run.Variant(name, env.pop("LIBRARY", options.library), env))
    return every


def rows_of(options, kinds):
    rows = []
    if "stress" in kinds:
        rows += bench_rows.stress_rows(options.programs, options.thread_counts)
    if "real" in kinds:
        subprocess.run([sys.executable, os.path.join(SOURCE, "real/make_inputs.py"), options.inputs,
                        str(options.percent)], check=True)
        rows += bench_rows.real_rows(SOURCE, options.inputs)
    only = [name for name in options.only.split(",") if name]
    return [row for row in rows if not only or row.name in only or row.name.rsplit("-", 1)[0] in only]


def compare(options, kinds, part):
    """Each program under each allocator; ratios to glibc."""
    rows = rows_of(options, kinds)
    variants = variants_of(options)
    raw = run.interleave(options.programs, rows, variants, options.rounds, options.percent)
    middle = run.medians(raw)
    columns = [variant.name for variant in variants]
    tables = {}
    for key, title in (("wall", "wall time"), ("cpu", "CPU time (user + system, all processes)"),
                       ("rss", "peak RSS")):
        tables[key] = run.ratios(middle, key, "glibc")
        unit = 1024 if key == "rss" else 0.001
        report.table(f"{title}, ratio to glibc (medians of {options.rounds} interleaved rounds)",
                     ["glibc, " + ("MiB" if key == "rss" else "ms"), *columns[1:]],
                     [(name, [middle[name]["glibc"][key] / unit, *(row[c] for c in columns[1:])])
                      for name, row in tables[key].items()]
                     + [("geometric mean", ["", *(run.geometric_means(tables[key])[c] for c in columns[1:])])])
    print()
    for key, word in (("wall", "time"), ("cpu", "cpu"), ("rss", "rss")):
        for name, value in run.geometric_means(tables[key]).items():
            if name != "glibc":
                figure(f"{part}_{word}_geomean_vs_glibc_{name}", value, "ratio")
    if "gpuhost" in columns and "jemalloc" in columns:
        against(tables, part)
    if options.save:
        report.save(options.results, part + options.label, report.command_line(), raw)
        if part == "malloc" and not options.label:
            report.chart(options.results, tables["wall"], tables["rss"])
    return middle


def against(tables, prefix):
    """Our rows against plain jemalloc and against the fastest peer of the row."""
    lines = []
    for key in ("wall", "cpu"):
        for name, row in tables[key].items():
            peers = {peer: row[peer] for peer in row if peer in bench_rows.PEERS or peer == "glibc"}
            fastest = min(peers, key=peers.get)
            lines.append((key, name, row["gpuhost"] / row["jemalloc"], row["gpuhost"] / peers[fastest], fastest))
    report.table("libgpuhost against others, time",
                 ["jemalloc", "CPU", "fastest", "CPU", "which"],
                 [(name, [*(next(l[i] for l in lines if l[0] == key and l[1] == name)
                            for i in (2, 3) for key in ("wall", "cpu")),
                          next(l[4] for l in lines if l[0] == "wall" and l[1] == name)])
                  for name in tables["wall"]])
    print()
    for key, word in (("wall", "time"), ("cpu", "cpu")):
        mine = [line for line in lines if line[0] == key]
        worst = max(mine, key=lambda line: line[2])
        figure(f"{prefix}_{word}_worst_vs_jemalloc", worst[2], f"ratio ({worst[1]})")
        worst = max(mine, key=lambda line: line[3])
        figure(f"{prefix}_{word}_worst_vs_fastest_peer", worst[3], f"ratio ({worst[1]}, {worst[4]})")
    ratio = {name: {"x": row["gpuhost"] / row["jemalloc"]} for name, row in tables["rss"].items()}
    figure(f"{prefix}_rss_geomean_vs_jemalloc_gpuhost", run.geometric_means(ratio)["x"], "ratio")
    ratio = {name: {"x": row["gpuhost"] / row["jemalloc"]} for name, row in tables["wall"].items()}
    figure(f"{prefix}_time_geomean_vs_jemalloc_gpuhost", run.geometric_means(ratio)["x"], "ratio")


def main():
    options = arguments()
    parts = PARTS if "all" in options.parts else options.parts
    if parts == ["malloc"]:
        parts = ["malloc", "attached", "startup"]
    gpu_parts = {"wraps": bench_gpu.wraps, "import": bench_gpu.imports, "memory": bench_gpu.memory,
                 "startup": bench_gpu.startup}
    for part in parts:
        print(f"\n== {part}", flush=True)
        report.figures.clear()
        if part == "malloc":
            compare(options, ("stress", "real"), part)
        elif part == "stress":
            compare(options, ("stress",), part)
        elif part == "programs":
            compare(options, ("real",), part)
        else:
            if part == "attached":
                raw = bench_gpu.attached(options, rows_of(options, ("stress", "real")))
            else:
                raw = gpu_parts[part](options)
            if options.save:
                report.save(options.results, part + options.label, report.command_line(), raw)


main()
