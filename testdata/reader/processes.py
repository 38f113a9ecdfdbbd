"""The optional layer of processes, and its note.

Implements "Process" of the archive contract, and its rules 32 to 34.
"""

import re

import health
import notes
import schema
import tables
import text

PROCESSES = "layers/process.ndjson"
MOST, STATES, BYTES, NAMESPACES = 1 << 20, 64, 256 << 10, 4096
TEXTS = ("file", "script", "root")
READ, MARK = 8192, "[redacted "
RULES = {r[0] for r in tables.rows("ARCHIVE.md", "redactions")}


def in_order(value):
    """Whether the keys of the states are in the order of the table."""
    order = schema.raw("process-event-v0")["properties"]["states"]["items"]["properties"]
    inner = order["arguments"]["properties"]
    return all(list(s) == [k for k in order if k in s] for s in value["states"]) and all(list(a) == [k for k in inner if k in a] for a in _arguments(value))


def check(a, report):
    """The lines, where the member was read without a fault."""
    values = [x.value for x in a.layers.get(PROCESSES) or ()]
    if a.own and not all(map(in_order, values)):
        report.add("line.form", "the keys of a state are not in order", PROCESSES)
    fault = _tree(values) or next((f for f in map(_states, values) if f), None) or _numbers(values)
    if fault:
        report.add("process.lines", fault, PROCESSES)


def _tree(values):
    path = []
    for n, v in enumerate(values):
        if v["process"] != v["seq"] + 1:
            return "process is not one above seq"
        while path and path[-1] != v.get("parent", 0):
            path.pop()
        if not path and "parent" in v:
            return "the parent is not on the way"
        path.append(v["process"])
    return "too many processes" if len(values) > MOST else None


def _states(v):
    states = v["states"]
    if any((s["by"] == "start") != (n == 0 and "parent" in v) for n, s in enumerate(states)) or "parent" in v and not states:
        return "a start that is none, or none"
    words = [s[k] for s in states for k in TEXTS if k in s] + [a["name"] for a in _arguments(v) if "name" in a]
    lists = [w for a in _arguments(v) for k in ("argv", "digests") for w in a.get(k, ())]
    if not all(map(text.is_text, words + lists)):
        return "not in text form"
    if len(states) > STATES or sum(len(w.encode()) for w in words) + sum(len(w.encode()) + 1 for w in lists) > BYTES:
        return "more than there is room for"
    return next((f for f in map(_argument_fault, _arguments(v)) if f), None)


def _arguments(v):
    return [s["arguments"] for s in v["states"] if "arguments" in s]


def _marks(a):
    """The marks of an object's texts, as pairs of a rule and a digest."""
    return [part.partition("]")[0].partition(" hmac-sha256:")[::2] if "]" in part else ("", "") for w in [a.get("name", "")] + a.get("argv", []) for part in w.split(MARK)[1:]]


def _argument_fault(a):
    if any(rule not in RULES or digest and not re.match("[0-9a-f]{64}\\Z", digest) for rule, digest in _marks(a)):
        return "a mark of no rule"
    first, name = a.get("argv", [MARK])[0], a.get("name", "")
    if MARK not in first + name and name != first.rpartition("/")[2] and len(first.rpartition("/")[2].encode()) <= 255:
        return "another name"
    argv = a.get("argv", [])
    if argv and not any(MARK in w or not text.is_text(w) for w in argv) and sum(len(text.decode(w)) + 1 for w in argv) != a["bytes"] - a.get("unread", 0):
        return "another number of bytes"
    return None


def argument_form(a):
    """The fault of an object that its schema allows, or None."""
    n, argv, digests = a["count"], a.get("argv"), a.get("digests")
    read = a["bytes"] - a.get("unread", 0)
    if not n <= read <= READ or argv and len(argv) != n or digests and len(digests) != min(n, 64) or argv and digests \
            or len(a.get("name", "").encode()) > 255 or not n and "name" in a:
        return "numbers of arguments that do not go together"
    return None


def line_form(v):
    """The same of a whole line."""
    return next((f for f in map(argument_form, _arguments(v)) if f), None)


def _numbers(values):
    highest = 0
    for number in (s.get("mount_namespace", 0) for v in values for s in v["states"]):
        if number > min(highest + 1, NAMESPACES):
            return "a number of a mount namespace that cannot be"
        highest = max(highest, number)
    return None


def check_note(a, report):
    """The note counts what the lines have; the member is not there without it, or without a line."""
    values = [x.value for x in a.layers.get(PROCESSES) or ()]
    noted = a.notes.has(notes.PROCESSES)
    said = tuple(a.notes.number(notes.PROCESSES, k) for k in ("processes", "states_omitted", "unknown"))
    cut = sum(v.get("states_omitted", 0) for v in values)
    unknown = sum("uid" not in s or s.get("root") == "?" for v in values for s in v["states"])
    if PROCESSES in a.members and (not noted or not a.counts.get(PROCESSES)) or noted and said != (a.counts.get(PROCESSES, 0), cut, unknown):
        report.add("process.note", "the note does not say what the lines add up to", health.HEALTH)
    elif noted and not _as_noted(values, a.notes.values(notes.PROCESSES)):
        report.add("process.note", "the note does not say how arguments were recorded", health.HEALTH)


def _as_noted(values, note):
    given = [a for v in values for a in _arguments(v)]
    some, keyed = [a for a in given if a["count"]], note.get("key") != "none"
    want = {"full": {"argv"}, "hash": {"digests"} if keyed else set()}.get(note.get("argv"), set())
    return not (note.get("argv") == "none" and some) and all({"argv", "digests"} & set(a) == want for a in some) \
        and all(bool(digest) == keyed for a in given for _, digest in _marks(a))


def check_kernel(a, report):
    """The processes share out the kernel lines, and executed what these say."""
    values, lines = [x.value for x in a.layers.get(PROCESSES) or ()], [x.value for x in a.kernel]
    if not values:
        return
    at, missing, numbered = 0, 0, True
    for v in values:
        own = lines[at:at + v["lines"]]
        at += v["lines"]
        if at > len(lines) or len({x["pid"] for x in own}) > 1:
            return _kernel(report, "the lines of process %d" % v["process"])
        numbered = numbered and all(x["pid"] == v["process"] for x in own)
        execs = [w for s in v["states"] if s["by"] == "exec" for w in [(4, s.get("file", ""))] + [(200, s.get("script"))] * ("script" in s)]
        for told in ((x["event_type"], x["value"] or "") for x in own if x["event_type"] == 4 or x["event_type"] == 200 and x["value"]):
            while execs and execs[0] != told:
                execs.pop(0)
                missing += 1
            if execs:
                execs.pop(0)
            elif "states_omitted" not in v:
                return _kernel(report, "an exec of process %d" % v["process"])
        missing += len(execs)
    if at < len(lines) and not a.notes.number(notes.PROCESSES, "omitted"):
        _kernel(report, "kernel lines are left")
    elif missing > a.notes.number(notes.DROP, "dropped"):
        _kernel(report, "execs without a line")
    elif a.notes.has("canonical_pids") and not numbered:
        _kernel(report, "numbers of processes")


def _kernel(report, fault):
    report.add("process.kernel", fault, PROCESSES)
