"""The records of each stream: which, in what order, with what numbers and sums.

Implements "The streams", "Stage health", "Process records" and "Lines of run.joined" of
the streams document.
"""

import ambiguities
import archive
import filtered
import intents
import jsontext
import lines
import processes
import schema
import stages
import text

EVENT, RAW, KERNEL = "assay.runner.event.v0", "runner.raw_event.v0", "assay.runner.kernel_event.v0"
INTENT = "assay.runner.intent.v0"
POLICY, SDK, LOG = "assay.runner.policy_event.v0", "assay.runner.sdk_event.v0", "runner.log_line.v0"
TIME, FILTERED, PROCESSES = "assay.runner.time.v0", "assay.runner.filtered.v0", "assay.runner.process_event.v0"
PROCESS, HEALTH = "runner.process.v0", "runner.stage_health.v0"
TICK, NAME, CHANGE = "assay.runner.clock_tick.v0", "assay.runner.dns_name.v0", "assay.runner.file_change.v0"
EXCHANGE, BOX, CLOCK = "assay.runner.network_exchange.v0", "assay.runner.box.v0", "assay.runner.clock.v0"
ENV, NET = "assay.runner.env.v0", "assay.runner.net.v0"
ENTRY, BINDING, AMBIGUITY = "runner.surface_entry.v0", "runner.binding.v0", "runner.ambiguity.v0"
REPORT, OBSERVED = "assay.runner.correlation_report.v0", "assay.runner.observation_health.v0"
# Stream: the kinds of records in order, those in one group may mix; how many stage healths.
STREAMS = {
    "kernel.raw": ([{EVENT, RAW}], 1),
    "kernel.normalized": ([{EVENT}, {FILTERED}, {KERNEL, PROCESS}, {PROCESSES}], 2),
    "intent.log": ([{LOG}], 1),
    "policy.log": ([{LOG}], 1),
    "sdk.log": ([{LOG}], 1),
    "run.joined": ([{EVENT}, {TICK}, {NAME}, {CHANGE}, {FILTERED}, {INTENT}, {KERNEL}, {EXCHANGE}, {POLICY}, {PROCESSES}, {SDK}, {TIME}, {BOX}, {CLOCK}, {ENV}, {NET}, {ENTRY}, {BINDING}, {AMBIGUITY}, {REPORT}, {OBSERVED}], 3),
}
NAMES = ("path", "user_path", "base", "path2", "user_path2", "base2", "interp", "addr", "root")
MAX_TASK = 1 << 22
_NUMBERED = {EVENT, RAW, FILTERED, INTENT, KERNEL, POLICY, PROCESSES, SDK, TIME, LOG, TICK, NAME, CHANGE, EXCHANGE}
STAGES = {1: ({"runner-capture", "runner-exec"},),
          2: ({"runner-capture", "runner-exec"}, {"runner-normalize"}),
          3: ({"runner-capture", "runner-exec"}, {"runner-normalize"}, {"runner-correlate"})}
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
            found.add("stream.health" if kind == HEALTH else "stream.record", fault, "", number)
            return
        if kind in _NUMBERED:
            if value["seq"] != counts.get(kind, 0):
                found.add("stream.seq", "seq is %d" % value["seq"], "", number)
            counts[kind] = counts.get(kind, 0) + 1
        kinds.setdefault(kind, []).append(value)
    if stream not in stages.LOGS and [v["type"] for v in kinds.get(EVENT, ())] != ["run_started", "run_finished"]:
        found.add("stream.events", "not run_started and run_finished")
    given = kinds.get(HEALTH, [])
    if len(given) != healths or any(h["stage"] not in s for h, s in zip(given, STAGES[healths])):
        found.add("stream.health", "the stage healths are not those of the stream")
        return
    data = {"kernel.raw": RAW, "kernel.normalized": KERNEL, "run.joined": KERNEL}.get(stream, LOG)
    numbers = {"intents": len(kinds.get(INTENT, ())), "policy_events": len(kinds.get(POLICY, ())), "sdk_events": len(kinds.get(SDK, ())),
               "filtered": len(kinds.get(FILTERED, ())), "process_lines": len(kinds.get(PROCESSES, ())), "surface_entries": len(kinds.get(ENTRY, ())), "times": len(kinds.get(TIME, ())), "process_records": len(kinds.get(PROCESS, ()))}
    for fault in stages.faults(stream, given, counts.get(data, 0), numbers, (kinds.get(OBSERVED) or [None])[0]):
        found.add("stream.health", fault)
    if stream == "kernel.raw":
        _sequences(kinds.get(RAW, ()), given[0]["counters"], found)
    if stream == "kernel.normalized" and not filtered.in_order(kinds.get(FILTERED, ())):
        found.add("stream.order", "filtered values are not sorted and unique")
    if stream == "kernel.normalized":
        _tree([value for _, _, value in rows], found)
    if stream == "run.joined":
        _joined(kinds, found)


