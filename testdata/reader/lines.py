"""Layers as lines: form, schema, canonical form, run_id and seq.

Implements "Archive lines" of the archive contract for what all layers share, and the
limits of a line. What a kernel, policy or SDK line means is in kernel.py and policy.py.
"""

import re

import intents
import jsontext
import kernel
import processes
import schema
import wrapped

MAX_LINE = 1 << 20
OWN_KEYS = {"tool_call_id_source", "outcome", "reason_code", "rule_id", "policy_digest", "attempt", "targets", "targets_cut", "would_deny", "arguments_digest"}
KERNEL = "layers/kernel.ndjson"
_RUN_ID = re.compile(r"[A-Za-z0-9_-]+\Z")
LAYERS = {
    "events.ndjson": "event-v0",
    "layers/filtered.ndjson": "filtered-v0",
    "layers/intents.ndjson": "intent-v0",
    "layers/kernel.ndjson": "kernel-event-v0",
    "layers/policy.ndjson": "policy-event-v0",
    "layers/process.ndjson": "process-event-v0",
    "layers/sdk.ndjson": "sdk-event-v0",
    "layers/times.ndjson": "time-v0",
    **wrapped.LAYERS,
}


class Line:
    """One line that its schema allows: its 1-based number, its bytes, and its value."""

    __slots__ = ("number", "raw", "value")

    def __init__(self, number, raw, value):
        self.number, self.raw, self.value = number, raw, value


def read(member, data, run_id, report):
    """The valid lines of a layer, and how many lines there are; reports what is not valid."""
    name = LAYERS[member]
    check, out, number, at = schema.load(name), [], 0, 0
    while at < len(data):
        number += 1
        end = data.find(b"\n", at)
        raw = data[at:] if end < 0 else data[at:end]
        at = len(data) if end < 0 else end + 1
        if len(raw) + 1 > MAX_LINE:
            report.add("archive.limit", "a line longer than %d bytes" % MAX_LINE, member, number)
            number -= 1
            continue
        if end < 0:
            report.add("lines.form", "the last line has no line feed", member, number)
        if not raw.strip(b" \t\r"):
            report.add("lines.form", "a blank line", member, number)
            number -= 1
            continue
        if member == "events.ndjson" and number > 2:
            return out, number  # events.pair reports it
        if member == KERNEL and (jsontext.depth(raw) > 2 or not jsontext.is_compact(raw)):
            report.add("line.schema", "nested values, or blanks between tokens", member, number)
            continue
        try:
            value = intents.parse(member, raw)
        except jsontext.TooDeep as e:
            report.add("archive.limit", str(e), member, number)
            continue
        except jsontext.BadJSON as e:
            report.add("line.schema", str(e), member, number)
            continue
        fault = check(_with_run(value, run_id, member, number, report)) or kind_fault(value) \
            or member == "layers/process.ndjson" and processes.line_form(value) or member == intents.INTENTS and intents.line_form(raw, value)
        if fault:
            report.add("line.schema", fault, member, number)
            continue
        out.append(Line(number, raw, value))
    return out, number


def _with_run(value, run_id, member, number, report):
    """The value with the manifest's run_id; another one is a fault of its own, not of the schema."""
    given = value.get("run_id") if isinstance(value, dict) else None
    if run_id is None or given == run_id or not isinstance(given, str) or member != KERNEL and not _RUN_ID.match(given):
        return value
    report.add("run_id", "another run_id", member, number)
    return dict(value, run_id=run_id)


def kind_fault(value):
    """The number in the kind of a kernel line is its event_type."""
    kind = value.get("kind", "")
    if kind.startswith("event_") and kind != "event_%d" % value["event_type"]:
        return "kind is not that of event_type"
    return None


def check_seq(member, lines, report):
    """Every line carries its own position."""
    for line in lines:
        if line.value["seq"] != line.number - 1:
            report.add("seq", "seq is %d" % line.value["seq"], member, line.number)


def check_keys(member, lines, report):
    """Lines of other implementations have no keys that only this runner writes."""
    for line in lines:
        if member in ("layers/policy.ndjson", "layers/sdk.ndjson") and OWN_KEYS & set(line.value):
            report.add("line.schema", "keys that only this runner writes", member, line.number)


def check_canonical(member, lines, report):
    """The lines of this runner are canonical, keys in the order of the tables."""
    orders = schema.keys(LAYERS[member])
    for line in lines:
        value = line.value
        order = next(o for o in orders if set(value) <= set(o))
        hints = value.get("operation_flags")
        bad = hints is not None and (not hints or sorted(hints, key=kernel.HINT_ORDER.index) != hints)
        bad = bad or member == intents.INTENTS and not intents.in_order(value["payload"]) or member in wrapped.LAYERS and not schema.in_order(LAYERS[member], value)
        if bad or member == "layers/sdk.ndjson" and set(order) - set(value) - {"arguments_digest"} or [k for k in order if k in value] != list(value) or jsontext.canonical(value) != line.raw:
            report.add("line.form", "not in canonical form", member, line.number)
