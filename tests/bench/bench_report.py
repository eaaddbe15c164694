# SPDX-License-Identifier: MIT
"""Tables, FIGURE lines, the JSON file and the chart."""
import json
import os
import platform
import re
import subprocess
import sys

figures = {}


def figure(name, value, unit):
    """One line that scripts can read; also kept for the JSON file."""
    text = f"{value:.0f}" if isinstance(value, int) or unit in ("imports", "regions") else f"{value:.4g}"
    print(f"FIGURE {name} {text} {unit}", flush=True)
    figures[name] = [value, unit]


def table(title, columns, rows, digits=2):
    print(f"\n{title}")
    width = max([len(name) for name, _ in rows] + [8])
    print("| " + "program".ljust(width) + " | " + " | ".join(column.rjust(9) for column in columns) + " |")
    print("| " + "-" * width + " | " + " | ".join("-" * 9 for _ in columns) + " |")
    for name, cells in rows:
        print("| " + name.ljust(width) + " | "
              + " | ".join((f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)).rjust(9)
                           for cell in cells) + " |", flush=True)


def output_of(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout
    except OSError:
        return ""


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        model = re.search(r"model name\s*: (.*)", text.read())
    with open("/proc/meminfo", encoding="ascii") as text:
        memory = int(re.search(r"MemTotal:\s*(\d+)", text.read()).group(1))
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as text:
            huge = re.search(r"\[(\w+)\]", text.read()).group(1)
    except OSError:
        huge = "none"
    system = re.search(r'PRETTY_NAME="(.*)"', output_of("cat", "/etc/os-release"))
    return {"processor": model.group(1) if model else platform.machine(), "processors": os.cpu_count(),
            "memory_gib": round(memory / 2**20, 1), "kernel": platform.release(),
            "system": system.group(1) if system else "", "huge_pages": huge, "load": os.getloadavg()}


PACKAGES = ("libc6", "libjemalloc2", "libmimalloc2.0", "libtcmalloc-minimal4", "redis-server", "sqlite3", "gcc",
            "python3-minimal", "python3-numpy", "z3", "perl-base", "libze1")


def versions():
    lines = output_of("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n", *PACKAGES)
    return {name: version for name, version, status in
            (line.split() for line in lines.splitlines() if len(line.split()) == 3) if status == "installed"}


def command_line():
    """What was typed, without where things lie on this machine."""
    places = ("--build", "--library", "--results")
    words = [word for at, word in enumerate(sys.argv[1:]) if word not in places and sys.argv[at] not in places]
    return " ".join(["scripts/bench.sh", *words])


def save(folder, part, command, raw):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{part}.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"part": part, "command": command, "machine": machine(), "versions": versions(),
                   "figures": figures, "raw": raw}, out, indent=1)
        out.write("\n")
    print(f"saved {os.path.basename(path)}")


COLOURS = {"glibc": "#9aa0a6", "gpuhost": "#d1495b", "jemalloc": "#3b6ea5", "mimalloc": "#2e8b57",
           "tcmalloc": "#e0a030"}


def chart(folder, time, memory):
    """Ratios to glibc for each program, and their geometric mean."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "gpuhost"
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    names = [name for name in next(iter(time.values())) if name != "glibc"]
    plot, axes = pyplot.subplots(2, 1, figsize=(13, 8), sharex=True)
    places = range(len(time) + 1)
    for axis, (rows, label) in zip(axes, ((time, "time, ratio to glibc"), (memory, "peak RSS, ratio to glibc"))):
        for number, name in enumerate(names):
            product = 1.0
            for row in rows.values():
                product *= row[name]
            values = [row[name] for row in rows.values()] + [product ** (1 / len(rows))]
            axis.bar([place + (number - 1.5) * 0.2 for place in places], values, 0.2, label=name,
                     color=COLOURS.get(name))
        axis.axhline(1.0, color="black", linewidth=0.8)
        axis.set_ylabel(label)
        axis.set_ylim(0, 2.5)
        axis.margins(x=0.01)
    axes[0].legend(ncol=4, loc="upper left")
    axes[1].set_xticks(list(places), [*time, "geometric\nmean"], rotation=60, ha="right")
    plot.suptitle("malloc and real programs, each interleaved in one run: median, lower is better "
                  "(bars above 2.5 are cut)")
    plot.tight_layout()
    path = os.path.join(folder, "malloc.svg")
    plot.savefig(path, metadata={"Date": None, "Creator": None})
    print(f"saved {os.path.basename(path)}")