def _one(kind, raw, value, stream):
    """The fault of one record, or None."""
    name = _schema_name(kind)
    times = stream == "kernel.normalized" and kind == KERNEL and "ktime_ns" in value
    bare = {k: v for k, v in value.items() if k != "ktime_ns"} if times else value
    fault = schema.load(name)(bare) or kind == KERNEL and lines.kind_fault(bare) or kind == RAW and _raw(bare)
    if fault:
        return fault
    order = next(o for o in schema.keys(name) if set(bare) <= set(o)) + (["ktime_ns"] if times else [])
    if times and (not isinstance(value["ktime_ns"], int) or isinstance(value["ktime_ns"], bool) or value["ktime_ns"] < 0):
        return "ktime_ns is not a number"
    if kind == SDK and set(order) - set(value) - {"arguments_digest"}:
        return "a key is missing, which this runner writes as null"
    if [k for k in order if k in value] != list(value) or jsontext.canonical(value) != raw:
        return "not in canonical form"
    if kind == INTENT and (intents.line_form(raw, value) or not intents.in_order(value["payload"])):
        return "an intent that cannot be"
    if kind == PROCESSES and processes.line_form(value) or kind == RAW and "arguments" in value and processes.argument_form(value["arguments"]):
        return "arguments that cannot be"
    if kind == PROCESSES and not processes.in_order(value):
        return "the keys of a state are not in order"
    if kind == HEALTH and any(list(value[k]) != sorted(value[k]) for k in ("filtered", "counters", "facts")):
        return "the names of a stage health are not sorted"
    return None


def _raw(v):
    """The fault of a raw event beyond its schema, or None."""
    if any(v.get(k, 0) >= MAX_TASK for k in ("pid", "tid", "old_tid", "child_pid", "child_tid")):
        return "a thread id that no kernel gives"
    if not all(text.is_text(v[k]) for k in NAMES if k in v):
        return "a name is not the escape of a byte string"
    return None


def _sequences(events, counters, found):
    """Each probe numbers its ring records on each CPU: none is there twice, and no more were begun than were seen."""
    numbered = [(e["cpu"], e["probe"], e["cpu_seq"]) for e in events if "probe" in e]
    if not numbered:
        return
    if len(set(numbered)) != len(numbered):
        found.add("stream.seq", "a cpu_seq is there twice")
    if len(events) - len(numbered) != counters.get("file_inserted", 0):
        found.add("stream.health", "file_inserted is not the number of events without a probe")
    highest = {}
    for cpu, probe, n in numbered:
        highest[cpu, probe] = max(n, highest.get((cpu, probe), 0))
    if sum(n + 1 for n in highest.values()) > counters.get("seen", 0):
        found.add("stream.health", "events are missing")


def _tree(values, found):
    """Times are on all kernel lines or on none, and with them each process comes before its lines."""
    lines = [v for v in values if v["schema"] == KERNEL]
    timed = any("ktime_ns" in v for v in lines)
    depth, process = -1, None
    for v in values:
        if v["schema"] == PROCESS:
            if v["depth"] > depth + 1:
                found.add("stream.order", "a process record without its parent")
            depth, process = v["depth"], v["pid"]
        elif v["schema"] == KERNEL and (("ktime_ns" in v) != timed or timed and v["pid"] != process):
            found.add("stream.order", "a kernel line without time, or not after its process")
            return
    if process is not None and not timed:
        found.add("stream.order", "process records without times")


def _joined(kinds, found):
    """Surface entries sorted, and one report whose arrays travel as lines."""
    entries = [(archive.SETS.index(e["set"]), e["value"].encode()) for e in kinds.get(ENTRY, ())]
    if entries != sorted(set(entries)):
        found.add("stream.order", "surface entries are not sorted and unique")
    codes = [(ambiguities.is_note(a["code"]), a["code"].encode()) for a in kinds.get(AMBIGUITY, ())]
    if codes != sorted(set(codes)):
        found.add("stream.order", "ambiguities are not sorted and unique")
    reports = kinds.get(REPORT, [])
    if len(reports) != 1 or len(kinds.get(OBSERVED, ())) != 1:
        found.add("stream.order", "not one report and one observation health")
    elif reports[0]["bindings"] or reports[0]["ambiguities"] or "notes" in reports[0]:
        found.add("stream.record", "the arrays of the report are not empty")
    bound = [(b["binding"]["tool_call_id"], b["binding"]["policy_decision"]) for b in kinds.get(BINDING, ())]
    if bound != [(v["tool_call_id"], v["decision"]) for v in kinds.get(POLICY, ())]:
        found.add("stream.record", "the bindings are not those of the policy lines")
