"""The records of each stream: which, in what order, with what numbers and sums.

Implements "The streams", "Stage health", "Process records" and "Lines of run.joined" of
the streams document.
"""

import archive
import jsontext
import schema

EVENT, RAW, KERNEL = "assay.runner.event.v0", "runner.raw_event.v0", "assay.runner.kernel_event.v0"
POLICY, SDK, LOG = "assay.runner.policy_event.v0", "assay.runner.sdk_event.v0", "runner.log_line.v0"
PROCESS, HEALTH = "runner.process.v0", "runner.stage_health.v0"
ENTRY, BINDING, AMBIGUITY = "runner.surface_entry.v0", "runner.binding.v0", "runner.ambiguity.v0"
REPORT, OBSERVED = "assay.runner.correlation_report.v0", "assay.runner.observation_health.v0"
# Stream: the kinds of records in order, those in one group may mix; how many stage healths.
STREAMS = {
    "kernel.raw": ([{EVENT, RAW}], 1),
    "kernel.normalized": ([{EVENT}, {KERNEL, PROCESS}], 2),
    "policy.log": ([{LOG}], 1),
    "sdk.log": ([{LOG}], 1),
    "run.joined": ([{EVENT}, {KERNEL}, {POLICY}, {SDK}, {ENTRY}, {BINDING}, {AMBIGUITY}, {REPORT}, {OBSERVED}], 3),
}
_NUMBERED = {EVENT, RAW, KERNEL, POLICY, SDK, LOG}
STAGES = {1: ({"runner-capture", "runner-exec"},),
          2: ({"runner-capture", "runner-exec"}, {"runner-normalize"}),
          3: ({"runner-capture", "runner-exec"}, {"runner-normalize"}, {"runner-correlate"})}
_CAPTURE = ("canary", "compat_unmapped", "decode_errors", "dropped", "emitted", "escapes", "foreign", "inherited_fds",
            "io_uring_unmapped", "lexical", "path_fault", "path_truncated", "read", "recursion_misses",
            "scratch_missing", "seen", "spooled_bytes", "survivors_killed", "user_fault", "user_truncated")


def _schema_name(name):
    base, version = name.rsplit(".", 1)
    return base.replace("assay.runner.", "").replace("runner.", "").replace("_", "-") + "-" + version


def check(stream, header, rows, trailer, found):
    """Every record of a stream whose form is right."""
    groups, healths = STREAMS[stream]
    groups = groups + [{HEALTH}]
    at, counts, kinds = 0, {}, {}
    for number, raw, value in rows:
        kind = value["schema"]
        while at < len(groups) and kind not in groups[at]:
            at += 1
        if at == len(groups):
            found.add("stream.order", "a record %s out of place" % kind, "", number)
            return
        fault = _one(kind, raw, value, stream)
        if fault:
            found.add("stream.record", fault, "", number)
            return
        if kind in _NUMBERED:
            if value["seq"] != counts.get(kind, 0):
                found.add("stream.seq", "seq is %d" % value["seq"], "", number)
            counts[kind] = counts.get(kind, 0) + 1
        kinds.setdefault(kind, []).append(value)
    if stream not in ("policy.log", "sdk.log") and [v["type"] for v in kinds.get(EVENT, ())] != ["run_started", "run_finished"]:
        found.add("stream.events", "not run_started and run_finished")
    given = kinds.get(HEALTH, [])
    if len(given) != healths or any(h["stage"] not in s for h, s in zip(given, STAGES[healths])):
        found.add("stream.health", "the stage healths are not those of the stream")
        return
    _sums(stream, given, counts, kinds, found)
    if stream == "run.joined":
        _joined(kinds, found)


def _one(kind, raw, value, stream):
    """The fault of one record, or None."""
    name = _schema_name(kind)
    times = stream == "kernel.normalized" and kind == KERNEL and "ktime_ns" in value
    bare = {k: v for k, v in value.items() if k != "ktime_ns"} if times else value
    fault = schema.load(name)(bare)
    if fault:
        return fault
    order = next(o for o in schema.keys(name) if set(bare) <= set(o)) + (["ktime_ns"] if times else [])
    if times and (not isinstance(value["ktime_ns"], int) or isinstance(value["ktime_ns"], bool) or value["ktime_ns"] < 0):
        return "ktime_ns is not a number"
    if [k for k in order if k in value] != list(value) or jsontext.canonical(value) != raw:
        return "not in canonical form"
    if kind == HEALTH and any(list(value[k]) != sorted(value[k]) for k in ("filtered", "counters", "facts")):
        return "the names of a stage health are not sorted"
    return None


def _sums(stream, given, counts, kinds, found):
    capture = given[0]
    counters = capture["counters"]
    data = {"kernel.raw": RAW, "kernel.normalized": KERNEL, "run.joined": KERNEL}.get(stream, LOG)

    def say(text):
        found.add("stream.health", text)

    if given[-1]["out"] != counts.get(data, 0):
        say("%s wrote %d records, the stream has %d" % (given[-1]["stage"], given[-1]["out"], counts.get(data, 0)))
    if stream in ("policy.log", "sdk.log"):
        if counters.get("lines") != counts.get(LOG, 0):
            say("lines is not the number of lines")
        return
    if any(c not in counters for c in _CAPTURE):
        return say("a counter of the capture is missing")
    if capture["stage"] == "runner-capture":
        if counters["read"] != counters["canary"] + counters["foreign"] + counters["decode_errors"] + capture["out"]:
            say("read is not canary + foreign + decode_errors + out")
    elif any(counters.values()):
        say("counters without a capture")
    if len(given) > 1:
        n = given[1]
        if n["in"] != capture["out"]:
            say("runner-normalize read %d records of %d" % (n["in"], capture["out"]))
        if n["in"] + n["counters"].get("added", 0) != n["out"] + sum(n["filtered"].values()):
            say("in + added is not out + filtered")
        if ("process_records" in n["counters"]) and stream == "kernel.normalized" \
                and n["counters"]["process_records"] != len(kinds.get(PROCESS, ())):
            say("process_records is not the number of process records")
    if len(given) > 2 and given[2]["in"] != given[1]["out"]:
        say("runner-correlate read another number of records")


def _joined(kinds, found):
    """Surface entries sorted, and one report whose arrays travel as lines."""
    entries = [(archive.SETS.index(e["set"]), e["value"].encode()) for e in kinds.get(ENTRY, ())]
    if entries != sorted(set(entries)):
        found.add("stream.order", "surface entries are not sorted and unique")
    codes = [a["code"].encode() for a in kinds.get(AMBIGUITY, ())]
    if codes != sorted(set(codes)):
        found.add("stream.order", "ambiguities are not sorted and unique")
    reports = kinds.get(REPORT, [])
    if len(reports) != 1 or len(kinds.get(OBSERVED, ())) != 1:
        found.add("stream.order", "not one report and one observation health")
    elif reports[0]["bindings"] or reports[0]["ambiguities"]:
        found.add("stream.record", "the arrays of the report are not empty")
    if len(kinds.get(BINDING, ())) != len(kinds.get(POLICY, ())):
        found.add("stream.record", "not one binding a policy line")
