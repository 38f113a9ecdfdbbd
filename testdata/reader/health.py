"""observation-health.json against the layers, and the notes in it.

Implements "When kernel_layer is what", "Network fields" and "Notes" of the archive
contract, as far as an archive shows them.
"""

import re

import kernel
import policy

HEALTH = "observation-health.json"
_N = r"(0|[1-9]\d{0,19})"
_COUNTS = r"[^\s=]+=[^\s]+(?: [^\s=]+=[^\s]+)*"
# The notes of this runner in their order: name, form of the text after it.
_FORMS = [
    ("contract_only_mode", r".+"),
    ("s2_kernel_capture", r"monitor_events=%s ringbuf_drops=%s network_protocol_coverage=(\S+) network_endpoint_claim_scope=(\S+)" % (_N, _N)),
    ("s2_kernel_loss", _COUNTS),
    ("s2_drops", _COUNTS),
    ("s2_cgroup_escape", r"escapes=[1-9]\d* .+"),
    ("s2_path_quality", _COUNTS),
    ("s2_survivors_killed", r"[1-9]\d*"),
    ("s2_capture_end", r".+"),
    ("s2_blind_spots", r".+"),
    ("s4_network_policy", r"rules=%s blocked=%s policy=(sha256:[0-9a-f]{64})" % (_N, _N)),
    ("s4_policy_capture", r"decision_events=%s(?: sessions=%s refused=%s)?" % (_N, _N, _N)),
    ("s5_sdk_capture", r"sdk_events=%s sdk_tool_calls=%s" % (_N, _N)),
    ("s6_windows", r"call=%s setup=%s idle=%s agent=%s" % (_N, _N, _N, _N)),
]
_RANK = {name: i for i, (name, _) in enumerate(_FORMS)}
_FORM = {name: re.compile(form + r"\Z", re.ASCII) for name, form in _FORMS}


class Notes:
    """The notes of a health document by name, with what their forms say."""

    def __init__(self, notes):
        self.list = [tuple(n.split(": ", 1)) if ": " in n else (n, "") for n in notes]
        self.match = {}
        for name, rest in self.list:
            if name in _FORM and name not in self.match:
                self.match[name] = _FORM[name].match(rest)

    def numbers(self, name):
        """The numbers of a note's form, or None when the note is not there or has another form."""
        m = self.match.get(name)
        return None if m is None else [int(g) if g and g.isdigit() else g for g in m.groups()]

    def has(self, name):
        return any(n == name for n, _ in self.list)

    def counts(self, name):
        """The `key=count` pairs of a note."""
        m = self.match.get(name)
        return [] if m is None else [tuple(p.split("=", 1)) for p in m.group().split(" ")]


def check(a, report):
    """All rules about health of an archive whose documents and layers were read."""
    h, own = a.health, a.own
    layer, cgroup = h["kernel_layer"], h["cgroup_correlation"]

    def say(rule, text):
        report.add(rule, text, HEALTH)

    if h["ringbuf_drops"] > 0 and layer != "partial_ringbuf_drops":
        say("health.drops", "drops with kernel_layer %s" % layer)
    if h["platform"] != "linux" and layer != "absent":
        say("health.platform", "a kernel layer on %s" % h["platform"])
    if cgroup == "failed" or (cgroup == "clean") != (layer != "absent"):
        say("health.cgroup", "cgroup_correlation %s with kernel_layer %s" % (cgroup, layer))
    a.notes = Notes(h["notes"])
    _layers(a, say)
    if own:
        _own_notes(a, say)
    else:
        _other_notes(a, say)
    kernel.check_network(h, a.kernel, own, report)


def _layers(a, say):
    sessions = a.notes.numbers("s4_policy_capture") if a.own else None
    present = bool(a.policy) or bool(sessions and sessions[1])
    if (a.health["policy_layer"] == "present") != present:
        say("health.layer", "policy_layer is not what the layer holds")
    if a.health["sdk_layer"] != ("self_reported" if a.sdk else "absent"):
        say("health.layer", "sdk_layer is not what the layer holds")


def sdk_calls(a):
    """The ids of the tool calls that the SDK layer names."""
    return {line.value["tool_call_id"] for line in a.sdk if line.value["event_type"].startswith("tool_call_")}


def _other_notes(a, say):
    """Other implementations: the capture notes once, with the counts of the layers and the values of the fields."""
    h = a.health
    measured = h["kernel_layer"] != "absent"
    want = {
        "s2_kernel_capture": {"monitor_events": str(len(a.kernel))},
        "s4_policy_capture": {"decision_events": str(len(a.policy))},
        "s5_sdk_capture": {"sdk_events": str(len(a.sdk)), "sdk_tool_calls": str(len(sdk_calls(a)))},
    }
    if measured:
        want["s2_kernel_capture"].update(
            ringbuf_drops=str(h["ringbuf_drops"]), network_protocol_coverage=h.get("network_protocol_coverage"),
            network_endpoint_claim_scope=h.get("network_endpoint_claim_scope"))
    there = {"s2_kernel_capture": measured, "s4_policy_capture": bool(a.policy), "s5_sdk_capture": bool(a.sdk)}
    for name, values in want.items():
        found = [rest for n, rest in a.notes.list if n == name]
        if len(found) > 1 or there[name] and not found:
            say("health.note", "%s is there %d times" % (name, len(found)))
        for rest in found[:1]:
            given = dict(p.split("=", 1) for p in rest.split(" ") if "=" in p)
            for key, value in values.items():
                if given.get(key) != value:
                    say("health.note", "%s says %s=%s, expected %s" % (name, key, given.get(key), value))
    if measured and a.notes.has("contract_only_mode"):
        say("health.note", "contract_only_mode with a kernel layer")


