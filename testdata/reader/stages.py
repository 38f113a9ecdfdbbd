"""Stage healths: counters, facts and sums.

Implements "Stage health" of the streams document.
"""

import re

import noise
import notes
import observed
import tables

LOGS = ("intent.log", "policy.log", "sdk.log")
COUNTERS = ("canary", "compat_unmapped", "decode_errors", "dropped", "emitted", "escapes", "foreign", "inherited_fds",
            "io_uring_unmapped", "lexical", "path_fault", "path_truncated", "read", "recursion_misses",
            "scratch_missing", "seen", "spooled_bytes", "survivors_killed", "user_fault", "user_truncated")
_CANARY = r"seen|missed|not_run"
_IDS = r"(?:\d+=[A-Za-z0-9_.-]{1,64}(?: (?!\Z)|\Z))*"
_UNAVAILABLE = r"unavailable: [^\n]+"
FACTS = {
    "canary_after": _CANARY, "canary_before": _CANARY, "end": r"empty|killed|signal", "hooks_missing": r"[^\n]*",
    "io_uring": r"attached|" + _UNAVAILABLE, "kernel_capture": r"attached|not_requested|unsupported",
    "platform": r"[^\n]+", "redundant": r"off|on: lost=\d+|" + _UNAVAILABLE, "supervisor": r"exec|none",
    "unix_hooks": r"attached|" + _UNAVAILABLE,
}
CLOCK = {"run_clock": r"monotonic_ns=[1-9]\d* realtime_ns=\d+ finished_ns=\d+"}
ENFORCED = {"network_rules": r"off|enforced", "network_policy": r"sha256:[0-9a-f]{64}", "file_rules": r"off|enforced",
            "file_policy": r"sha256:[0-9a-f]{64}", "file_mechanism": r"lsm|fanotify|landlock", "network_rule_ids": _IDS, "file_rule_ids": _IDS}


def faults(stream, healths, records, numbers, document=None):
    """What is wrong with the stage healths of a stream that has so many data records, and others by counter.
    A run.joined stream has the observation health as a document, which follows from them."""
    capture, last = healths[0], healths[-1]
    if last["out"] != records:
        yield "%s wrote %d records, the stream has %d" % (last["stage"], last["out"], records)
    if stream in LOGS:
        if capture["counters"].get("lines") != records or capture["in"] != capture["out"]:
            yield "lines is not the number of lines"
        return
    yield from _capture(capture)
    if len(healths) > 1:
        yield from _normalize(capture, healths[1], numbers["process_records"] if stream == "kernel.normalized" else None)
        if notes.Notes(healths[1]["notes"]).number(notes.NOISE, "values") != numbers["filtered"]:
            yield "values of normalize_noise is not the number of lines of the layer filtered"
        if notes.Notes(healths[1]["notes"]).number(notes.PROCESSES, "processes") != numbers["process_lines"]:
            yield "processes of normalize_processes is not the number of lines of the layer process"
    if len(healths) > 2:
        if last["in"] != healths[1]["out"]:
            yield "runner-correlate read another number of records"
        if last["filtered"] or last["notes"]:
            yield "runner-correlate filters nothing and says nothing"
        if document:
            yield from observed.faults(document, capture, healths[1])
        for name in ("filtered", "intents", "policy_events", "process_lines", "sdk_events", "surface_entries", "times"):
            if last["counters"].get(name, 0) != numbers[name]:
                yield "%s is not the number of records" % name


def _capture(h):
    n, facts = h["counters"], h["facts"]
    missing = [c for c in COUNTERS if c not in n]
    if missing:
        yield "no counter %s" % missing[0]
        return
    captured = facts.get("kernel_capture") == "attached"
    if captured and facts.get("platform", "linux") != "linux":
        yield "a kernel capture on %s" % facts["platform"]
    if "kernel_capture" not in facts:
        yield "no fact kernel_capture"
    for name, form in list(FACTS.items()) + list(ENFORCED.items()) + list(CLOCK.items()):
        if name in FACTS and name not in facts:
            if captured:
                yield "no fact %s" % name
        elif name in facts and not re.match("(?:%s)\\Z" % form, facts[name]) \
                and (name == "kernel_capture" or captured or facts[name] != "not_run"):
            yield "fact %s is %s" % (name, facts[name])
    for state, with_it in (("network_rules", ("network_policy",)), ("file_rules", ("file_policy", "file_mechanism"))):
        if any((name in facts) != (facts.get(state) == "enforced") for name in with_it):
            yield "%s and %s do not go together" % (state, " and ".join(with_it))
    if h["stage"] == "runner-capture":
        if n["read"] + n.get("file_inserted", 0) != n["canary"] + n["foreign"] + n["decode_errors"] + n.get("outcomes", 0) + h["out"]:
            yield "read + file_inserted is not canary + foreign + decode_errors + outcomes + out"
        known = [r[0] for r in tables.rows("STREAMS.md", "counters")]
        family = tuple(name[:name.rindex(".") + 1] for name in known if "." in name)
        unknown = [name for name in n if name not in known and not name.startswith(family)]
        if unknown:
            yield "counters that nobody knows: %s" % unknown
    elif any(n.values()):
        yield "counters without a capture"
    missed = sum(v for k, v in n.items() if k.startswith("missed."))
    lost = facts.get("redundant", "").partition("on: lost=")[2]
    if missed != n.get("recursion_misses", 0) + int(lost if lost.isdigit() else 0) and (missed or "preemption" in facts):
        yield "missed.* is not recursion_misses and what no copy saw"
    for total, prefix in (("dropped", "dropped."), ("blocked", "blocked.rule."), ("file_blocked", "file_blocked.rule.")):
        parts = [v for k, v in n.items() if k.startswith(prefix)]
        if (parts or total == "dropped" and "preemption" in facts) and sum(parts) != n.get(total, 0):
            yield "%s* is not %s" % (prefix, total)
    moves = [n.get(p + "move", 0) for p in ("dropped.", "missed.")]
    if any(n.get(p + op, 0) for p in ("dropped.", "missed.") for op in ("fork", "exec")):
        moves.append(n["foreign"])
    if n["escapes"] < sum(moves):
        yield "%d moves cannot be ruled out, and there are %d escapes" % (sum(moves), n["escapes"])


def _normalize(capture, h, processes):
    n = h["counters"]
    if h["in"] != capture["out"]:
        yield "runner-normalize read %d records of %d" % (h["in"], capture["out"])
    if h["in"] + n.get("added", 0) != h["out"] + sum(h["filtered"].values()):
        yield "in + added is not out + filtered"
    unknown = set(h["filtered"]) - {r[1] for r in noise.RULES} - {r[0] for r in tables.rows("STREAMS.md", "filters")}
    if unknown:
        yield "filters that are no rules: %s" % sorted(unknown)
    given = notes.Notes(h["notes"])
    if any(name not in ("canonical_pids", notes.NOISE, notes.PROCESSES, notes.DROP) or not notes.well_formed(name, text) for name, text in given.list) \
            or not given.formed or given.number(notes.DROP, "dropped") != h["filtered"].get("user.drop", 0):
        yield "notes that runner-normalize does not have"
    if processes is not None and n.get("process_records", 0) != processes:
        yield "process_records is not the number of process records"
