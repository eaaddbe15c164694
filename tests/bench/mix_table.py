#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes mix_table.h of the files that mix_record.c wrote: mix_table.py NAME=FILE ... > mix_table.h

Each program counts the same, however much it allocates; what is rarer than one in 50000 is left
out, so that the table stays small."""
import collections
import sys

sums = collections.Counter()
names = []
for argument in sys.argv[1:]:
    name, _, path = argument.partition("=")
    counts = collections.Counter()
    with open(path, encoding="ascii") as lines:
        for line in lines:
            size, lifetime, count = map(int, line.split())
            counts[size, lifetime] += count
    total = sum(counts.values())
    names.append(f"{name} ({total})")
    for key, count in counts.items():
        sums[key] += count / total / (len(sys.argv) - 1)

print("// SPDX-License-Identifier: MIT")
print("//")
print("// Made by mix_table.py; blocks recorded: " + ", ".join(names) + ".")
print("// A size is the largest of its class, a lifetime the shortest of its doubling.")
print("#ifndef GH_BENCH_MIX_TABLE_H\n#define GH_BENCH_MIX_TABLE_H\n")
print("// size, lifetime, weight in millionths")
print("static const struct mix_entry mix_table[] = {")
row = []
for (size, lifetime), share in sorted(sums.items()):
    if share < 1 / 50000:
        continue
    row.append(f"{{ {size}, {'MIX_LONG' if lifetime == 2**32 - 1 else lifetime}, {round(share * 1e6)} }},")
    if len(row) == 4:
        print("    " + " ".join(row))
        row = []
if row:
    print("    " + " ".join(row))
print("};\n\n#endif")
