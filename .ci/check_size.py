#!/usr/bin/env python3
"""A C function of more than 150 lines or a cyclomatic complexity of more than 25 fails, unless
.ci/size_allow.txt names it (`path:function reason`). Counted by lizard; without it the check is
skipped and says so."""
import os
import statistics
import sys

import tree

LINES_MAX, COMPLEXITY_MAX = 150, 25

try:
    import lizard
except ImportError:
    print("lizard is not installed (.ci/install does it): sizes were not checked")
    sys.exit(0)


def allowed():
    rows = {}
    for line in tree.read(".ci/size_allow.txt").splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.partition(" ")
            if not reason.strip():
                sys.exit(f".ci/size_allow.txt: {key}: a reason is expected")
            rows[key] = reason
    return rows


def main():
    allow, used, lengths, bad = allowed(), set(), [], 0
    for name in tree.files("lib/*.c", "lib/*.h", "shard/*.c", "shard/*.h", "server/*.c",
                           "server/*.h", "loadtest/*.c", "tests/*.c", "cmake/*.c"):
        for f in lizard.analyze_file(os.path.join(tree.ROOT, name)).function_list:
            lengths.append(f.length)
            if f.length <= LINES_MAX and f.cyclomatic_complexity <= COMPLEXITY_MAX:
                continue
            key = f"{name}:{f.name}"
            if key in allow:
                used.add(key)
                continue
            print(f"{name}:{f.start_line}: {f.name}: {f.length} lines, "
                  f"complexity {f.cyclomatic_complexity}")
            bad += 1
    for key in sorted(set(allow) - used):
        print(f".ci/size_allow.txt: {key} needs no exception any more")
        bad += 1
    median = statistics.median(lengths) if lengths else 0
    print(f"{len(lengths)} functions, median {median:g} lines, {bad} too large")
    sys.exit(bad > 0)


main()
