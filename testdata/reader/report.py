"""correlation-report.json against the layers.

Implements "Correlation" of the derivation document, as far as an archive shows what a
report must say, and the report of other implementations.
"""

import ambiguities
import kernel
import policy

REPORT = "correlation-report.json"
RUN = ("run_started", "run_finished")
OWN_KEYS = ("kernel_scope", "kernel_effects", "kernel_effects_cut")
MAX_EFFECTS, MAX_BYTES, MAX_ALL = 32, 4096, 1 << 20
_VERBS = {
    4: "exec", 200: "exec", 201: "exec", 2: "connect", 6: "send", 7: "send", 202: "send", 203: "bind", 204: "listen",
    20: "connect_blocked", 211: "unlink", 212: "rmdir", 213: "rename", 214: "rename", 215: "link", 216: "link",
    217: "symlink", 219: "mkdir", 220: "truncate", 221: "chmod", 222: "chown", 223: "mknod", 224: "mount",
    225: "mount", 226: "umount", 227: "move_mount", 228: "move_mount", 229: "pivot_root", 230: "pivot_root",
}


def effect(v):
    """What a kernel line says as an effect, or None."""
    if not v["value"]:
        return None
    if v["event_type"] == kernel.OPEN:
        mode = v.get("access_mode")
        verb = mode if mode in ("read", "write", "read_write") else "open"
    else:
        verb = _VERBS.get(v["event_type"])
    if verb is None:
        return None
    if v.get("status") == "error" and verb != "connect_blocked":
        verb = "failed-" + verb
    return "%s %s" % (verb, v["value"])


def check(a, report):
    """All rules about the report of an archive whose documents and layers were read."""
    bindings = a.report["bindings"]

    def say(rule, text):
        report.add(rule, text, REPORT)

    if len(bindings) != len(a.policy):
        say("report.bindings", "%d bindings for %d decisions" % (len(bindings), len(a.policy)))
    else:
        effects = {effect(x.value) for x in a.kernel} - {None} if a.own else ()
        for b, line in zip(bindings, a.policy):
            fault = _pair(b, line.value) or (_own if a.own else _other)(a, b, line.value, effects)
            if fault:
                say("report.bindings", "%s: %s" % (b["tool_call_id"], fault))
        if sum(len(e.encode()) for b in bindings for e in b.get("kernel_effects", ())) > MAX_ALL:
            say("report.bindings", "more than 1 MiB of effects")
    codes = a.report["ambiguities"]
    for fault in ambiguities.faults(a):
        say("report.ambiguities", fault)
    if a.report["status"] != ambiguities.status(codes, a.own):
        say("report.status", "status %s" % a.report["status"])


def _pair(b, v):
    if (b["tool_call_id"], b["policy_decision"]) != (v["tool_call_id"], v["decision"]):
        return "not the decision of its place"
    return None


def _other(a, b, v, effects):
    if any(k in b for k in OWN_KEYS):
        return "a key that only this runner writes"
    if "cgroup_id" in b and (len(a.policy) > 1 or not a.notes.has("s2_kernel_capture")):
        return "a cgroup_id, which is known only for one decision in a kernel capture"
    if (b["window"]["start"], b["window"]["end"]) != RUN:
        return "the window is not that of the run"
    if b["kernel_event_count"] != len(a.kernel):
        return "the count is not that of the layer"
    return None


def _own(a, b, v, effects):
    window = (b["window"]["start"], b["window"]["end"])
    call = ("tool_call_started:" + v["tool_call_id"], "tool_call_finished:" + v["tool_call_id"])
    classes = a.notes.numbers("s6_windows")
    timed = policy.has_session(v) and classes is not None
    codes = set(a.report["ambiguities"])
    alone = timed and "outcome" in v and not codes & {
        "tool_call_id_repeated:" + v["tool_call_id"], "tool_calls_overlap:" + v["tool_call_id"]}
    if "cgroup_id" in b:
        return "cgroup_id is written by other implementations only"
    if window != (call if alone else RUN):
        return "the window is not what the layers allow"
    if timed != ("kernel_scope" in b):
        return "kernel_scope is there exactly where a session and times are"
    count = b["kernel_event_count"]
    if not timed and count != len(a.kernel):
        return "the count is not that of the layer"
    if timed:
        most, setup, idle, agent = classes
        if not alone:
            most = most + setup + idle + (agent if b["kernel_scope"] == "run" else 0)
        if count > most:
            return "more lines than the classes leave"
    return _effects(b, v, alone, count, effects)


def _effects(b, v, alone, count, known):
    given = b.get("kernel_effects", [])
    if not given:
        return "cut effects without effects" if "kernel_effects_cut" in b else None
    if given != sorted(set(given), key=lambda e: e.encode()):
        return "effects are not sorted"
    if len(given) > MAX_EFFECTS or sum(len(e.encode()) for e in given) > MAX_BYTES:
        return "more effects than the limits"
    if not set(given) <= known:
        return "an effect that no line says"
    if v["decision"] != "deny" and not alone:
        return "effects without a window of the call's own"
    if v["decision"] != "deny" and len(given) > count:
        return "more effects than lines"
    return None
