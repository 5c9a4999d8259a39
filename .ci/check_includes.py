#!/usr/bin/env python3
"""Reads #include lines and holds them against the arrows of docs/architecture.md.

A row of RULES says what the files below a folder may include; the longest folder that fits a file
is its row. System headers are of no concern here, save those that have one owner (OWNED).
"""
import re
import sys

import tree

BASE, RUN = "lib/base/", "lib/run/"
STORE, HTTP, NET = "lib/objstore/", "lib/http/", "lib/net/"
WIRE = "*.pb-c.h"  # what protoc-c makes of proto/

RULES = {
    "lib/base/": [BASE],
    "lib/run/": [RUN, BASE],
    "lib/net/": [NET, RUN, BASE],
    "lib/objstore/": [STORE, NET, RUN, BASE],
    "lib/http/": [HTTP, RUN, BASE],
    "lib/auth/": ["lib/auth/", NET, RUN, BASE, WIRE],
    "lib/cluster/": ["lib/cluster/", NET, "lib/auth/", NET, RUN, BASE],
    "shard/": ["shard/", STORE, RUN, BASE, WIRE],
    "shard/decode/": ["shard/decode/", BASE],
    "shard/store/": ["shard/store/", STORE, BASE],
    "shard/lod/": ["shard/lod/", "shard/store/", BASE],
    "shard/derive/": ["shard/derive/", "shard/store/", "shard/decode/", BASE],
    "shard/stats/": ["shard/stats/", "shard/hlo/", "shard/derive/", "shard/store/",
                     "shard/decode/", BASE],
    "shard/hlo/": ["shard/hlo/", BASE],
    "shard/query/": ["shard/query/", "shard/lod/", "shard/derive/", "shard/store/",
                     "shard/decode/", "shard/out.h", "shard/args.h", BASE, WIRE],
    "shard/report/": ["shard/report/", "shard/out.h", BASE],
    "shard/tools/": ["shard/tools/", "shard/report/", "shard/stats/", "shard/hlo/", "shard/query/", "shard/lod/",
                     "shard/derive/", "shard/store/", "shard/decode/", "shard/out.h", "shard/args.h", BASE],
    "server/": ["server/", "lib/", "shard/shard.h", "shard/tools/tools.def", WIRE],
    "loadtest/": ["loadtest/", "lib/", "shard/", WIRE],
    "cmake/": [],
    "tests/": ["tests/", "lib/", "shard/", "server/", "loadtest/", WIRE],
}

# Only these shard files may read objects: what loads a part, and the part for one event's detail.
OBJSTORE_READERS = re.compile(r"shard/((shard|load|cache|gather)\w*|store/part)\.[ch]$")

# A library with one home: header pattern -> folders that may include it.
OWNED = {
    r"h2o(/|\.h)": ["lib/http/"],
    r"openssl/": ["lib/http/", "lib/auth/", "lib/cluster/", "lib/objstore/", "loadtest/lib/", "tests/"],
    r"nghttp2/": ["loadtest/lib/"],
    r"uv\.h": ["lib/run/", "lib/net/", "lib/http/", "lib/cluster/", "tests/"],
    r"jemalloc/": ["lib/base/", "server/main.c", "server/app.c", "server/metrics.c", "loadtest/"],
    r"jansson\.h": ["lib/cluster/", "server/", "lib/auth/", "lib/objstore/", "loadtest/", "tests/"],
    r"cjose/": ["lib/auth/"],
    r"curl/": ["loadtest/", "tests/", "lib/net/", "lib/cluster/"],
}


def fits(target, allowed):
    for a in allowed:
        if a == WIRE and target.endswith(".pb-c.h"):
            return True
        if target == a or (a.endswith("/") and target.startswith(a)):
            return True
    return False


def check_ours(name, target):
    if target.endswith(".c"):
        return "a .c file is no header"
    row = max((f for f in RULES if name.startswith(f)), key=len, default=None)
    if row is None:
        return "a folder that .ci/check_includes.py does not know"
    if not fits(target, RULES[row]):
        return f"{row} may see {', '.join(RULES[row]) or 'nothing of ours'}"
    if row == "shard/" and target.startswith(STORE) and target != "lib/objstore/objstore.h":
        return "shard sees lib/objstore/objstore.h only"
    if target == "lib/objstore/objstore.h" and name.startswith("shard/"):
        if name != "shard/shard.h" and not OBJSTORE_READERS.match(name):
            return "only the shard's loader and cache read objects"
    if target.endswith("_int.h") and not name.startswith("tests/"):
        # Its own folder, or the one above: the loader fills what store/ packs.
        if not target.startswith(name.rsplit("/", 1)[0] + "/"):
            return "an _int.h is its own folder's business"
    return None


def check_system(name, target):
    for pattern, homes in OWNED.items():
        if re.match(pattern, target) and not any(name.startswith(h) for h in homes):
            return f"{target} belongs to {', '.join(homes)}"
    return None


def main():
    bad = count = 0
    for name in tree.files("*.c", "*.h", "*.def"):
        for number, line in enumerate(tree.read(name).splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', line)
            if not m:
                continue
            count += 1
            why = check_ours(name, m[1]) if m[1] else check_system(name, m[2])
            if why:
                print(f"{name}:{number}: {line.strip()}: {why}")
                bad += 1
    print(f"{count} includes, {bad} against the arrows")
    sys.exit(bad > 0)


main()
