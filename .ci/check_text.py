#!/usr/bin/env python3
"""Words that have no place in the tree: calls that cannot be made safe, and in any text file paths
of one machine and hosts that packages are fetched from. This file is not searched."""
import re
import sys

import tree

CALLS = re.compile(r"(?<![\w.>])(strcpy|strcat|sprintf|vsprintf|strtok|strtok_r|gets|alloca"
                   r"|tmpnam|mktemp)\s*\(")
# Of text that comes from outside: these cannot say that it is no number.
NUMBERS = re.compile(r"(?<![\w.>])(atoi|atol|atoll|atof)\s*\(")

TEXT = {
    "a path of one machine": re.compile(r"(?<![\w.-])/(work|farm|root|home|opt/peers|mnt)/\w"),
    "a package registry": re.compile(
        r"registry\.npmjs\.org|pypi\.org|files\.pythonhosted\.org|deb\.debian\.org"
        r"|proxy\.golang\.org|\"resolved\": *\"https?:|--index-url|--registry"),
}


def without_comments(text):
    """C with comments and strings blanked, line by line."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def matches(name, text, pattern):
    for number, line in enumerate(text.splitlines(), 1):
        m = pattern.search(line)
        if m:
            yield f"{name}:{number}: {m[0].strip()}"


def main():
    bad = []
    for name in tree.files("*.c", "*.h"):
        code = without_comments(tree.read(name))
        found = list(matches(name, code, CALLS))
        if name.startswith(("lib/", "shard/", "server/")):
            found += matches(name, code, NUMBERS)
        bad += [f"{m}...): a banned call" for m in found]
    for name in tree.files():
        if name == ".ci/check_text.py" or re.search(r"\.(png|ico|woff2|gz|pb|bin)$", name):
            continue
        if name.startswith("tests/fuzz/corpus/"):
            continue
        text = tree.read(name)
        for what, pattern in TEXT.items():
            bad += [f"{m}: {what}" for m in matches(name, text, pattern)]
    print("\n".join(bad) if bad else "no banned call, path or host")
    sys.exit(len(bad) > 0)


main()
