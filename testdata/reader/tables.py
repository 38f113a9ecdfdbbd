"""The tables of the specification, by their names."""

import os
import re

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../schemas")


def rows(document, name):
    """The cells of each row but the head, without the marks of code."""
    with open(os.path.join(_FOLDER, document), encoding="utf-8") as f:
        text = f.read()
    body = re.search(r"<!-- table: %s -->\n(.*?)<!-- end -->" % re.escape(name), text, re.DOTALL).group(1)
    out = []
    for line in body.splitlines()[2:]:
        cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
        out.append([c.strip().strip("`") for c in cells])
    return out
