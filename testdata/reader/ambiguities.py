"""Ambiguities of a correlation report, and its status.

Implements the table of codes in the derivation document: which are known, what they are
about, and those that follow from the layers.
"""

import collections

import health
import policy
import schema

FAILED = {"cgroup_correlation_failed", "policy_log_flooded", "policy_log_replaced"}
EMPTY, MULTIPLE = "policy_events_without_kernel_events", "session_cgroup_ambiguous_for_multiple_policy_events"
UNBOUND = "sdk_tool_call_without_policy_binding"
# Codes about the id of a decision, and whether they follow from the layers.
DECISION_CODES = {
    "decision_without_kernel_events", "denied_call_with_kernel_effects", "kernel_events_outside_tool_windows",
    "policy_call_not_in_sdk", "sdk_completed_denied_call", "sdk_tool_name_differs",
    "tool_call_effects_outside_request", "tool_call_id_repeated", "tool_call_not_finished",
    "tool_call_targets_unknown", "tool_calls_overlap",
}
SDK_CODES = {"sdk_tool_call_not_completed", "sdk_tool_call_not_started", "sdk_tool_call_repeated", UNBOUND}
NAME_CODES = {"policy_session_not_finished", "policy_session_of_other_policy", "tool_server_unknown"}


def status(codes, own):
    """The status that follows from the codes."""
    if own and any(c in FAILED or c.startswith("policy_log_invalid:") for c in codes):
        return "failed"
    return "partial" if codes else "clean"


def faults(a):
    """What is wrong with the codes of a report."""
    codes = a.report["ambiguities"]
    if not a.own:
        want = other(a)
        if set(codes) != want or len(codes) != len(want):
            yield "expected %s" % sorted(want)
        return
    if codes != sorted(set(codes), key=lambda c: c.encode()):
        yield "not sorted, or one is there twice"
    known = schema.load("ambiguity-v0")
    for c in codes:
        if known({"schema": "runner.ambiguity.v0", "run_id": "x", "code": c}):
            yield "%s is not known" % c
            return
    derived = follow(a)
    for name, want in derived.items():
        given = {c for c in codes if c == name or c.startswith(name + ":")}
        if given != want:
            yield "%s: %s, expected %s" % (name, sorted(given), sorted(want))
    yield from contradictions(a, codes)


def other(a):
    """The codes of other implementations' reports, all of which follow."""
    want = set()
    if a.policy and not a.kernel:
        want.add(EMPTY)
    if len(a.policy) > 1 and MULTIPLE in a.report["ambiguities"]:
        want.add(MULTIPLE)  # it says whether a cgroup was known, which the archive does not
    ids = {x.value["tool_call_id"] for x in a.policy}
    if a.policy:
        want |= {"%s:%s" % (UNBOUND, i) for i in health.sdk_calls(a) - ids}
    return want


def _sdk(a):
    started, completed, tools = collections.Counter(), collections.Counter(), {}
    for line in a.sdk:
        v = line.value
        if v["event_type"] == "tool_call_started":
            started[v["tool_call_id"]] += 1
        elif v["event_type"] == "tool_call_completed":
            completed[v["tool_call_id"]] += 1
        else:
            continue
        tools.setdefault(v["tool_call_id"], set()).add(v["tool"])
    return started, completed, tools


def follow(a):
    """The codes that follow from the layers and bindings: name to the set of whole codes."""
    want = collections.defaultdict(set)

    def about(name, ids):
        want[name] = {"%s:%s" % (name, i) for i in ids}

    def plain(name, holds):
        want[name] = {name} if holds else set()

    decisions = [x.value for x in a.policy]
    ids = {d["tool_call_id"] for d in decisions}
    layer = a.health["kernel_layer"]
    started, completed, tools = _sdk(a)
    calls = set(started) | set(completed)
    both = bool(a.policy) and bool(a.sdk)
    windows = a.notes.numbers("s6_windows")
    plain("kernel_events_lost", decisions and layer == "partial_ringbuf_drops")
    plain(EMPTY, decisions and not a.kernel)
    plain(MULTIPLE, len(decisions) > 1 and layer != "absent" and not all(map(policy.has_session, decisions)))
    plain("kernel_times_unknown", layer != "absent" and windows is None and any(map(policy.has_session, decisions)))
    plain("cgroup_correlation_failed", decisions and a.health["cgroup_correlation"] == "failed")
    plain("sdk_run_not_finished", a.sdk and not any(x.value["event_type"].startswith("run_") for x in a.sdk))
    about("sdk_tool_call_not_completed", set(started) - set(completed))
    about("sdk_tool_call_not_started", set(completed) - set(started))
    about("sdk_tool_call_repeated", {i for c in (started, completed) for i, n in c.items() if n > 1})
    about(UNBOUND, calls - ids if a.health["policy_layer"] == "present" else ())
    about("policy_call_not_in_sdk", ids - calls if both else ())
    about("sdk_completed_denied_call", {d["tool_call_id"] for d in decisions if d["decision"] == "deny"} & set(completed))
    about("sdk_tool_name_differs", {d["tool_call_id"] for d in decisions
                                    if tools.get(d["tool_call_id"], {d["tool"]}) != {d["tool"]}})
    about("tool_call_id_repeated", _repeated(decisions))
    about("tool_call_not_finished", {d["tool_call_id"] for d in decisions if policy.has_session(d)
                                     and d["decision"] == "allow"
                                     and d.get("outcome") in (None, "server_gone", "client_gone")})
    about("denied_call_with_kernel_effects", {b["tool_call_id"] for b in a.report["bindings"]
                                              if b["policy_decision"] == "deny" and "kernel_effects" in b})
    about("decision_without_kernel_events", {
        b["tool_call_id"] for b in a.report["bindings"]
        if b["policy_decision"] == "allow" and b["kernel_event_count"] == 0 and "kernel_scope" in b} if layer != "absent" else ())
    return want


def _repeated(decisions):
    """Ids of several decisions that are not attempts of one call."""
    attempts = collections.defaultdict(list)
    for d in decisions:
        attempts[d["tool_call_id"]].append(d.get("attempt", 1))
    return {i for i, n in attempts.items() if len(n) > 1 and n != list(range(n[0], n[0] + len(n)))}


def contradictions(a, codes):
    """What codes that do not follow must still agree with."""
    ids = {x.value["tool_call_id"] for x in a.policy}
    windows = a.notes.numbers("s6_windows")
    execs = {x.value["value"] for x in a.kernel if x.value["event_type"] == 4}
    for c in codes:
        name, _, rest = c.partition(":")
        if name in DECISION_CODES and rest not in ids:
            yield "%s is about a call that nobody decided" % c
        if name == "exec_without_tool_call" and (windows is None or rest != "…" and rest not in execs):
            yield "%s is about a program that nobody ran" % c
        if name in NAME_CODES and not (a.notes.numbers("s4_policy_capture") or [0, 0])[1]:
            yield "%s without a session" % c
        if name == "policy_log_empty" and a.health["policy_layer"] == "present":
            yield "%s with a policy layer" % c
        if name == "sdk_log_empty" and a.sdk:
            yield "%s with an SDK layer" % c
    idle = windows[2] if windows else 0
    if (idle > 0) != any(c.startswith("kernel_events_outside_tool_windows:") for c in codes):
        yield "idle lines and kernel_events_outside_tool_windows do not go together"
