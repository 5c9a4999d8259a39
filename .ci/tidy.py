#!/usr/bin/env python3
"""clang-tidy over our sources (not the tests and tools), one a core, by the compile commands of
build/clang. A file that was clean is not looked at again until it, a header or the rules change.

tidy.py [--seconds N]   files not reached in N seconds are counted and left for the next run
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

import tree

BUILD = os.path.join(tree.ROOT, "build/clang")
STAMPS = os.path.join(tree.ROOT, "build/tidy")
FOLDERS = ("lib/", "shard/", "server/")


def digest(*names):
    h = hashlib.sha256()
    for name in names:
        with open(name, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


def sources():
    with open(os.path.join(BUILD, "compile_commands.json")) as f:
        for entry in json.load(f):
            name = os.path.relpath(entry["file"], tree.ROOT)
            if name.startswith(FOLDERS):
                yield name


def tidy(name):
    return subprocess.run(["clang-tidy", "-quiet", "-p", BUILD, name], cwd=tree.ROOT,
                          capture_output=True, text=True)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seconds", type=float, default=240)
    end = time.monotonic() + args.parse_args().seconds
    os.makedirs(STAMPS, exist_ok=True)
    headers = [os.path.join(tree.ROOT, n) for n in tree.files("*.h", "*.def", ".clang-tidy")]
    headers += sorted(glob.glob(os.path.join(BUILD, "generated/**/*.h"), recursive=True))
    common = digest(*headers)

    def one(name):
        stamp = hashlib.sha256((common + name + digest(os.path.join(tree.ROOT, name))).encode())
        stamp = os.path.join(STAMPS, stamp.hexdigest())
        if os.path.exists(stamp):
            return "known", ""
        if time.monotonic() > end:
            return "left", ""
        done = tidy(name)
        if done.returncode == 0:
            open(stamp, "w").close()
            return "clean", ""
        return "bad", f"{done.stdout}{done.stderr if not done.stdout else ''}"

    counts = {"known": 0, "clean": 0, "left": 0, "bad": 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict, text in pool.map(one, sorted(set(sources()))):
            counts[verdict] += 1
            if text:
                print(text)
    print("clang-tidy: {clean} clean, {known} unchanged, {left} not reached in time, {bad} bad"
          .format(**counts))
    sys.exit(counts["bad"] > 0)


main()
