#!/usr/bin/env python3
"""Checks archives and streams of the runner, written from its specification only.

Usage: check.py [--stream NAME [--form]] FILE     findings to standard output, exit 0, 1 or 3
       check.py [--stream NAME [--form]] --batch  file names from standard input, one JSON
                                                  result a line to standard output
--form checks only what all streams share, not the records of the named stream. A batch may name
the stream of each file: NAME, a tab, and the file name.
The exit code is that of runner-verify: 0 valid, 1 not valid, 3 not a whole archive or stream.
"""

import json
import sys

import archive
import stream


def examine(path, name, form_only):
    """Exit code and findings of one file."""
    with open(path, "rb") as f:
        data = f.read()
    found = stream.check(data, name, form_only) if name else archive.check(data)
    return found.exit_code(), found


def batch(name, form_only):
    for row in sys.stdin.read().splitlines():
        of, _, path = row.rpartition("\t")
        code, found = examine(path, of or name, form_only)
        print(json.dumps({"file": path, "exit": code, "rules": found.rules(),
                          "findings": [f[3] for f in found.list[:5]]}))


def main(argv):
    name = None
    if "--stream" in argv:
        at = argv.index("--stream")
        name = argv[at + 1]
        del argv[at:at + 2]
    form_only = "--form" in argv
    argv = [a for a in argv if a != "--form"]
    if argv == ["--batch"]:
        batch(name, form_only)
        return 0
    if len(argv) != 1 or argv[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    code, found = examine(argv[0], name, form_only)
    for rule, member, line, message in found.list:
        where = ":".join(str(p) for p in (member, line) if p)
        print("%s%s: %s" % (where + ": " if where else "", rule, message))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
