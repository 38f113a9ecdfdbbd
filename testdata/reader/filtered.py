"""The optional layer of what was left out as noise, and its note.

Implements "Filtered" of the archive contract, and its rules 29 and 30.
"""

import health
import noise
import notes
import text

FILTERED = "layers/filtered.ndjson"
MOST, BYTES = 16384, 2 << 20
RULES = {r[1] for r in noise.RULES if r[0] == "drop"} | {"tree.loader"}


def _key(v):
    return v["rule"].encode(), v["value"].encode()


def in_order(values):
    """Whether the lines are a sorted set."""
    keys = [_key(v) for v in values]
    return all(a < b for a, b in zip(keys, keys[1:]))


def check(a, report):
    """The lines, where the member was read without a fault."""
    fault = _fault([x.value for x in a.layers.get(FILTERED) or ()])
    if fault:
        report.add("filtered.lines", fault, FILTERED)


def _fault(values):
    if not in_order(values):
        return "not sorted and unique"
    for rule in {v["rule"] for v in values}:
        of = [v["value"] for v in values if v["rule"] == rule]
        if rule not in RULES:
            return "no rule"
        if not all(v.startswith("/") and text.is_text(v) for v in of):
            return "not the text form of a path"
        if len(of) > MOST or sum(len(v.encode()) for v in of) > BYTES:
            return "more than there is room for"
    return None


def check_note(a, report):
    """The note counts the lines; the member is not there without it, or without a line."""
    there, count = FILTERED in a.members, a.counts.get(FILTERED, 0)
    noted = a.notes.has(notes.NOISE)
    said = a.notes.values(notes.NOISE).get("values") if noted else None
    if there and (not noted or not count) or noted and said != str(count):
        report.add("filtered.note", "the note says %s, the member has %d lines" % (said, count), health.HEALTH)
