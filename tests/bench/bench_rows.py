# SPDX-License-Identifier: MIT
"""What is measured: the allocators and the programs that run under each of them."""
import glob
import os
import shutil

LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
PEERS = {
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
PYTHON = "/usr/bin/python3"  # the distribution's, which has its NumPy


def find_library(name):
    for folder in LIBRARY_FOLDERS:
        for path in sorted(glob.glob(os.path.join(folder, name))):
            return path
    return None


def allocators(library):
    """Name -> what is preloaded. glibc is the measure: no preload."""
    found = {"glibc": "", "gpuhost": library}
    for name, soname in PEERS.items():
        path = find_library(soname)
        if path is None:
            raise SystemExit(f"bench: {soname} is not installed")
        found[name] = path
    return found


class Row:
    """A program. `command` holds {percent}; `env` is added to its environment."""

    def __init__(self, name, command, env=None, glibc_preload=""):
        self.name = name
        self.command = command
        self.env = env or {}
        self.glibc_preload = glibc_preload


def stress_rows(programs, threads):
    rows = []
    for pattern in ("larson", "producer", "churn", "arrays", "regrow", "calloc", "short_threads", "mix"):
        for count in threads:
            rows.append(Row(f"{pattern}-{count}", [f"{programs}/gh-bench-malloc", pattern, str(count), "{percent}"]))
    if os.path.exists(f"{programs}/gh-bench-objects"):
        for count in threads:
            rows.append(Row(f"objects-{count}", [f"{programs}/gh-bench-objects", str(count), "{percent}"]))
    return rows


def real_rows(source, inputs):
    """Each with the program it needs; one that is not installed is left out, and said."""
    real = os.path.join(source, "real")
    libc = find_library("libc.so.6") or "libc.so.6"
    rows = [
        # Debian's redis-server links jemalloc: for glibc's malloc, libc is preloaded itself.
        ("redis-server", Row("redis", [f"{real}/redis.sh", inputs, "{percent}"], glibc_preload=libc)),
        ("sqlite3", Row("sqlite", ["sqlite3", ":memory:", f".read {inputs}/input.sql"])),
        ("gcc", Row("gcc", ["gcc", "-O1", "-c", f"{inputs}/input.c", "-o", f"{inputs}/input.o"])),
        (PYTHON, Row("python", [PYTHON, f"{real}/loop.py", "{percent}"], {"PYTHONMALLOC": "malloc"})),
        (PYTHON, Row("numpy", [PYTHON, f"{real}/numpy_loop.py", "{percent}"])),
        ("z3", Row("z3", ["z3", f"{inputs}/input.smt2"])),
        ("perl", Row("perl", ["perl", f"{real}/loop.pl", "{percent}"])),
    ]
    # Julia's deep-bound libraries abort at exit under each of the peers, so it is no row here.
    there = []
    for program, row in rows:
        if shutil.which(program):
            there.append(row)
        else:
            print(f"left out: {row.name} ({program} is not installed)")
    return there
