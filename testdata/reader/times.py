"""The optional layer of times, and its note.

Implements "Times" of the archive contract, and its rules 26 to 28.
"""

import re

import effects
import health
import policy

TIMES = "layers/times.ndjson"
NOTE = "s7_times"


def check(a, report):
    """The layer times against the other layers; they were read, and have no fault."""
    lines = a.layers.get(TIMES)
    if lines is not None:
        fault = _lines(a, [x.value for x in lines])
        if fault:
            report.add("times.lines", fault, TIMES)


def check_windows(a, report):
    """No call with a window of its own has more kernel lines than happened while it ran."""
    values = [x.value for x in a.layers.get(TIMES, ())]
    kernel = [v["ns"] for v in values if v.get("layer") == "kernel"]
    calls = [v for v in values if v.get("layer") == "policy"]
    _together(a, report, kernel, calls)
    for b, v in zip(a.report["bindings"], calls):
        if effects.own_window(b) and v["source"] == "proxy" and "end_ns" in v:
            n = sum(v["ns"] <= ns <= v["end_ns"] for ns in kernel)
            if b["kernel_event_count"] > n:
                report.add("times.windows", "%d lines of %s, %d happened meanwhile"
                           % (b["kernel_event_count"], b["tool_call_id"], n), "correlation-report.json")


def _together(a, report, kernel, calls):
    """Calls at the same time, of one session: together they have no more lines than that time."""
    if a.notes.number("s4_policy_capture", "sessions") != 1 or any(c.startswith(health.UNPLACED) for c in a.report["ambiguities"] + a.report.get("notes", [])):
        return
    own = sorted((v["ns"], v["end_ns"], b["kernel_event_count"]) for b, v in zip(a.report["bindings"], calls)
                 if effects.own_window(b) and v["source"] == "proxy" and "end_ns" in v)
    while own:
        start, end, count = own.pop(0)
        while own and own[0][0] <= end:
            end, count = max(end, own[0][1]), count + own.pop(0)[2]
        if count > sum(start <= ns <= end for ns in kernel):
            report.add("times.windows", "calls at the same time have more lines than that time", "correlation-report.json")


def check_calls(a, report):
    """The order of the decisions of one id, and the calls at the same time, of one session."""
    calls = [(x.value["tool_call_id"], v) for x, v in zip(a.policy, (v.value for v in a.layers[TIMES] if v.value.get("layer") == "policy"))
             if policy.has_session(x.value)]
    for (one, v), (other, w) in zip(calls, calls[1:]):
        if one == other and v["source"] == w["source"] == "proxy" and w["line"] == v["line"] + 1 and w["ns"] < v["ns"]:
            report.add("times.calls", "%s starts before the decision that precedes it" % one, TIMES)
    if a.notes.number("s4_policy_capture", "sessions") != 1 or any(v["source"] != "proxy" for _, v in calls):
        return
    want, ahead = set(), None  # the call before that ends last
    for one, v in sorted(calls, key=lambda c: c[1]["ns"]):
        if ahead and v["ns"] <= ahead[1]:
            want |= {one, ahead[0]}
        if not ahead or v.get("end_ns", 1 << 64) > ahead[1]:
            ahead = one, v.get("end_ns", 1 << 64)
    has = {code.partition(":")[2] for code in a.report.get("notes", ()) if code.startswith("tool_calls_overlap:")}
    if has - want:
        report.add("times.calls", "by their times %s overlap, the report says %s" % (sorted(want), sorted(has)), "correlation-report.json")


def check_note(a, report):
    """The note and the member are both there or both absent."""
    texts, there = a.notes.texts(NOTE), TIMES in a.members
    count = max(a.counts.get(TIMES, 0) - 1, 0)
    if there != bool(texts):
        report.add("times.note", "the note and the member do not go together", health.HEALTH)
    elif there and (len(texts) > 1 or not re.match(r"lines=(0|[1-9]\d*)\Z", texts[0], re.ASCII)
                    or texts[0] != "lines=%d" % count):
        report.add("times.note", "the note says %s, the member has %d" % (texts, count), health.HEALTH)


def _lines(a, values):
    if not values or values[0]["type"] != "anchor":
        return "no anchor"
    about = [(name, x) for name, lines in (("intents", a.layers.get("layers/intents.ndjson") or ()), ("kernel", a.kernel), ("policy", a.policy), ("sdk", a.sdk)) for x in lines]
    if len(values) - 1 < len(about):
        missing = "a line without a time"
    else:
        missing = None
    last = {"intents": 0, "sdk": 0}
    for i, v in enumerate(values[1:]):
        if v["type"] == "anchor" or i >= len(about) or (v["layer"], v["line"]) != (about[i][0], about[i][1].number - 1):
            return "a time that is not about the next line"
        fault = _one(v, about[i][1].value)
        if fault:
            return fault
        if v["layer"] in last:
            if v["ns"] < last[v["layer"]]:
                return "a line before the one that precedes it"
            last[v["layer"]] = v["ns"]
    return missing


def _one(v, line):
    own = v["layer"] == "policy" and policy.has_session(line)
    sources = {"kernel"} if v["layer"] == "kernel" else {"proxy", "received"} if own else {"received"}
    if v["source"] not in sources:
        return "a source that the layer cannot have"
    if ("end_ns" in v) != (own and "outcome" in line):
        return "end_ns and outcome do not go together"
    if v.get("end_ns", v["ns"]) < v["ns"]:
        return "an end before the start"
    return None
