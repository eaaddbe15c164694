# SPDX-License-Identifier: MIT
# Array expressions with temporaries, from 4 KB to 16 MB. Argument: percent of the usual work.
import sys

import numpy

percent = int(sys.argv[1])
for elements, rounds in ((500, 12000), (20000, 700), (300000, 40), (2000000, 6)):
    a = numpy.linspace(0.0, 1.0, elements)
    b = a[::-1].copy()
    kept = []
    for _ in range(max(1, rounds * percent // 100)):
        c = a * 2.0 + b
        d = (c - a) * (c + b)
        kept.append(d[: elements // 4].copy())
        if len(kept) > 8:
            kept.pop(0)
        a, b = b, d / d.max()
assert numpy.isfinite(b).all()
