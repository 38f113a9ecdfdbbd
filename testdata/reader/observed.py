"""The observation health against the healths of the stages that it follows from.

Implements "Kernel layer" of the derivation document and "Notes" of the archive contract.
"""

import notes
import tables

LOSSES = [r[0] for r in tables.rows("STREAMS.md", "counters") if r[1] in ("loss", "escape")]
QUALITY = [r[0] for r in tables.rows("STREAMS.md", "counters") if r[1] == "quality"]
OF_LOGS = (notes.POLICY, notes.TOOL_POLICY, notes.PROCESS_API, notes.SDK, notes.WINDOWS, "s6_intents", "s7_times",
           "s8_box", "s8_clock", "s8_dns", "s8_network")
EVIDENCE = {"lsm": "observed", "fanotify": "mixed", "landlock": "inferred"}


def faults(h, capture, normalize):
    """What in the document does not follow from the two healths."""
    n, facts = capture["counters"], capture["facts"]
    captured = facts.get("kernel_capture") == "attached"
    causes = _causes(n, facts) if captured else {}
    layer, cgroup, drops = "absent", "partial", 0
    if captured:
        cgroup = "failed" if n.get("escapes") else "clean"
        if not n.get("escapes"):
            layer, drops = ("partial_ringbuf_drops", n["dropped"]) if causes else ("complete", 0)
    for name, want in (("platform", facts.get("platform")), ("kernel_layer", layer), ("cgroup_correlation", cgroup),
                       ("ringbuf_drops", drops)):
        if h[name] != want:
            yield "%s is %s, the stages say %s" % (name, h[name], want)
    given = [x for x in h["notes"] if x.partition(":")[0] not in OF_LOGS]
    want = list(_notes(h, capture, normalize, causes, captured)) + normalize["notes"]
    if [x for x in given if not x.startswith(notes.BLIND)] != want:
        yield "notes %s, the stages say %s" % (given, want)


def _causes(n, facts):
    out = {k: n[k] for k in LOSSES if n.get(k)}
    for canary in ("canary_before", "canary_after"):
        if facts.get(canary) != "seen":
            out[canary] = facts.get(canary)
    if facts.get("hooks_missing"):
        out["hooks_missing"] = ",".join(facts["hooks_missing"].split())
    if facts.get("engines"):
        out["engines"] = ",".join(facts["engines"].split())
    if facts.get("interference"):
        out["interference"] = ",".join(w.partition("=")[0] for w in facts["interference"].split())
    lost = facts.get("redundant", "").partition("on: lost=")[2]
    counts = {"redundant_lost": int(lost if lost.isdigit() else 0), "unaccounted": abs(n["seen"] - n["emitted"] - n["dropped"]),
              "unread": abs(n["emitted"] - n["read"])}
    out.update((k, v) for k, v in counts.items() if v)
    return out


def _words(name, counts):
    if counts:
        yield "%s: %s" % (name, " ".join(sorted(("%s=%s" % x for x in counts.items()), key=str.encode)))


def _family(n, prefix):
    return {k[len(prefix):]: v for k, v in n.items() if k.startswith(prefix)}


def _notes(h, capture, normalize, causes, captured):
    n, facts = capture["counters"], capture["facts"]
    if not captured:
        why = notes.UNSUPPORTED + h["platform"] if facts.get("kernel_capture") == "unsupported" else notes.REASON
        yield "%s: %s" % (notes.ONLY, why)
    else:
        yield "%s: monitor_events=%d ringbuf_drops=%d network_protocol_coverage=%s network_endpoint_claim_scope=%s" % (
            notes.CAPTURE, normalize["out"], h["ringbuf_drops"], h.get("network_protocol_coverage"), h.get("network_endpoint_claim_scope"))
        yield from _words(notes.LOSS, causes)
        yield from _words(notes.DROPS, _family(n, "dropped."))
        yield from _words(notes.MISSED, _family(n, "missed."))
        if n.get("escapes"):
            yield "%s: escapes=%d kernel_layer downgraded to absent" % (notes.ESCAPE, n["escapes"])
        counts = {k: normalize["counters"].get(k, n.get(k, 0)) for k in QUALITY}
        yield from _words("s2_path_quality", {k: v for k, v in counts.items() if v})
        if n.get("survivors_killed"):
            yield "s2_survivors_killed: %d" % n["survivors_killed"]
        if facts.get("end") == "signal":
            yield "s2_capture_end: a signal ended the capture, not the end of the last task"
    if "confined" in facts:
        yield "%s: %s" % (notes.CONFINED, facts["confined"].replace(",", "; "))
    if facts.get("network_rules") == "enforced":
        yield "%s: rules=%d blocked=%d policy=%s" % (notes.NETWORK, n["network_rules"], n["blocked"], facts["network_policy"])
        yield from _ids(notes.NETWORK_IDS, facts.get("network_rule_ids"))
    if facts.get("file_rules") == "enforced":
        by = facts["file_mechanism"]
        yield "%s: rules=%d blocked=%d mechanism=%s evidence=%s policy=%s" % (
            notes.FILES, n["file_rules"], n["file_blocked"], by, EVIDENCE.get(by), facts["file_policy"])
        yield from _ids(notes.FILE_IDS, facts.get("file_rule_ids"))


def _ids(note, fact):
    """The ids of rules, where there are some."""
    if fact:
        yield "%s: %s" % (note, fact.replace(" ", "; "))
