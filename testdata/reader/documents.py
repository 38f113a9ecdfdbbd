"""The four JSON documents of an archive.

Implements "Archive lines" of the archive contract for manifest, surface, health and
correlation report: one compact canonical object without a final newline.
"""

import jsontext
import schema
import wrapped

DOCUMENTS = {
    "manifest.json": "archive-manifest-v0",
    "capability-surface.json": "capability-surface-v0",
    "correlation-report.json": "correlation-report-v0",
    "observation-health.json": "observation-health-v0",
    **wrapped.DOCUMENTS,
}
# The order of the tables, where a document nests objects.
_NESTED = {
    "files": ["path", "sha256", "bytes"],
    "bindings": ["tool_call_id", "policy_decision", "cgroup_id", "kernel_event_count", "window",
                 "kernel_scope", "kernel_effects", "kernel_effects_cut", "join", "sdk_tool_call_id"],
    "x-assay": ["packs_applied", "mappings"],
    "packs_applied": ["name", "version", "digest", "kind", "source_url"],
    "mappings": ["rule", "framework", "ref"],
}


def read(member, data, report):
    """The value of a document, or None when it is not valid."""
    name = DOCUMENTS[member]
    body = data.rstrip(b" \t\r\n")
    if body != data or body[:1] + body[-1:] != b"{}" or not jsontext.is_compact(body):
        report.add("document.form", "not one compact object, or something follows it", member)
        if body[:1] + body[-1:] != b"{}":
            return None
    try:
        value = jsontext.parse(body)
    except jsontext.TooDeep as e:
        report.add("archive.limit", str(e), member)
        return None
    except jsontext.BadJSON as e:
        report.add("document.schema", str(e), member)
        return None
    fault = schema.load(name)(value) or next(
        ("path is not the key" for k, f in value.get("files", {}).items() if f["path"] != k), None)
    if fault:
        report.add("document.schema", fault, member)
        return None
    if jsontext.canonical(value) != body or "redaction" not in value and not _in_order(name, value):
        report.add("document.form", "not in canonical form", member)
    return value


def _in_order(name, value):
    if name in wrapped.DOCUMENTS.values():
        return schema.in_order(name, value)
    if not _sorted_as(value, schema.keys(name)[0]):
        return False
    files = value.get("files", {})
    if list(files) != sorted(files) or not all(_sorted_as(f, _NESTED["files"]) for f in files.values()):
        return False
    packs = value.get("x-assay", {})
    if not _sorted_as(packs, _NESTED["x-assay"]) or not all(
            _sorted_as(x, _NESTED[key]) for key in packs for x in packs[key]):
        return False
    return all(_sorted_as(b, _NESTED["bindings"]) and list(b["window"]) == ["start", "end"]
               for b in value.get("bindings", ()))


def _sorted_as(value, order):
    return [k for k in order if k in value] == list(value)


def check_manifest(manifest, members, known, report):
    """The manifest lists every other member with its length and digest, and nothing else."""
    if not _packs_agree(manifest.get("x-assay", {})):
        report.add("manifest.packs", "not sorted, there twice, or a mapping of no pack", "manifest.json")
    files = manifest["files"]
    for name in files:
        if name not in known and not wrapped.raw(name) or name == "manifest.json":
            report.add("manifest.files", "%s is listed and no member" % name, "manifest.json")
    for name, member in members.items():
        if name == "manifest.json":
            continue
        if name not in files:
            report.add("manifest.files", "%s is not listed" % name, "manifest.json")
            continue
        if files[name]["bytes"] != member.size:
            report.add("member.size", "%d bytes" % member.size, name)
        elif files[name]["sha256"] != member.digest:
            report.add("member.digest", "another digest", name)


def _packs_agree(packs):
    """Packs are sorted by name and mappings as a whole, each once; a mapping is of a rule of such a pack."""
    applied, mappings = packs.get("packs_applied", []), packs.get("mappings", [])
    names = [p["name"] for p in applied]
    ordered = [(m["rule"], m["framework"], m["ref"]) for m in mappings]
    known = {"%s@%s" % (p["name"], p["version"]) for p in applied}
    return (names == sorted(set(names)) and ordered == sorted(set(ordered))
            and all(m["rule"].split(":")[0] in known for m in mappings))
