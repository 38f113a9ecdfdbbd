"""correlation-report.json against the layers.

Implements "Correlation" of the derivation document, as far as an archive shows what a
report must say, and the report of other implementations.
"""

import collections

import ambiguities
import effects
import health
import policy

REPORT = "correlation-report.json"
RUN = ("run_started", "run_finished")
OWN_KEYS = ("kernel_scope", "kernel_effects", "kernel_effects_cut", "join", "sdk_tool_call_id")
MAX_EFFECTS, MAX_BYTES, MAX_ALL = 32, 4096, 1 << 20


def check(a, report):
    """All rules about the report of an archive whose documents and layers were read."""
    bindings = a.report["bindings"]

    def say(rule, text):
        report.add(rule, text, REPORT)

    if len(bindings) != len(a.policy):
        say("report.bindings", "%d bindings for %d decisions" % (len(bindings), len(a.policy)))
    known = collections.Counter(effects.of(x.value) for x in a.kernel) if a.own else ()
    total = sum(_bytes(b) for b in bindings)
    for b, line in zip(bindings, a.policy):
        v = line.value
        if (b["tool_call_id"], b["policy_decision"]) != (v["tool_call_id"], v["decision"]):
            say("report.bindings", "%s: not the decision of its place" % b["tool_call_id"])
            continue
        fault = (_window(a, b, v) or _count(a, b) or _effects(
                b, v, known, total, a.notes.has(health.TOOL_POLICY) and policy.has_session(v), _loose(a, b))) if a.own else _other(a, b)
        if fault:
            say("report.bindings", "%s: %s" % (b["tool_call_id"], fault))
    fault = _joins(a) if a.own else None
    if fault:
        say("report.bindings", "%s: %s" % (fault[0]["tool_call_id"], fault[1]))
    if a.own and _differ(a):
        say("report.bindings", "bindings over the same lines count differently")
    if a.own and total > MAX_ALL:
        say("report.bindings", "more than 1 MiB of effects")
    digests = {x.value["policy_digest"] for x in a.policy if "policy_digest" in x.value}
    if a.own and len(digests) > a.notes.number(health.POLICY, "sessions"):
        report.add("policy.decision", "more policies than sessions", policy.POLICY)
    for fault in ambiguities.faults(a):
        say("report.ambiguities", fault)
    if a.report["status"] != ambiguities.status(a.report["ambiguities"], a.own):
        say("report.status", "status %s" % a.report["status"])


def _other(a, b):
    if any(k in b for k in OWN_KEYS):
        return "a key that only this runner writes"
    if "cgroup_id" in b and (len(a.policy) > 1 or not a.notes.has(health.CAPTURE)):
        return "a cgroup_id, which is known only for one decision in a kernel capture"
    if (b["window"]["start"], b["window"]["end"]) != RUN:
        return "the window is not that of the run"
    if b["kernel_event_count"] != len(a.kernel):
        return "the count is not that of the layer"
    return None


def _window(a, b, v):
    """Window and scope of a binding of this runner."""
    own, codes = effects.own_window(b), ambiguities.entries(a)
    timed, ended = policy.has_session(v) and a.notes.has(health.WINDOWS), "outcome" in v
    repeated = "tool_call_id_repeated:" + v["tool_call_id"] in codes
    overlaps = "tool_calls_overlap:" + v["tool_call_id"] in codes
    several = sum(x.value["tool_call_id"] == v["tool_call_id"] for x in a.policy) > 1
    if "cgroup_id" in b:
        return "cgroup_id is written only by other implementations"
    if not own and (b["window"]["start"], b["window"]["end"]) != RUN:
        return "a window of neither run nor call"
    if own and (not timed or not ended or repeated or overlaps and not several):
        return "a window of its own, which the layers do not allow"
    if not own and timed and ended and not repeated and not overlaps:
        return "no window of its own, although nothing is in its way"
    if timed != ("kernel_scope" in b):
        return "kernel_scope is there exactly where a session and times are"
    unknown = sum(c.startswith(health.UNPLACED) for c in codes)
    if timed and b["kernel_scope"] == "run" and a.notes.has(health.CAPTURE) and not unknown:
        return "scope run, but no tool server is unknown"
    sessions = a.notes.number(health.POLICY, "sessions")
    if timed and b["kernel_scope"] == "tool_server" and sessions and unknown >= sessions:
        return "scope tool_server, but all tool servers are unknown"
    return None


