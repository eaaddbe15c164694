# SPDX-License-Identifier: MIT
# What a script does: parse, count, sort, join. Argument: percent of the usual work.
import json
import sys

rounds = 5 * int(sys.argv[1]) // 100 or 1
total = 0
for number in range(rounds):
    people = [{"name": f"person {i * 7919 % 1009}", "age": i % 90, "tags": [str(i % k) for k in range(2, 8)]}
              for i in range(9000)]
    text = json.dumps(people)
    again = json.loads(text)
    groups = {}
    for person in again:
        groups.setdefault(person["name"], []).append((person["age"], tuple(person["tags"])))
    for name in sorted(groups):
        total += len(" ".join(tag for _, tags in groups[name] for tag in tags).split())
    matrix = [[x * y for x in range(200)] for y in range(200)]
    total += sum(map(sum, zip(*matrix)))
assert total > 0
