#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the inputs of the real programs, the same every time: make_inputs.py FOLDER [PERCENT]

input.c for the compiler, input.sql for sqlite3, input.smt2 for z3."""
import pathlib
import random
import sys

folder = pathlib.Path(sys.argv[1])
percent = int(sys.argv[2]) if len(sys.argv) > 2 else 100
folder.mkdir(parents=True, exist_ok=True)
draw = random.Random(5)


def c_function(number):
    lines = [f"int step_{number}(struct state *s, int a, int b)", "{", "    int sum = a;"]
    for _ in range(draw.randint(4, 12)):
        kind = draw.randrange(4)
        i, k = draw.randrange(16), draw.randrange(1, 50)
        if kind == 0:
            lines.append(f"    for (int i = 0; i < {k}; i++) sum += s->table[(i + b) & 15] * {k};")
        elif kind == 1:
            lines.append(f"    if (s->table[{i}] > sum) {{ s->name[{i}] = (char)sum; sum ^= b << {k % 7}; }}")
        elif kind == 2:
            lines.append(f"    switch (sum & 3) {{ case 0: sum += {k}; break; case 1: s->table[{i}]++; break; "
                         f"default: sum -= b; }}")
        elif number > 0:
            lines.append(f"    sum += step_{draw.randrange(number)}(s, b, sum & {k});")
    lines += [f"    return snprintf(s->name, sizeof s->name, \"%d-{number}\", sum) + sum;", "}", ""]
    return lines


functions = max(10, 80 * percent // 100)
text = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>",
        "struct state { int table[16]; char name[64]; };", ""]
for n in range(functions):
    text += c_function(n)
text += [f"int run(struct state *s) {{ return step_{functions - 1}(s, 1, 2); }}", ""]
(folder / "input.c").write_text("\n".join(text), encoding="ascii")

rows = 80000 * percent // 100
(folder / "input.sql").write_text(f"""
CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT, length INTEGER, kind INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
  INSERT INTO word SELECT i, 'word ' || (i * 7919 % 100003) || ' of ' || hex(i), i % 97, i % 13 FROM n;
CREATE INDEX by_text ON word(text);
CREATE TABLE pair AS SELECT a.id AS one, b.id AS two FROM word a JOIN word b ON b.id = (a.id * 31 % {rows}) + 1;
SELECT kind, count(*), max(text), group_concat(substr(text, 6, 3)) FROM word GROUP BY kind ORDER BY 2;
SELECT count(*) FROM pair JOIN word ON word.id = pair.two WHERE word.text LIKE '%9 of%';
UPDATE word SET text = upper(text) || '!' WHERE kind < 4;
DELETE FROM word WHERE kind = 5;
SELECT length, count(DISTINCT text) FROM word GROUP BY length ORDER BY length;
""", encoding="ascii")

# n pigeons in n - 1 holes, and a multiplication that cannot be.
pigeons = 9
smt = ["(set-logic QF_BV)"]
for p in range(pigeons):
    for h in range(pigeons - 1):
        smt.append(f"(declare-const p{p}_{h} Bool)")
    smt.append("(assert (or " + " ".join(f"p{p}_{h}" for h in range(pigeons - 1)) + "))")
for h in range(pigeons - 1):
    for p in range(pigeons):
        for q in range(p):
            smt.append(f"(assert (not (and p{p}_{h} p{q}_{h})))")
smt += ["(check-sat)", "(reset)", "(set-logic QF_BV)",
        "(declare-const x (_ BitVec 11))", "(declare-const y (_ BitVec 11))",
        "(assert (= (bvmul (concat #b00000000000 x) (concat #b00000000000 y)) #b0000111111111000110111))",
        "(assert (bvugt x #b00000000001))", "(assert (bvugt y #b00000000001))", "(check-sat)", ""]
(folder / "input.smt2").write_text("\n".join(smt), encoding="ascii")