def _count(a, b):
    """The count against the classes of s6_windows."""
    count, scope, all_lines = b["kernel_event_count"], b.get("kernel_scope"), len(a.kernel)
    if count > all_lines or scope is None and count != all_lines:
        return "the count is not what the layer has"
    call, setup, idle, agent, request = health.classes(a.notes)
    if scope is None or call + setup + idle + agent + request != all_lines:
        return None  # health.note reports counts that do not add up
    if scope == "run":
        most = setup + agent
    else:
        most = call if effects.own_window(b) else call + setup + idle + request
    if count > most:
        return "more lines than the classes leave"
    if a.notes.number(health.POLICY, "sessions") == 1 and scope == "tool_server" and not effects.own_window(b) \
            and count < call + idle:
        return "less lines than the classes have"
    return None


def _differ(a):
    """Whether bindings over the same lines of the whole run have different counts."""
    counts = collections.defaultdict(set)
    for b, line in zip(a.report["bindings"], a.policy):
        if policy.has_session(line.value) and not effects.own_window(b):
            counts[b.get("kernel_scope")].add(b["kernel_event_count"])
    sound = a.notes.has(health.WINDOWS) and sum(health.classes(a.notes)) == len(a.kernel)
    return sound and (len(counts["run"]) > 1 or len(counts["tool_server"]) > a.notes.number(health.POLICY, "sessions"))


def _bytes(b):
    return sum(len(e.encode()) for e in b.get("kernel_effects", ()))


def _joins(a):
    """The first fault of calls that were joined by the digest of their arguments, with its binding."""
    calls, ids = {}, {x.value["tool_call_id"] for x in a.policy}
    for x in a.sdk:
        v = x.value
        if v["event_type"].startswith("tool_call_"):
            call = calls.setdefault(v["tool_call_id"], {"tool": v["tool"], "digest": None})
            call["digest"] = call["digest"] or v.get("arguments_digest")
    lines = [x.value for x in a.policy]
    digests = collections.Counter(v.get("arguments_digest") for v in lines)
    seen = collections.Counter(b.get("sdk_tool_call_id") for b in a.report["bindings"])
    for b, v in zip(a.report["bindings"], lines):
        digest = v.get("arguments_digest")
        if ("join" in b) != (digest is not None):
            return b, "join and arguments_digest do not go together"
        if "join" not in b:
            continue
        call = calls.get(b["sdk_tool_call_id"])
        if v.get("tool_call_id_source") != "jsonrpc_id" or call is None or call["digest"] != digest or b["tool_call_id"] in calls or b["sdk_tool_call_id"] in ids:
            return b, "a join that the layers do not allow"
        if seen[b["sdk_tool_call_id"]] > 1 or digests[digest] > 64 or ambiguities.prefix(call["tool"], v["tool"]) is None:
            return b, "a join with a call of another binding, tool, or of too many"
        others = [c for c in calls.values() if c is not call and c["digest"] == digest and ambiguities.prefix(c["tool"], v["tool"]) is not None]
        if others or any(w is not v and w.get("arguments_digest") == digest and ambiguities.prefix(call["tool"], w["tool"]) is not None for w in lines):
            return b, "a join by a digest that others have too"
    return None


def _loose(a, b):
    """Whether lines of a call's window may be nobody's own: of what an earlier call named."""
    codes = ambiguities.entries(a)
    return "tool_call_effects_late:" + b["tool_call_id"] in codes or any(c.startswith("tool_call_cancelled:") for c in codes)


def _effects(b, v, known, total, named, loose):
    given, cut, count = b.get("kernel_effects", []), "kernel_effects_cut" in b, b["kernel_event_count"]
    allowed = v["decision"] != "deny" and effects.own_window(b)
    most = known[None] + sum(known[e] for e in set(given))
    if allowed and not cut and count > most and not loose:
        return "more lines than say its effects"
    if not given and not cut:
        return None
    if given != sorted(set(given), key=lambda e: e.encode()):
        return "effects are not sorted"
    if len(given) > MAX_EFFECTS or _bytes(b) > MAX_BYTES:
        return "more effects than the limits"
    if not all(known[e] for e in given):
        return "an effect that no line says"
    if "kernel_scope" not in b:
        return "effects without a scope"
    if v["decision"] == "deny":
        if named and not all(effects.asked(e, v.get("targets", []), False) in ("yes", "text") for e in given):
            return "an effect that the denied call did not name"
        return None if all(map(effects.done, given)) else "an effect of a denied call that was not done"
    if not allowed or not count or len(given) > count or cut and len(given) == count and b["kernel_scope"] == "tool_server":
        return "effects that the window cannot have"
    longest = max((len(e.encode()) for e in known if e), default=0)
    if cut and len(given) < MAX_EFFECTS and b["kernel_scope"] != "run" and _bytes(b) + longest <= MAX_BYTES \
            and not (not given and total + MAX_BYTES > MAX_ALL):
        return "effects that were cut without a need"
    return None
