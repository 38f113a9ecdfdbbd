"""One archive: its members read and every rule applied.

Implements "What a reader MUST refuse" of the archive contract. The rules themselves are in the
modules that are called here.
"""

import container
import documents
import filtered
import health
import intents
import kernel
import lines
import policy
import processes
import report as correlation
import times
import wrapped
from findings import Findings

KNOWN = set(documents.DOCUMENTS) | set(lines.LAYERS)
OPTIONAL = {filtered.FILTERED, intents.INTENTS, processes.PROCESSES, times.TIMES} | set(wrapped.LAYERS) | set(wrapped.DOCUMENTS)


class Archive:
    """The valid parts of an archive."""

    def __init__(self):
        self.members, self.documents, self.layers, self.counts = {}, {}, {}, {}
        self.own, self.notes = True, None

    manifest = property(lambda self: self.documents.get("manifest.json"))
    run_id = property(lambda self: self.manifest["run_id"] if self.manifest else None)
    surface = property(lambda self: self.documents.get("capability-surface.json"))
    report = property(lambda self: self.documents.get("correlation-report.json"))
    health = property(lambda self: self.documents.get("observation-health.json"))
    events = property(lambda self: self.layers.get("events.ndjson"))
    kernel = property(lambda self: self.layers.get("layers/kernel.ndjson"))
    policy = property(lambda self: self.layers.get("layers/policy.ndjson"))
    sdk = property(lambda self: self.layers.get("layers/sdk.ndjson"))


def check(data):
    """Every finding about an archive."""
    found, a, whole = Findings(), Archive(), True
    try:
        for m in container.members(data):
            if isinstance(m, container.Oversize):
                found.add("archive.limit", "%d bytes" % m.size, m.name)
            else:
                _read(a, m, found)
    except container.Refused as e:
        found.add(e.rule, str(e))
        whole = False
    _lines(a, found)
    if whole:
        _whole(a, found)
    return found


def _read(a, m, found):
    a.members[m.name] = m
    if m.data is None:
        return
    if wrapped.raw(m.name):
        digest = wrapped.digest_of(m.name)
        if digest and digest != m.digest:
            found.add("member.digest", "another digest than its name", m.name)
    elif m.name not in KNOWN:
        found.add("member.unknown", "not a member of an archive", m.name)
    if m.name in documents.DOCUMENTS:
        a.documents[m.name] = documents.read(m.name, m.data, found)
    elif m.name in lines.LAYERS:
        a.layers[m.name], a.counts[m.name] = lines.read(m.name, m.data, a.run_id, found)


def _lines(a, found):
    """The rules about single lines, for the layers that were read."""
    pair = a.events or ()
    a.own = len(pair) == 2 and not any("window_elapsed_ms" in x.value for x in pair)
    if len({"window_elapsed_ms" in x.value for x in pair}) > 1:
        found.add("origin.marks", "the mark is in one run event only", "events.ndjson")
    for name, list_ in a.layers.items():
        if name != "events.ndjson":  # there the seq is part of the schema
            lines.check_seq(name, list_, found)
        if a.own or name == "layers/times.ndjson":
            lines.check_canonical(name, list_, found)
        if not a.own:
            lines.check_keys(name, list_, found)
    for name, value in a.documents.items():
        if value and a.run_id is not None and value["run_id"] != a.run_id:
            found.add("run_id", "another run_id", name)
    kernel.check_lines(a.kernel or (), a.own, found)
    filtered.check(a, found)
    processes.check(a, found)
    intents.check(a, found)
    wrapped.check(a, found)
    if a.own:
        policy.check_policy(a.policy or (), a.report["ambiguities"] if a.report else (), found)
        policy.check_sdk(a.sdk or (), found)


def _whole(a, found):
    """The rules that need the whole archive."""
    for name in sorted(KNOWN - OPTIONAL - set(a.members)):
        found.add("member.missing", "the member is missing", name)
    for name in (a.manifest or {"files": ()})["files"]:
        if name not in a.members and (name in OPTIONAL or wrapped.raw(name)):
            found.add("member.missing", "the manifest lists it", name)
    if "events.ndjson" in a.layers:
        policy.check_events(a.events, a.counts["events.ndjson"], a.own, found)
    broken = {f[1] for f in found.list}
    if a.manifest:
        documents.check_manifest(a.manifest, a.members, KNOWN, found)
    needed = set(lines.LAYERS) - OPTIONAL
    if broken & needed or not needed <= set(a.layers):
        return
    if times.TIMES not in broken:
        times.check(a, found)
    if a.surface and "capability-surface.json" not in broken:
        _surface(a, found)
    if a.health:
        a.notes = health.Notes(a.health["notes"], a.own)
        times.check_note(a, found)
        filtered.check_note(a, found)
        processes.check_note(a, found)
        intents.check_note(a, found)
        wrapped.check_documents(a, found)
        wrapped.check_blobs(a, found)
        if not {f[1] for f in found.list} & {lines.KERNEL, processes.PROCESSES} and not (a.own and kernel.order_fault(a.kernel, a.notes)):
            processes.check_kernel(a, found)
        health.check(a, found)
        if a.report:
            if times.TIMES not in {f[1] for f in found.list}:
                times.check_windows(a, found)
                if a.own and times.TIMES in a.layers:
                    times.check_calls(a, found)
            correlation.check(a, found)


SETS = ("filesystem_paths", "network_endpoints", "process_execs", "mcp_tools", "policy_decisions")


def _surface(a, found):
    want = {s: set() for s in SETS}
    for line in a.kernel:
        where = kernel.surface_set(line.value["event_type"])
        if where and line.value["value"]:
            want[where].add(line.value["value"])
    for line in a.policy:
        want["mcp_tools"].add(line.value["tool"])
        want["policy_decisions"].add("%s:%s" % (line.value["decision"], line.value["tool"]))
    for name in SETS:
        given = a.surface[name]
        if any(len(v.encode()) > lines.MAX_LINE for v in given):
            return found.add("archive.limit", "a value above 1 MiB", "capability-surface.json")
        if given != sorted(set(given), key=lambda s: s.encode()):
            found.add("surface.order", "%s is not sorted and unique" % name, "capability-surface.json")
        elif set(given) != want[name]:
            found.add("surface.derived", "%s is not the union of the layers" % name, "capability-surface.json")
