# SPDX-License-Identifier: MIT
"""Runs rows under allocators, interleaved, and makes medians, ratios and geometric means."""
import math
import os
import statistics
import subprocess
import sys

MEASURES = ("wall", "cpu", "rss")


def clean_environment():
    """Without what would change an allocator from outside."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("GPUHOST_", "MALLOC_", "MIMALLOC_", "TCMALLOC_", "GHSIM_", "ZE_"))
            and name not in ("LD_PRELOAD", "GLIBC_TUNABLES", "PYTHONMALLOC", "BENCH_PRELOAD")}


def measure(programs, preload, command, env=None):
    """One run: {"wall": s, "cpu": s, "rss": KiB}. A command that fails ends the benchmark."""
    environment = clean_environment()
    environment.update(env or {})
    done = subprocess.run([f"{programs}/gh-bench-measure", preload, *command], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    fields = done.stdout.split()
    if done.returncode != 0 or len(fields) < 5 or fields[-1] != "0":
        raise SystemExit(f"bench: {' '.join(command)} with LD_PRELOAD='{preload}' failed: "
                         f"{done.stdout.strip()} {done.stderr.strip()[-600:]}")
    wall, user, system, rss = map(float, fields[-5:-1])
    return {"wall": wall, "cpu": user + system, "rss": rss}


class Variant:
    """A way to run each program: what is preloaded, and environment."""

    def __init__(self, name, preload, env=None):
        self.name = name
        self.preload = preload
        self.env = env or {}


def interleave(programs, rows, variants, rounds, percent):
    """{row: {variant: [run, ...]}}: in each round each row runs once under each variant, A B C D E,
    and the order is turned by one from round to round, so that no variant always follows the same."""
    raw = {row.name: {variant.name: [] for variant in variants} for row in rows}
    for number in range(rounds):
        for row in rows:
            command = [word.replace("{percent}", str(percent)) for word in row.command]
            turn = number % len(variants)
            for variant in variants[turn:] + variants[:turn]:
                preload = variant.preload or row.glibc_preload
                run = measure(programs, preload, command, {**row.env, **variant.env})
                raw[row.name][variant.name].append(run)
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return raw


def medians(raw):
    return {row: {variant: {key: statistics.median(run[key] for run in runs) for key in MEASURES}
                  for variant, runs in by_variant.items()}
            for row, by_variant in raw.items()}


def ratios(middle, key, base):
    """{row: {variant: ratio to `base`}}"""
    return {row: {variant: values[key] / by_variant[base][key] for variant, values in by_variant.items()}
            for row, by_variant in middle.items()}


def geometric_means(table):
    variants = next(iter(table.values())).keys()
    return {variant: math.exp(statistics.fmean(math.log(row[variant]) for row in table.values()))
            for variant in variants}
