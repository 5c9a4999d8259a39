#!/usr/bin/env python3
"""embed.py DIST OUT.c - web assets as a sorted C table (server/static.h).

Each file of DIST is kept compressed only: FILE.gz beside it (made here when the web build made
none) and FILE.br when there is one. Without DIST/index.html a page that says how to build the
web UI stands in its place.
"""
import gzip
import hashlib
import os
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}

PLACEHOLDER = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>xprofd</title></head>
<body><h1>xprofd is running without its web pages</h1>
<p>This binary was built without them. Install Node.js 20.19 or newer and build again:</p>
<pre>cmake --preset release &amp;&amp; cmake --build --preset release</pre>
<p>The API answers as usual: <a href="api/v1/runs">api/v1/runs</a>.</p></body></html>
"""


def read(path):
    with open(path, "rb") as f:
        return f.read()


def collect(dist):
    """{path: (raw, gz, br or None)} of every file that is not itself a compressed twin."""
    found = {}
    for folder, dirs, names in os.walk(dist):
        dirs.sort()
        for name in sorted(names):
            full = os.path.join(folder, name)
            path = os.path.relpath(full, dist).replace(os.sep, "/")
            if name.startswith(".") or name.endswith((".gz", ".br", ".map")):
                continue
            raw = read(full)
            gz = read(full + ".gz") if os.path.exists(full + ".gz") else None
            br = read(full + ".br") if os.path.exists(full + ".br") else None
            found[path] = (raw, gz or gzip.compress(raw, 9, mtime=0), br)
    if "index.html" not in found:
        found["index.html"] = (PLACEHOLDER, gzip.compress(PLACEHOLDER, 9, mtime=0), None)
    return found


def array(name, data):
    rows = []
    for i in range(0, len(data), 64):
        rows.append(",".join(str(b) for b in data[i : i + 64]))
    return f"static const uint8_t {name}[] = {{\n" + ",\n".join(rows) + "};\n"


def quote(text):
    if not re.fullmatch(r"[A-Za-z0-9._/@+-]+", text):
        sys.exit(f"embed.py: {text!r}: a path with letters, digits and ._/@+- is expected")
    return f'"{text}"'


def generate(assets):
    out = ["/* Made by cmake/embed.py. */\n", '#include "server/static.h"\n']
    rows = []
    for i, path in enumerate(sorted(assets, key=lambda p: p.encode())):
        raw, gz, br = assets[path]
        out.append(array(f"gz{i}", gz))
        if br:
            out.append(array(f"br{i}", br))
        kind = TYPES.get(os.path.splitext(path)[1], "application/octet-stream")
        etag = hashlib.sha256(raw).hexdigest()[:16]
        # Vite puts a content hash into the names below assets/, so that these never change.
        hashed = "true" if path.startswith("assets/") else "false"
        br_part = f"br{i}, sizeof br{i}" if br else "NULL, 0"
        rows.append(
            f'    {{{quote(path)}, "{kind}", "\\"{etag}\\"", gz{i}, sizeof gz{i}, {br_part}, '
            f"{len(raw)}, {hashed}}},\n"
        )
    out.append("const struct static_asset static_assets[] = {\n" + "".join(rows) + "};\n")
    out.append("const size_t static_assets_n = sizeof static_assets / sizeof static_assets[0];\n")
    return "".join(out)


def main():
    dist, target = sys.argv[1:]
    text = generate(collect(dist))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w") as f:
        f.write(text)


main()
