"""The optional layer of what was left out as noise, and its note.

Implements "Filtered" of the archive contract, and its rules 29 and 30.
"""

import re

import health
import noise
import notes
import text

FILTERED = "layers/filtered.ndjson"
MOST, BYTES = 16384, 2 << 20
ROOM = 64 << 10  # no value is longer
LOADER = "tree.loader"
SYSTEM = ("/lib/", "/lib32/", "/lib64/", "/usr/lib/")
RULES = {r[1] for r in noise.RULES if r[0] == "drop"} | {LOADER}
NUMBERED = re.compile(r"(/proc/(\d+|\[pid\]/task/\d+)|/dev/pts/\d+)(/|\Z)", re.ASCII)


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
        if not all(_stable(v) and text.is_text(v) for v in of):
            return "not the text form of a path without numbers of processes"
        if not all(leaves_out(rule, v) for v in of):
            return "not what the rule leaves out"
        if len(of) > MOST or sum(len(v.encode()) for v in of) > BYTES:
            return "more than there is room for"
    return None


def _stable(value):
    """Whether a value is an absolute path of names, without numbers that differ from run to run."""
    names = value[1:].split("/")
    return value[0] == "/" and (value == "/" or not {"", ".", ".."} & set(names)) and not NUMBERED.match(value)


def leaves_out(rule, value, table="v0"):
    """Whether a rule of a table leaves a value out."""
    if rule == LOADER:
        return value.startswith(SYSTEM)
    value = re.sub(r"^/dev/pts/\[n\](?=/|$)", "/dev/pts/1", re.sub(r"^/proc/\[pid\](?=/|$)", "/proc/1", value))
    value = re.sub(r"^/proc/1/task/\[tid\](?=/|$)", "/proc/1/task/1", value)
    if table == "loader" and any(part in value for part in noise.PACKAGES):
        return False
    for verdict, name, form, pattern in noise.RULES:
        if noise.matches(form, pattern, value, 1):
            return verdict == "drop" and name == rule
    return False


def _full(values):
    """Whether there is a rule that had no room for one more value."""
    for rule in {v["rule"] for v in values}:
        of = [v["value"].encode() for v in values if v["rule"] == rule]
        if len(of) >= MOST or sum(map(len, of)) > BYTES - ROOM:
            return True
    return False


def check_note(a, report):
    """The note counts the lines; the member is not there without it, or without a line."""
    there, count = FILTERED in a.members, a.counts.get(FILTERED, 0)
    noted = a.notes.has(notes.NOISE)
    said = a.notes.values(notes.NOISE).get("values") if noted else None
    values = [x.value for x in a.layers.get(FILTERED) or ()]
    if there and (not noted or not count) or noted and said != str(count):
        report.add("filtered.note", "the note says %s, the member has %d lines" % (said, count), health.HEALTH)
    elif there and not a.notes.has(notes.CAPTURE):
        report.add("filtered.note", "nothing was seen that could be left out", health.HEALTH)
    elif noted and a.notes.number(notes.NOISE, "omitted") and not _full(values):
        report.add("filtered.note", "something is omitted, and there was room for it", health.HEALTH)
    elif noted and a.notes.values(notes.NOISE).get("table") == "loader" and any(
            leaves_out(v["rule"], v["value"]) and not leaves_out(v["rule"], v["value"], "loader") for v in values):
        report.add("filtered.note", "a value that the table keeps", health.HEALTH)