def _own_notes(a, say):
    h, notes, last = a.health, a.notes, -1
    names = [n for n, _ in notes.list]
    for name in names:
        if name not in _RANK:
            continue
        if _RANK[name] <= last:
            return say("health.note", "%s is out of order or there twice" % name)
        last = _RANK[name]
        if notes.match[name] is None:
            return say("health.note", "%s has another form" % name)
    captured = "contract_only_mode" not in names
    if captured != ("s2_kernel_capture" in names) or captured != ("s2_blind_spots" in names):
        say("health.note", "no capture note, or no blind spots")
    if not captured and (h["kernel_layer"] != "absent" or any(n.startswith("s2_") for n in names)):
        say("health.note", "contract_only_mode with a kernel layer or its notes")
    if captured:
        given = notes.numbers("s2_kernel_capture")
        want = [len(a.kernel), h["ringbuf_drops"], h.get("network_protocol_coverage"),
                h.get("network_endpoint_claim_scope")]
        if given is not None and given != want:
            say("health.note", "s2_kernel_capture says %s, expected %s" % (given, want))
    _loss(a, names, say)
    _layer_notes(a, names, say)
    _enforcement(a, names, say)


def _loss(a, names, say):
    h, notes = a.health, a.notes
    lost = "s2_kernel_loss" in names
    layer = h["kernel_layer"]
    escaped = layer == "absent" and "s2_kernel_capture" in names
    if lost != (layer == "partial_ringbuf_drops" or escaped):
        say("health.loss", "kernel_layer %s, loss note %s" % (layer, lost))
    causes = notes.counts("s2_kernel_loss")
    if [c for c, _ in causes] != sorted({c for c, _ in causes}):
        say("health.note", "the causes of loss are not sorted")
    dropped = dict(causes).get("dropped", "0")
    if layer == "partial_ringbuf_drops" and dropped != str(h["ringbuf_drops"]):
        say("health.loss", "%s dropped, but ringbuf_drops is %d" % (dropped, h["ringbuf_drops"]))
    drops = notes.counts("s2_drops")
    if drops and (not all(c.isdigit() for _, c in drops) or str(sum(int(c) for _, c in drops)) != dropped):
        say("health.note", "s2_drops is not the sum of the drops")


def _layer_notes(a, names, say):
    h, notes = a.health, a.notes
    if ("s4_policy_capture" in names) != (h["policy_layer"] == "present"):
        say("health.note", "s4_policy_capture and policy_layer")
    given = notes.numbers("s4_policy_capture")
    if given and (given[0] != len(a.policy)
                  or given[1] is None and any(policy.has_session(x.value) for x in a.policy)):
        say("health.note", "s4_policy_capture says %s" % given)
    if ("s5_sdk_capture" in names) != (h["sdk_layer"] == "self_reported"):
        say("health.note", "s5_sdk_capture and sdk_layer")
    given = notes.numbers("s5_sdk_capture")
    if given and given != [len(a.sdk), len(sdk_calls(a))]:
        say("health.note", "s5_sdk_capture says %s" % given)
    windows = notes.numbers("s6_windows")
    if windows and sum(windows) != len(a.kernel):
        say("health.note", "s6_windows has %d lines, the layer %d" % (sum(windows), len(a.kernel)))
    sessions = notes.numbers("s4_policy_capture")
    if windows and not (sessions and sessions[1]):
        say("health.note", "s6_windows without sessions")


def _enforcement(a, names, say):
    lines = [x.value for x in a.kernel if x.value["event_type"] == kernel.BLOCKED]
    given = a.notes.numbers("s4_network_policy")
    if given is None:
        if lines and "s4_network_policy" not in names:
            say("health.note", "blocked lines without s4_network_policy")
        return
    rules, blocked, digest = given
    dropped = int(dict(a.notes.counts("s2_drops")).get("connect_blocked", "0"))
    if blocked != len(lines) + dropped:
        say("health.note", "s4_network_policy says blocked=%d, the layer has %d" % (blocked, len(lines)))
    if any(v["rule_id"] > rules for v in lines if "rule_id" in v):
        say("health.note", "a rule that the policy does not have")
    digests = {x.value.get("policy_digest") for x in a.policy} - {None, digest}
    if digests and not any(c.startswith("policy_session_of_other_policy:") for c in a.report["ambiguities"]):
        say("health.note", "decisions by another policy")
